"""What the slow model holds: plain lists and dictionaries, copied as a whole wherever something may be rolled back.

Nothing here, nor in the other modules of the model, comes from the package under test. Amounts are base units.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tiny_keccak import keccak256 as _keccak

Params = Mapping[str, Mapping[str, int]]
ASK = "ask"
NAMED = bytes
"""What a timer's fees are if it names an agent of its own: that agent's address. Decision: D-86."""
"""What a timer offers whose actor has an agent: whatever the agent says."""
NO_CAP = 2**64


def keccak256(octets: bytes) -> bytes:
    """Return the 32-byte Keccak-256 digest."""
    return bytes(_keccak(octets))


class Account(NamedTuple):
    """Money and nonce; for an actor its source, too."""

    balance: int = 0
    nonce: int = 0
    source: bytes | None = None
    owner: bytes = b""
    timer_nonce: int = 0
    agent: bytes = b""


class Timer(NamedTuple):
    """A live timer, or one that is paid and waits for its turn in its block."""

    actor: bytes
    height: int
    timer_id: bytes
    sequence: int
    handler: str
    payload: bytes
    fee_payer: bytes
    gas_limit: int
    expires_at: int
    schedule_block: int
    deferred_for: str = ""
    fees: Any = ()
    """What it offers in the lane: nothing of its own, its two frozen fees per cycle, `ASK`, or the agent that it names.

    In the auction its standing bid, two fees per cycle and, if it states them, two per cell.
    """
    terms: Any = None
    """What the auction or Globalbox keeps besides."""


class Terms(NamedTuple):
    """What a block finds of the timer lane. Prices are base units per cycle or cell.

    Attributes:
        active: Whether the lane's rules hold.
        basefee: Lane basefee; the cycle basefee as long as the rules do not hold.
        previous_tip: Median tip of the last block's fires.
        cap: Cycles of one fire at most, as the lane sees it.
        cycle_price: What a cycle of a fire costs besides.
        cell_price: What a cell of a fire costs.
        last_used: Cycles that the last block used.
    """

    active: bool
    basefee: int
    previous_tip: int
    cap: int
    cycle_price: int
    cell_price: int
    last_used: int


class Message(NamedTuple):
    """A message that waits for the end of a block."""

    sender: bytes
    target: bytes
    payload: bytes


class Deferred(NamedTuple):
    """A call of an actor to itself that waits for the end of a later block. Decision: D-88."""

    actor: bytes
    handler: str
    payload: bytes
    created_at: int
    pool: int | None = None


class Pool(NamedTuple):
    """What an execution has left for what it has deferred: who pays, how much gas, at which prices and tips."""

    payer: bytes
    gas: tuple[int, int]
    prices: tuple[int, int]
    tips: tuple[int, int]


class Event(NamedTuple):
    """An event; ``fields`` is a dict for the protocol's own ones and bytes for an actor's."""

    name: str
    emitter: bytes
    fields: Any
    timer_id: bytes = b""


class Receipt(NamedTuple):
    """What one execution did and cost."""

    origin: str
    sender: bytes
    payer: bytes
    status: str
    code: int | None
    cycles_used: int
    cells_used: int
    reserved: int
    fee_burned: int
    tip: int
    refund: int
    return_value: bytes
    events: tuple[Event, ...]
    timer_id: bytes


class Tx(NamedTuple):
    """A transaction, as the model sees it: who, limits, fee caps, and an instruction as name and arguments."""

    sender: bytes
    nonce: int
    kind: str
    args: tuple[Any, ...]
    cycles_limit: int
    cells_limit: int
    max_fee_per_cycle: int
    max_fee_per_cell: int
    tip_per_cycle: int = 0
    tip_per_cell: int = 0
    chain_id: int = 1
    is_signed: bool = True


class Refused(Exception):
    """A rule refuses something; ``code`` is the public error code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Exhausted(BaseException):
    """A meter passed its limit."""


class Meter:
    """Two counters with limits."""

    def __init__(self, cycles_limit: int, cells_limit: int) -> None:
        self.limits = (cycles_limit, cells_limit)
        self.cycles = 0
        self.cells = 0

    def use(self, cycles: int = 0, cells: int = 0) -> None:
        """Count, and stop as soon as one of the two is above its limit."""
        self.cycles += cycles
        self.cells += cells
        if self.cycles > self.limits[0] or self.cells > self.limits[1]:
            raise Exhausted

    def code(self) -> int:
        """Return the error code of the limit that was passed."""
        return 1005 if self.cycles > self.limits[0] else 1006

    def used(self) -> tuple[int, int]:
        """Return what is charged: nobody pays for more than the limits."""
        return min(self.cycles, self.limits[0]), min(self.cells, self.limits[1])


@dataclass
class World:
    """Everything that a roll-back takes back."""

    accounts: dict[bytes, Account] = field(default_factory=dict)
    slots: dict[tuple[bytes, bytes], bytes] = field(default_factory=dict)
    timers: list[Timer] = field(default_factory=list)
    paid: list[tuple[Timer, int]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    deferred: list[Deferred] = field(default_factory=list)
    pools: dict[int, Pool] = field(default_factory=dict)
    owed: list[tuple[bytes, int]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    governed: dict[tuple[str, str], int] = field(default_factory=dict)
    totals: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("scheduled", "fired", "unfunded", "expired", "cancelled"), 0)
    )
    burned: int = 0
    votes: dict[tuple[str, str], tuple[int, int, int]] = field(default_factory=dict)
    """What changes with an epoch of governance: the value before, the value after, and from which height."""
    rescales: list[int] = field(default_factory=list)
    ended: list[Any] = field(default_factory=list)
    entries: list[Any] = field(default_factory=list)
    set_again: int = 0
    """Timers of Globalbox that were set under a name that is taken; for the outcomes only."""

    def copy(self) -> "World":
        """Return a world that shares nothing mutable with this one."""
        return World(
            dict(self.accounts),
            dict(self.slots),
            list(self.timers),
            list(self.paid),
            list(self.messages),
            list(self.deferred),
            dict(self.pools),
            list(self.owed),
            list(self.events),
            dict(self.governed),
            dict(self.totals),
            self.burned,
            dict(self.votes),
            list(self.rescales),
            list(self.ended),
            list(self.entries),
            self.set_again,
        )

    def become(self, other: "World") -> None:
        """Take over everything another world holds."""
        self.__dict__.update(other.__dict__)

    def account(self, address: bytes) -> Account:
        """Return an account, an empty one if there is none."""
        return self.accounts.get(address, Account())

    def change(self, address: bytes, **fields: Any) -> None:
        """Replace fields of an account."""
        self.accounts[address] = self.account(address)._replace(**fields)

    def credit(self, address: bytes, amount: int) -> None:
        """Add money, or take it if the amount is negative."""
        balance = self.account(address).balance + amount
        assert balance >= 0, "a balance fell below zero"
        if amount:
            self.change(address, balance=balance)

    def move(self, sender: bytes, to: bytes, amount: int) -> None:
        """Transfer money; refused with 1003 if there is too little."""
        if self.account(sender).balance < amount:
            raise Refused(1003)
        self.credit(sender, -amount)
        self.credit(to, amount)

    def replace_timer(self, old: Timer, new: Timer) -> None:
        """Put a changed record in the place of the old one."""
        self.timers[self.timers.index(old)] = new


Finder = Callable[[str], bytes]
"""What turns the names in scripts into addresses."""
