"""What development chains start from, accounts with public keys to spend from, and what interferes with their timers.

Decision: D-69
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.crypto.digest import domain_digest
from trailboss.crypto.signatures import address_of
from trailboss.execution.genesis import Genesis
from trailboss.mechanisms.base import Phase
from trailboss.model.timers import Timer
from trailboss.model.transactions import CancelTimer, MoveTimer
from trailboss.primitives.errors import ConfigurationError, Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.primitives.units import BASE_UNITS_PER_CBY

CHAIN_ID: Final = 1
ACCOUNT_COUNT: Final = 10  # accounts that are funded by default
ACCOUNTS_MAX: Final = 1_000
ACCOUNT_BALANCE: Final = 1_000_000 * BASE_UNITS_PER_CBY  # base units that every account holds at genesis
DEPLOYER: Final = "deployer"
PROPOSER: Final = "proposer"


def account_name(index: int) -> str:
    """Return the name of a numbered account, 0 to 999."""
    return f"account {index}"


class DevelopmentAccount(Struct, frozen=True):
    """An account whose private key is public: keep nothing of value in it."""

    name: str  # ``account 0`` to ``account 999``, ``deployer`` or ``proposer``
    address: Address  # its address
    private_key: bytes  # 32 bytes


def development_account(name: str) -> DevelopmentAccount:
    """Return the account of that name; its key is a digest of the name."""
    private_key = domain_digest(b"trailboss-test-account", name.encode())
    return DevelopmentAccount(name, address_of(private_key), private_key)


def development_genesis(
    *,
    preset: str = "mainnet",
    mechanism: str = "fifo",
    overrides: Mapping[str, int] | None = None,
    accounts: int = ACCOUNT_COUNT,
    image: bytes = b"",
) -> Genesis:
    """Return the genesis of a development chain: its accounts and the deployer are funded, and the deployer may govern.

    Overrides are parameters by dotted path; the numbered accounts begin with ``account 0``; ``image`` is the digest of
    the sandbox's image, empty for the native engine.

    Raises:
        ConfigurationError: Unless the accounts are 1 to ``ACCOUNTS_MAX``.
    """
    if type(accounts) is not int or not 1 <= accounts <= ACCOUNTS_MAX:
        raise ConfigurationError(f"accounts = {accounts!r} must be an integer within 1..={ACCOUNTS_MAX}")
    deployer = development_account(DEPLOYER).address
    funded = [*(development_account(account_name(index)).address for index in range(accounts)), deployer]
    return Genesis(
        chain_id=CHAIN_ID,
        preset=preset,
        mechanism=mechanism,
        proposer=development_account(PROPOSER).address,
        system_deployers=(deployer,),
        accounts=dict.fromkeys(funded, ACCOUNT_BALANCE),
        overrides=dict(overrides or {}),
        development=True,
        image=image,
    )


def draft_hold(chain: ChainReader, timer_id: bytes, until: int | None = None) -> MoveTimer:
    """Return the instruction that holds a timer back to a height; None for the last one at which it may fire.

    Raises:
        Rejection: ``NOT_FOUND`` if no such timer is live.
    """
    timer = _live_timer(chain, timer_id)
    return MoveTimer(timer_id, timer.expires_at if until is None else until)


def draft_force(chain: ChainReader, timer_id: bytes) -> MoveTimer:
    """Return the instruction that makes a timer due as early as can be, if it stands in the next block.

    It is due in that block then; where a block's timers run before its transactions, in the one after it.

    Raises:
        Rejection: ``NOT_FOUND`` if no such timer is live.
    """
    _live_timer(chain, timer_id)
    runs_before = chain.mechanism.policy.phase is Phase.BEFORE_TRANSACTIONS
    return MoveTimer(timer_id, chain.height + 1 + runs_before)


def draft_drop(chain: ChainReader, timer_id: bytes) -> CancelTimer:
    """Return the instruction that takes a timer away without running it.

    Raises:
        Rejection: ``NOT_FOUND`` if no such timer is live.
    """
    _live_timer(chain, timer_id)
    return CancelTimer(timer_id)


def _live_timer(chain: ChainReader, timer_id: bytes) -> Timer:
    timer = chain.timer(timer_id)
    if timer is None:
        what = f"there is no live timer 0x{timer_id.hex()}"
        raise Rejection(RejectionReason.NOT_FOUND, what, timer_id=timer_id.hex())
    return timer
