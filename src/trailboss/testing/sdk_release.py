"""Which release of the public SDK is installed, and what it means that it is another than the one measured here.

What the SDK does for an actor runs as part of the actor and is paid for in cycles. So its text belongs to what a chain
computes, as the actor's own does.
"""

from importlib.metadata import version
from typing import Final

DISTRIBUTION: Final = "cowboy-actor-sdk"
MEASURED: Final = "0.1.6"
"""The release with which cycle counts are pinned, and chains of this version of Trailboss are built."""


def installed_release() -> str:
    """Return the release of the SDK that guests import."""
    return version(DISTRIBUTION)


def release_warning() -> str:
    """Return what to say about the release that is installed; empty if it is the one measured."""
    installed = installed_release()
    if installed == MEASURED:
        return ""
    return (
        f"{DISTRIBUTION} {installed} is installed, and this version of Trailboss was measured with {MEASURED}: actors "
        "that import the SDK may use other cycles, and a chain built with one release does not replay with the other"
    )
