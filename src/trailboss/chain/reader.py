"""What can be read of a chain at one height: its blocks, its state, and whether all of it adds up."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from trailboss.chain.history import BlockSequence
from trailboss.chain.proofs import prove
from trailboss.execution.genesis import Genesis, encode_genesis
from trailboss.execution.ledger import read_economy
from trailboss.execution.markets import MARKETS
from trailboss.execution.session import BlockContext
from trailboss.governance.rules import SCHEDULER_KEY, Rules, read_rules
from trailboss.mechanisms.base import Mechanism
from trailboss.mechanisms.registry import Succession
from trailboss.model.actors import Account, decode_account
from trailboss.model.blocks import Block
from trailboss.model.configs import SchedulerTotals, amount_of, stored
from trailboss.model.decisions import DecisionRecord
from trailboss.model.timers import Timer, decode_timer
from trailboss.params import ChainParams
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, Height
from trailboss.state.keys import ACCOUNTS, STORAGE, TIMERS, account_key, storage_range, timer_key, timer_range
from trailboss.state.proofs.proof import Proof
from trailboss.state.proofs.subjects import Subject
from trailboss.state.slots import decode_slot
from trailboss.state.store import ReadableStore
from trailboss.timer_queue.placement import tier_of
from trailboss.timer_queue.source import StoredTimers


class ChainReader:
    """A chain for reading: a `Chain` at its head, or a `ChainView` after one block.

    A subclass sets the attributes; what is only shown to people is in `trailboss.views`.
    """

    genesis: Genesis  # what it started from
    store: ReadableStore  # the committed state
    blocks: BlockSequence  # its blocks by height, a sequence for reading
    params: ChainParams  # its parameters before governance
    _mechanisms: Succession
    instance_id: bytes  # hash of the genesis, 32 bytes
    # The rules read last, the state root then, and the values that they were read from, by key.
    _rules: tuple[Rules, Hash32, Mapping[bytes, bytes | None]] | None = None

    def rules(self) -> Rules:
        """Return the rules of the next block."""
        height, root, read = self.store.height + 1, self.store.state_root, self.store.read
        if self._rules is not None:
            known, seen, values = self._rules
            # Equal values give equal rules, but for the height and for what begins at one.
            if known.height <= height < known.changes_at and (seen == root or self._has_kept(values, seen)):
                known = known if known.height == height else replace(known, height=Height(height))
                self._rules = known, root, values
                return known
        values = {}

        def note(key: bytes) -> bytes | None:
            values[key] = read(key)
            return values[key]

        rules = read_rules(self.params, note, height)
        self._rules = rules, root, values
        return rules

    def _has_kept(self, values: Mapping[bytes, bytes | None], root: Hash32) -> bool:  # noqa: ARG002  # a chain's own
        """Return whether some keys have the values that they had at a state root."""
        return all(self.store.read(key) == value for key, value in values.items())

    def next_context(self, timestamp_ms: int | None = None, proposer: Address | None = None) -> BlockContext:
        """Return the facts of the next block; its arguments and refusals are those of `Chain.stage`."""
        parent = self.blocks.head
        if timestamp_ms is None:
            timestamp_ms = parent.header.timestamp_ms + self.blocks.interval_ms
        elif timestamp_ms < parent.header.timestamp_ms:
            what = f"timestamp {timestamp_ms} ms lies before the parent's {parent.header.timestamp_ms} ms"
            raise Rejection(RejectionReason.INVALID_DATA, what)
        if timestamp_ms > U64_MAX:
            what = f"timestamp {timestamp_ms} ms of block {parent.height + 1} lies above {U64_MAX} ms"
            raise Rejection(RejectionReason.INVALID_DATA, what)
        rules = self.rules()
        mechanism = self._mechanisms.by_market[rules.market.kind]
        return BlockContext(
            chain_id=self.genesis.chain_id,
            chain_instance_id=self.instance_id,
            height=Height(parent.height + 1),
            timestamp_ms=timestamp_ms,
            parent=parent.hash,
            proposer=self.genesis.proposer if proposer is None else proposer,
            parent_cycles_used=parent.header.cycles_used,
            rules=rules,
            parent_state_root=parent.header.state_root,
            mechanism=mechanism.name,
            calls=mechanism.policy.calls,
            is_development=self.genesis.development,
        )

    def account(self, address: bytes) -> Account | None:
        """Return an account, or None."""
        octets = self.store.read(account_key(address))
        return None if octets is None else decode_account(octets)

    def balance(self, address: bytes) -> int:
        """Return a balance in base units; 0 for an account that is not there."""
        account = self.account(address)
        return 0 if account is None else amount_of(account.balance)

    def accounts(self) -> Iterator[tuple[bytes, Account]]:
        """Yield every address and account, in order of address."""
        for key, octets in self.store.iterate(ACCOUNTS):
            yield key[1:], decode_account(octets)

    def storage(self, address: bytes) -> dict[bytes, bytes]:
        """Return all slots of an actor."""
        return dict(decode_slot(octets) for _, octets in self.store.iterate(STORAGE, *storage_range(address)))

    def timer(self, timer_id: bytes) -> Timer | None:
        """Return a live timer by id, or None."""
        height = self.store.timer_height(timer_id)
        if height is None:
            return None
        octets = self.store.read(timer_key(height, timer_id))
        return None if octets is None else decode_timer(octets)

    def timers(self, first: int = 0, last: int = U64_MAX) -> Iterator[Timer]:
        """Yield the live timers due in ``first..=last`` in order of height and, within a height, of insertion.

        Complexity: O(1) a timer of the range, whatever lies outside it; what is held at once is one height's timers.
        """
        waiting: list[Timer] = []
        for _, octets in self.store.iterate(TIMERS, *timer_range(Height(first), Height(last))):
            timer = decode_timer(octets)
            if waiting and waiting[0].height != timer.height:
                yield from sorted(waiting, key=lambda item: item.sequence)
                waiting.clear()
            waiting.append(timer)
        yield from sorted(waiting, key=lambda item: item.sequence)

    def timers_at(self, height: int) -> list[Timer]:
        """Return the live timers of one height in order of insertion. Spec: CIP-5 §3.2."""
        return list(self.timers(height, height))

    def timer_count(self) -> int:
        """Return how many timers are live. Complexity: O(1)."""
        return self.store.count(TIMERS)

    def due_count(self) -> int:
        """Return how many timers are due and have been carried. Complexity: O(log n)."""
        return StoredTimers(self.store).count_below(self.store.height + 1)

    def timer_counts(self, bounds: Sequence[int]) -> list[int]:
        """Return how many live timers are due between each of some heights and the next one: one count less than these.

        The timers of the last height are not counted. Complexity: O(log n) a bound, however many timers there are.

        Raises:
            Rejection: ``INVALID_DATA`` if the heights do not ascend or lie outside of 0..=2**64.
        """
        if any(not 0 <= bound <= U64_MAX + 1 for bound in bounds) or list(bounds) != sorted(bounds):
            what = f"heights {', '.join(map(str, bounds))} must ascend within 0..={U64_MAX + 1}"
            raise Rejection(RejectionReason.INVALID_DATA, what)
        source = StoredTimers(self.store)
        return [last - first for first, last in pairwise(map(source.count_below, bounds))]

    def tier(self, timer: Timer) -> str:
        """Return the tier that a live timer's height calls for now."""
        return tier_of(timer.height, self.store.height, self.params.calendar).value

    def economy(self) -> tuple[int, int]:
        """Return the supply at genesis and what has been burned since, in base units."""
        economy = read_economy(self.store.read)
        return amount_of(economy.supply), amount_of(economy.burned)

    def circulating(self) -> int:
        """Return the sum of all balances, in base units. Complexity: O(accounts)."""
        return sum(amount_of(account.balance) for _, account in self.accounts())

    def totals(self) -> SchedulerTotals:
        """Return the running totals over all timers."""
        return stored(self.store.read, SCHEDULER_KEY, SchedulerTotals) or SchedulerTotals()

    def fire_count(self) -> int:
        """Return how many fires have run, those of state watches included, which end no timer. Complexity: O(1)."""
        market = self.rules().market
        return MARKETS[market.kind].fire_count(market, self.totals())

    @property
    def height(self) -> int:
        """Height of the head."""
        return self.blocks.head.height

    @property
    def head(self) -> Block:
        """The last block."""
        return self.blocks.head

    def genesis_record(self) -> bytes:
        """Return the canonical encoding of what the chain started from; see `encode_genesis`."""
        return encode_genesis(self.genesis)

    @property
    def state_root(self) -> Hash32:
        """Root of the state after the head."""
        return self.store.state_root

    @property
    def mechanism(self) -> Mechanism:
        """What selects the due timers of the next block."""
        return self._mechanisms.by_market[self.rules().market.kind]

    def decisions(self, height: int) -> DecisionRecord | None:
        """Return how the block of a height chose among its due timers; None if it had no choice. Decision: D-53."""
        return self.blocks[height].decisions

    def prove(self, subject: Subject) -> Proof:
        """Return the proof of what the state after the head holds of a subject; it verifies against ``state_root``.

        Spec: CIP-1v3 §2.3
        Decision: D-49
        """
        return prove(self.store, subject)

    def check_invariants(self) -> None:
        """Check money, timers and what the state keeps for the mechanism against one another, the slow way.

        Spec: CIP-5 §5.4
        Decision: D-35

        Raises:
            InvariantError: Naming what does not add up.
        """
        self.check_sums(self.circulating())
        self._check_timers()
        MARKETS[self.rules().market.kind].check(self)

    def check_sums(self, balances: int) -> None:
        """Check the sum of all balances against the supply, and the number of timers against their totals.

        Raises:
            InvariantError: Naming what does not add up.
        """
        supply, burned = self.economy()
        if balances + burned != supply:
            raise InvariantError(f"balances {balances} + burned {burned} is not the supply {supply}")
        totals, live = self.totals(), self.timer_count()
        ended = totals.fired + totals.unfunded + totals.expired + totals.cancelled
        if ended + live != totals.scheduled:
            raise InvariantError(f"{totals.scheduled} timers are scheduled, {ended} ended and {live} live")

    def _check_timers(self) -> None:
        counts: dict[bytes, int] = {}
        for timer in self.timers():
            counts[timer.actor] = counts.get(timer.actor, 0) + 1
            found = self.store.timer_height(timer.timer_id)
            if found != timer.height:
                raise InvariantError(f"timer {timer.timer_id.hex()} is due at {timer.height} and found at {found}")
        for address, account in self.accounts():
            if account.timer_count != counts.get(address, 0):
                raise InvariantError(
                    f"actor {address.hex()} counts {account.timer_count} timers and has {counts.get(address, 0)}"
                )
