"""The front door of actor developers: a local chain in a test, a script or a notebook.

Names are loaded on first use: the pytest plugin lives in this package, and pytest imports it before coverage starts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from trailboss.chain.jobs import JobFailure
    from trailboss.chain.proofs import (
        AccountSubject,
        Proof,
        SlotSubject,
        Statement,
        StorageSubject,
        TimersSubject,
        TimerSubject,
    )
    from trailboss.model.transactions import (
        CancelTimer,
        ClearMocks,
        ExtendTimer,
        MoveTimer,
        ReplyJob,
        SetBalance,
        SetCode,
        SetGovParam,
        SetMock,
        SetRunner,
        SetStorage,
        UpdateBasefeeConfig,
        UpdateLaneFeeMultipliers,
        UpdateTimerConfig,
        UpgradeActor,
    )
    from trailboss.testing.cheats import ANY
    from trailboss.testing.local_chain import CBY, LocalChain
    from trailboss.testing.machine import ActorMachine
    from trailboss.testing.parties import ActorHandle, ChainWarning, PendingReceipt, RevertedError, TestAccount
    from trailboss.views.jobs import JobView
    from trailboss.views.records import Answer, Event, Receipt, TimerView

__all__ = [
    "ANY", "CBY", "AccountSubject", "ActorHandle", "ActorMachine", "Answer", "CancelTimer", "ChainWarning",
    "ClearMocks",
    "Event", "ExtendTimer", "JobFailure", "JobView", "LocalChain", "MoveTimer", "PendingReceipt", "Proof", "Receipt",
    "ReplyJob", "RevertedError", "SetBalance", "SetCode", "SetGovParam", "SetMock", "SetRunner", "SetStorage",
    "SlotSubject", "Statement", "StorageSubject", "TestAccount", "TimerSubject", "TimerView", "TimersSubject",
    "UpdateBasefeeConfig", "UpdateLaneFeeMultipliers", "UpdateTimerConfig", "UpgradeActor",
]  # fmt: skip

NEEDS_HYPOTHESIS: Final = "ActorMachine and trailboss.testing.strategies need Hypothesis: pip install hypothesis"

_HOMES: Final = (
    "trailboss.testing.local_chain",
    "trailboss.testing.parties",
    "trailboss.testing.cheats",
    "trailboss.model.transactions",
    "trailboss.chain.proofs",
    "trailboss.views.records",
    "trailboss.views.jobs",
    "trailboss.chain.jobs",
    "trailboss.testing.machine",  # last: Hypothesis is loaded for those who ask for it
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        try:
            for home in map(import_module, _HOMES):
                if hasattr(home, name):
                    return getattr(home, name)
        except ModuleNotFoundError as error:
            if error.name != "hypothesis":
                raise
            raise ModuleNotFoundError(NEEDS_HYPOTHESIS, name=error.name) from None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
