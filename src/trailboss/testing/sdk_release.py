"""The installed release of the public SDK: its code runs as part of an actor and costs cycles."""

from typing import Final

from trailboss.sandbox.releases import installed_release

DISTRIBUTION: Final = "cowboy-actor-sdk"
MEASURED: Final = "0.1.6"  # the release with which cycle counts are pinned


def sdk_release() -> str:
    """Return the release of the SDK that guests import."""
    return installed_release(DISTRIBUTION)


def release_warning() -> str:
    """Return a warning about the installed release; empty if it is the one measured."""
    installed = sdk_release()
    if installed == MEASURED:
        return ""
    return (
        f"{DISTRIBUTION} {installed} is installed, and this version of Trailboss was measured with {MEASURED}: actors "
        "that import the SDK may use other cycles, and a chain built with one release does not replay with the other"
    )
