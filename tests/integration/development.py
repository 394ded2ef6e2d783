"""What the scenarios of development chains share: a chain that is none, and short ways to drive and read timers."""

from msgspec.structs import replace

from trailboss.chain import Chain
from trailboss.chain.development import DEPLOYER, development_account, development_genesis
from trailboss.chain.drafts import draft_transaction
from trailboss.model.transactions import Instruction, Transaction
from trailboss.testing import LocalChain, Receipt, TimerView

MECHANISMS = ("fifo", "lane", "auction", "globalbox")
AFTER_TRANSACTIONS = ("fifo", "lane", "globalbox")
"""Those whose timers run at the end of a block."""


def open_local(mechanism: str = "fifo", **params: int) -> LocalChain:
    """Return a local chain with a ring of 8 and epochs of 4; parameters have two underscores for the dot."""
    overrides = {name.replace("__", "."): value for name, value in params.items()}
    return LocalChain(mechanism=mechanism, preset="minimal", params=overrides)


def ordinary_chain(mechanism: str = "fifo") -> Chain:
    """Return a chain with the same accounts that is no development chain."""
    return Chain(replace(development_genesis(mechanism=mechanism), development=False))


def of_deployer(chain: Chain, instruction: Instruction) -> Transaction:
    """Return an instruction signed by the system deployer of a chain."""
    return draft_transaction(chain, instruction, development_account(DEPLOYER).private_key)


def scheduled(chain: LocalChain, height: int, **options: object) -> TimerView:
    """Return a timer of the first account for a height, whatever the mechanism."""
    return chain.schedule(height, b"%d" % height, gas_limit=100_000, **options)  # type: ignore[arg-type]


def fired_at(chain: LocalChain, timer_id: bytes) -> int | None:
    """Return the height of the block in which a timer fired, or None."""
    found = [event.block_height for event in chain.events("timer.fired") if event.timer_id == timer_id]
    assert len(found) < 2
    return found[0] if found else None


def assert_reverted(receipt: Receipt, code: int, what: str) -> None:
    """Assert that a transaction reverted, for a reason and in so many words."""
    assert receipt.status == "reverted"
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.what) == (code, what)
