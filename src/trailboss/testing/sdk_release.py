"""The installed release of the public SDK: its code runs as part of an actor and costs cycles."""

import sys
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "cowboy-actor-sdk"
MEASURED: Final = "0.1.6"  # the release with which cycle counts are pinned


def installed_release() -> str:
    """Return the release of the SDK that guests import."""
    name = f"{DISTRIBUTION.replace('-', '_')}-*.dist-info"
    for found in (found for place in sys.path for found in Path(place).glob(name)):
        return found.stem.rpartition("-")[2]
    from importlib.metadata import version  # noqa: PLC0415  # which knows other forms, and takes 8 ms to import

    return version(DISTRIBUTION)


def release_warning() -> str:
    """Return a warning about the installed release; empty if it is the one measured."""
    installed = installed_release()
    if installed == MEASURED:
        return ""
    return (
        f"{DISTRIBUTION} {installed} is installed, and this version of Trailboss was measured with {MEASURED}: actors "
        "that import the SDK may use other cycles, and a chain built with one release does not replay with the other"
    )
