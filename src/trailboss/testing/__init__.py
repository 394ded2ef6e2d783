"""The front door of actor developers: a local chain in a test, a script or a notebook.

Names are loaded when they are first asked for: the pytest plugin lives in this package, and pytest imports it before
coverage starts to look.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trailboss.chain.views import Event, Receipt, TimerView
    from trailboss.testing.local_chain import CBY, LocalChain
    from trailboss.testing.parties import ActorHandle, PendingReceipt, RevertedError, TestAccount

__all__ = [
    "CBY",
    "ActorHandle",
    "Event",
    "LocalChain",
    "PendingReceipt",
    "Receipt",
    "RevertedError",
    "TestAccount",
    "TimerView",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("trailboss.testing.local_chain"), name)
