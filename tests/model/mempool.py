"""A mempool in one list: everything is looked for, counted and sorted anew each time. What the real one is held to."""

from dataclasses import dataclass, field

from trailboss.chain.admission import standing_of
from trailboss.chain.reader import ChainReader
from trailboss.mempool.records import MempoolLimits
from trailboss.model.transactions import Transaction, Transfer

TRANSFER_CYCLES = 10_000
TRANSFER_CELLS = 500


@dataclass(frozen=True)
class Entry:
    """One transaction that waits."""

    transaction: Transaction
    name: bytes
    size: int
    arrival: int
    height: int

    @property
    def sender(self) -> bytes:
        """Who sends it."""
        return self.transaction.sender

    @property
    def nonce(self) -> int:
        """Its nonce."""
        return self.transaction.nonce


@dataclass
class SlowMempool:
    """What the real one should hold and say. Outcomes are (name, how, code of the reason)."""

    limits: MempoolLimits
    entries: list[Entry] = field(default_factory=list)
    taken: frozenset[bytes] = frozenset()
    arrivals: int = 0
    outcomes: list[tuple[bytes, str, int | None]] = field(default_factory=list)

    def of(self, sender: bytes, entries: list[Entry] | None = None) -> list[Entry]:
        """Return those of a sender, by nonce."""
        return sorted(
            (each for each in (self.entries if entries is None else entries) if each.sender == sender),
            key=lambda each: each.nonce,
        )

    # Coming

    def add(
        self, reader: ChainReader, transaction: Transaction, name: bytes, size: int, since: int | None = None
    ) -> tuple[str, int | None]:
        """Return status and code; `outcomes` gets what ends for it. One that is back waits ``since`` a height."""
        if any(each.name == name for each in self.entries):
            return "known", 1904
        code = self.fault(reader, transaction, size, is_back=since is not None)
        if code is not None:
            return "refused", code
        same = [each for each in self.of(transaction.sender) if each.nonce == transaction.nonce]
        new = Entry(transaction, name, size, self.arrivals, reader.height if since is None else since)
        left = self.with_room_for(reader, new, same)
        if left is None:
            return "refused", 1901
        for each in self.entries:
            if each in same:
                self.outcomes.append((each.name, "replaced", 1906))
            elif each not in left:
                self.outcomes.append((each.name, "evicted", 1901))
        self.entries = [*left, new]
        self.arrivals += 1
        return ("replaced" if same else "accepted"), None

    def fault(self, reader: ChainReader, transaction: Transaction, size: int, *, is_back: bool = False) -> int | None:
        """Return the code of the first rule that a transaction breaks, of those that do not need room."""
        limits, nonce = self.limits, standing_of(reader, transaction.sender).nonce
        mine = [each for each in self.of(transaction.sender) if each.nonce >= nonce]
        same = [each for each in mine if each.nonce == transaction.nonce]
        others = sum(cost(each.transaction) for each in mine if each not in same)
        left = standing_of(reader, transaction.sender).balance - others
        faults = [
            (size > limits.transaction_bytes_max and not is_back, 1213),
            (transaction.chain_id != reader.genesis.chain_id, 1011),
            (transaction.nonce < nonce, 1002),
            (transaction.nonce > nonce + limits.nonces_ahead_max and not is_back, 1903),
            (transaction.cycles_limit < TRANSFER_CYCLES, 1005),
            (transaction.cycles_limit > reader.rules().params.limits.block_cycles_max, 1012),
            (offer(reader, transaction) < 0 and not is_back, 1008),
            (left < fees(transaction), 1004),
            (left < cost(transaction), 1003),
            (bool(same) and not self.is_better(transaction, same[0].transaction), 1902),
            (any(each.name in self.taken for each in same), 1002),
        ]
        return next((code for broken, code in faults if broken), None)

    def is_better(self, new: Transaction, old: Transaction) -> bool:
        """Return whether a transaction may replace another."""
        pairs = [
            (new.max_priority_fee_per_cycle, old.max_priority_fee_per_cycle),
            (new.max_priority_fee_per_cell, old.max_priority_fee_per_cell),
            (new.max_fee_per_cycle, old.max_fee_per_cycle),
            (new.max_fee_per_cell, old.max_fee_per_cell),
        ]
        percent = 100 + self.limits.replacement_percent
        return pairs[0][0] > pairs[0][1] and all(100 * after >= percent * before for after, before in pairs)

    def with_room_for(self, reader: ChainReader, new: Entry, same: list[Entry]) -> list[Entry] | None:
        """Return what stays when a transaction comes in the place of another, or of none; None if it has no room."""
        limits, left = self.limits, [each for each in self.entries if each not in same]
        mine = self.of(new.sender)
        if len(mine) >= limits.sender_transactions_max and not same:
            if mine[-1].nonce < new.nonce or mine[-1].name in self.taken:
                return None
            left.remove(mine[-1])
        before = [each for each in mine if each.nonce < new.nonce]
        worth = self.worth(reader, new, [*before, new])
        while len(left) >= limits.transactions_max or self.size(left) + new.size > limits.bytes_max:
            last = [self.of(sender, left)[-1] for sender in sorted({each.sender for each in left})]
            last = [each for each in last if each.name not in self.taken]
            # What each is worth now, before the new one comes.
            last.sort(key=lambda each: (self.worth(reader, each, self.entries), -each.arrival))
            if not last or self.worth(reader, last[0], self.entries) >= worth:
                return None
            left.remove(last[0])
        return left

    def worth(self, reader: ChainReader, entry: Entry, entries: list[Entry]) -> tuple[bool, int]:
        """Return whether a transaction can run with those before it, and their lowest offer."""
        before = [each for each in self.of(entry.sender, entries) if each.nonce <= entry.nonce]
        nonce = standing_of(reader, entry.sender).nonce
        has_no_gap = [each.nonce for each in before] == list(range(nonce, entry.nonce + 1))
        return has_no_gap, min(offer(reader, each.transaction) for each in before)

    def size(self, entries: list[Entry]) -> int:
        """Return the bytes of transactions."""
        return sum(each.size for each in entries)

    # Going

    def take(self, reader: ChainReader, cycles_max: int, cells_max: int, count_max: int) -> list[bytes]:
        """Return names, in order."""
        names: list[bytes] = []
        cycles = cells = passed_over = 0
        waiting = list(self.entries)
        nonces = {each.sender: standing_of(reader, each.sender).nonce for each in waiting}
        while len(names) < count_max and passed_over <= self.limits.passed_over_max:
            ready = [each for each in waiting if each.nonce == nonces[each.sender]]
            ready = [each for each in ready if offer(reader, each.transaction) >= 0]
            if not ready:
                break
            best = min(ready, key=lambda each: (-offer(reader, each.transaction), each.arrival))
            waiting.remove(best)
            cycles_limit, cells_limit = best.transaction.cycles_limit, best.transaction.cells_limit
            if cycles + cycles_limit <= cycles_max and cells + cells_limit <= cells_max:
                names.append(best.name)
                nonces[best.sender] += 1
                cycles += TRANSFER_CYCLES
                cells += TRANSFER_CELLS
            elif cycles_limit <= cycles_max and cells_limit <= cells_max:
                passed_over += 1
        self.taken = frozenset(names)
        return names

    def settle(
        self,
        reader: ChainReader,
        included: list[bytes],
        refused: dict[bytes, int],
        returned: list[tuple[Transaction, bytes, int]],
    ) -> None:
        """Follow the chain; `outcomes` gets what ends."""
        self.taken = frozenset()
        for name in included:
            self.drop(name, "included", None)
        for name, code in refused.items():
            [entry] = [each for each in self.entries if each.name == name] or [None]
            gap = entry is not None and code == 1002 and entry.nonce > standing_of(reader, entry.sender).nonce
            if code not in (1008, 1012) and not gap:
                self.drop(name, "refused", code)
        for sender in sorted({each.sender for each in self.entries}):
            self.look_again(reader, sender)
        for entry in list(self.entries):
            if entry.height + self.limits.expiry_blocks <= reader.height:
                self.drop(entry.name, "expired", 1905)
        for transaction, name, size in returned:
            status, code = self.add(reader, transaction, name, size, since=reader.height)
            if status == "refused":
                self.outcomes.append((name, "invalidated", code))

    def look_again(self, reader: ChainReader, sender: bytes) -> None:
        """Drop what an account rules out."""
        standing = standing_of(reader, sender)
        for entry in self.of(sender):
            if entry.nonce < standing.nonce:
                self.drop(entry.name, "invalidated", 1002)
        while sum(cost(each.transaction) for each in self.of(sender)) > standing.balance:
            *others, last = self.of(sender)
            left = standing.balance - sum(cost(each.transaction) for each in others)
            self.drop(last.name, "invalidated", 1004 if left < fees(last.transaction) else 1003)

    def drop(self, name: bytes, how: str, code: int | None) -> None:
        """End a wait."""
        for entry in [each for each in self.entries if each.name == name]:
            self.entries.remove(entry)
            self.outcomes.append((name, how, code))

    def next_nonce(self, reader: ChainReader, sender: bytes) -> int:
        """Return the first free nonce."""
        nonce, mine = standing_of(reader, sender).nonce, [each.nonce for each in self.of(sender)]
        while nonce in mine:
            nonce += 1
        return nonce

    def restart(self, reader: ChainReader) -> None:
        """Begin with nothing, and have all come back in order; `outcomes` gets what cannot."""
        before = sorted(self.entries, key=lambda each: each.arrival)
        self.entries, self.arrivals, self.taken = [], 0, frozenset()
        for entry in before:
            status, code = self.add(reader, entry.transaction, entry.name, entry.size, since=entry.height)
            if status == "refused":
                self.outcomes.append((entry.name, "invalidated", code))


def fees(transaction: Transaction) -> int:
    """Return what a transaction's fees can be at most."""
    return (
        transaction.cycles_limit * transaction.max_fee_per_cycle
        + transaction.cells_limit * transaction.max_fee_per_cell
    )


def cost(transaction: Transaction) -> int:
    """Return what a transaction can cost at most."""
    instruction = transaction.instruction
    return fees(transaction) + (instruction.amount if isinstance(instruction, Transfer) else 0)


def offer(reader: ChainReader, transaction: Transaction) -> int:
    """Return the effective tip; negative for a transaction that the basefees price out."""
    cycle_basefee, cell_basefee = reader.rules().user_basefees()
    if transaction.max_fee_per_cell < cell_basefee:
        return -1
    return min(transaction.max_priority_fee_per_cycle, transaction.max_fee_per_cycle - cycle_basefee)
