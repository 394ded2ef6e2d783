"""`Mempool`: the transactions that wait for a block. Decision: D-71."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from threading import Lock
from typing import Final

from trailboss.chain.admission import changed_accounts, standing_of
from trailboss.chain.reader import ChainReader
from trailboss.chain.signature_checks import find_signed, is_worth_sharing
from trailboss.codec.wire import decode_transaction, encode_transaction
from trailboss.crypto.digest import sha256
from trailboss.mempool import records
from trailboss.mempool.admission import Clearance, check_entry, find_room, find_void
from trailboss.mempool.journal import Journal
from trailboss.mempool.order import Contents, choose
from trailboss.model.transactions import Transaction, check_signature, transaction_hash
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Hash32

MAY_WAIT: Final = (RejectionReason.BLOCK_FULL, RejectionReason.BASEFEE_TOO_LOW)
"""Refusals of one block that another may take back."""
CHUNK: Final = 512  # senders, or transactions, that are dealt with before others get a turn
DEFAULT_LIMITS: Final = records.MempoolLimits()


class Mempool:
    """The transactions that wait for a block, of all senders.

    Any thread may call anything, at any time; one thread alone calls `take` and `settle`, and a `settle` follows every
    `take`. What is taken stays where it is until then, and nothing can take its place.

    Every transaction that is admitted has one `Ending`, which `add` and `settle` return as it comes about.
    """

    def __init__(self, limits: records.MempoolLimits = DEFAULT_LIMITS, journal: Journal | None = None) -> None:
        self.limits = limits
        self._journal = journal
        self._lock = Lock()
        self._contents = Contents(limits.remembered_max)
        self._order = self._contents.order
        self._pooled = self._contents.pooled
        self._view: ChainReader | None = None
        self._taken: frozenset[bytes] = frozenset()

    def check(self, view: ChainReader, transaction: Transaction) -> Clearance:
        """Refuse a transaction that could not come in now, but for its size, its signature and want of room.

        Raises:
            Rejection: As `check_entry`.
        """
        with self._lock:
            return check_entry(self._contents, self._latest(view), transaction, limits=self.limits, taken=self._taken)

    def find_signed(self, view: ChainReader, transactions: Sequence[Transaction]) -> frozenset[int]:
        """Return the places of those of many transactions whose signatures are valid: `admit` need not look at them.

        Left out are those that could not come in now, as in `admit`; of few transactions all are left out.
        """
        places: list[int] = []
        if is_worth_sharing(transactions):
            for place, transaction in enumerate(transactions):
                with suppress(Rejection):
                    self.check(view, transaction)
                    places.append(place)
        signed = find_signed([transactions[place] for place in places])
        return frozenset(places[at] for at in signed)

    def add(
        self,
        view: ChainReader,
        transaction: Transaction,
        raw: bytes,
        transaction_hash: Hash32,
        clearance: Clearance | None = None,
    ) -> records.AdmissionOutcome:
        """Take in a transaction whose signature has been checked, or refuse it; then nothing has changed.

        With a journal the transaction is written there before this returns. The view of the last `settle` counts, if
        there was one. A clearance that `check` has returned for it in this view stands if nothing has changed since.

        Raises:
            StorageError: If the journal cannot be written.
        """
        size, most = len(raw), self.limits.transaction_bytes_max
        try:
            if size > most:
                what = f"the transaction has {size} bytes, above {most}"
                raise Rejection(RejectionReason.INVALID_DATA, what, bytes=size, bytes_max=most)
            with self._lock:
                if transaction_hash in self._pooled:
                    known = records.already_known(transaction_hash)
                    return records.AdmissionOutcome(
                        hash=transaction_hash, status=records.AdmissionStatus.KNOWN, rejection=known
                    )
                verdict = self._add(self._latest(view), transaction, raw, transaction_hash, clearance)
                if self._journal is not None:
                    self._journal.shorten(self._pooled.values())
        except Rejection as rejection:
            return records.AdmissionOutcome(
                hash=transaction_hash, status=records.AdmissionStatus.REFUSED, rejection=rejection
            )
        return verdict

    def admit(
        self, view: ChainReader, raw: bytes, transaction: Transaction | None = None, *, is_signed: bool = True
    ) -> records.AdmissionOutcome:
        """Take in the transaction of wire bytes, or refuse it: all checks, the cheap ones before the signature.

        The caller may have decoded it already, and may vouch for it with ``is_signed`` False: see `find_signed`.

        Raises:
            StorageError: If the journal cannot be written.
        """
        # A transaction keeps its hash for the block.
        name = Hash32(sha256(raw)) if transaction is None else transaction_hash(transaction)
        try:
            if transaction is None:
                transaction = decode_transaction(raw)
            clearance = None
            if name not in self._pooled:
                # A flood of hopeless transactions must not delay the signatures.
                clearance = self.check(view, transaction)
                if is_signed:
                    check_signature(transaction)
            return self.add(view, transaction, raw, name, clearance)
        except Rejection as rejection:
            return records.AdmissionOutcome(hash=name, status=records.AdmissionStatus.REFUSED, rejection=rejection)

    def recover(self, view: ChainReader) -> records.Recovery:
        """Take in what waits in the journal, when a node starts. Signatures are not checked: `verify` does that.

        Raises:
            StorageError: If the journal cannot be written.
        """
        if self._journal is None:
            return records.Recovery()
        found = self._journal.take_found()
        endings: list[records.Ending] = []
        for name, (height, raw) in found.waiting.items():
            with self._lock:
                latest = self._latest(view)
                try:
                    transaction = decode_transaction(raw)
                    endings += self._add(latest, transaction, raw, Hash32(name), is_back=True, since=height).endings
                except Rejection as rejection:
                    endings.append(records.Ending(hash=Hash32(name), end=records.End.INVALIDATED, rejection=rejection))
        if endings:
            # A wait that has ended must not go on after the next start.
            with self._lock:
                self._journal.rewrite(self._pooled.values())
        return records.Recovery(admitted=len(self), endings=endings, damage=found.damage)

    def take(self, view: ChainReader, cycles_max: int, cells_max: int, count_max: int) -> list[records.Pooled]:
        """Return the best of what waits for the next block: by tip, then by arrival, those of a sender by nonce.

        All of it waits on until `settle`, which must follow. The view is that of the last `settle`. Complexity: O(log
        n) for each transaction, with n senders; O(n log n) once for other basefees.
        """
        prices = view.rules().user_basefees()
        with self._lock:
            self._order.reprice(prices)
            taken = choose(self._order, cycles_max, cells_max, count_max, self.limits.passed_over_max)
            self._taken = frozenset(pooled.hash for pooled in taken)
            self._order.changes += 1
        return taken

    def settle(
        self,
        view: ChainReader,
        included: Iterable[Hash32],
        refused: Mapping[Hash32, Rejection],
        returned: Sequence[Transaction] = (),
    ) -> list[records.Ending]:
        """Follow the chain: after a block, or several, or after it has gone back.

        What a block refuses for want of room, for its basefees or for a nonce that is missing before it waits on. The
        transactions of senders whose account has changed are looked at again; those ``returned`` are no longer in a
        block, in the order in which they were. The endings are in any order.

        Raises:
            StorageError: If the journal cannot be written.
        """
        before = self._view
        prices = view.rules().user_basefees()
        lost = [(name, rejection) for name, rejection in refused.items() if not self._stays(view, name, rejection)]
        with self._lock:
            self._view, self._taken = view, frozenset()
            self._order.changes += 1
            self._order.reprice(prices)
        over: list[tuple[Hash32, records.End, Rejection | None]]
        over = [(name, records.End.INCLUDED, None) for name in included]
        endings = self._end_each(over + [(name, records.End.REFUSED, rejection) for name, rejection in lost])
        with self._lock:
            waiting = self._order.queues.keys()
            changed = changed_accounts(before) if waiting and before is not None else None
            senders = sorted(waiting if changed is None else waiting & changed)
        for start in range(0, len(senders), CHUNK):
            endings += self._look_again(view, senders[start : start + CHUNK])
        with self._lock:
            old = self._contents.older_than(view.height - self.limits.expiry_blocks + 1)
        endings += self._end_each(
            [(pooled.hash, records.End.EXPIRED, records.expired(pooled, view.height)) for pooled in old]
        )
        for transaction in returned:
            endings += self._return(view, transaction)
        if self._journal is not None:
            with self._lock:
                self._journal.shorten(self._pooled.values())
        return endings

    def close(self) -> None:
        """Close the journal."""
        if self._journal is not None:
            self._journal.close()

    def __len__(self) -> int:
        return len(self._pooled)

    def find(self, transaction_hash: bytes) -> records.Pooled | None:
        """Return a transaction that waits, or None."""
        return self._pooled.get(transaction_hash)

    def refusal(self, transaction_hash: bytes) -> Rejection | None:
        """Return why the wait of a transaction ended other than in a block; None if it did not, or long ago."""
        return self._contents.refusals.get(transaction_hash)

    def pooled(self) -> list[records.Pooled]:
        """Return all that wait, by arrival."""
        with self._lock:
            return list(self._pooled.values())

    def page(self, offset: int, limit: int) -> list[records.Pooled]:
        """Return some of those that wait, by arrival."""
        with self._lock:
            return list(islice(self._pooled.values(), offset, offset + limit))

    def of_sender(self, sender: bytes) -> list[records.Pooled]:
        """Return those of one sender, by nonce."""
        with self._lock:
            queue = self._order.queues.get(sender)
            return [] if queue is None else list(queue.pooled)

    def next_nonce(self, view: ChainReader, sender: bytes) -> int:
        """Return the first nonce that a sender has not used yet, what waits included."""
        with self._lock:
            nonce = standing_of(self._latest(view), sender).nonce
            queue = self._order.queues.get(sender)
            return nonce if queue is None else queue.next_nonce(nonce)

    def waiting(self, view: ChainReader, sender: bytes) -> int:
        """Return how many transactions of a sender wait, as drafts count them: from its nonce in the view on."""
        account = view.account(sender)
        return self.next_nonce(view, sender) - (0 if account is None else account.nonce)

    def statistics(self) -> records.Statistics:
        """Return how much waits."""
        with self._lock:
            counts = {"executable": self._order.executable, "senders": len(self._order.queues)}
            octets = 0 if self._journal is None else self._journal.size
            return records.Statistics(transactions=len(self), bytes=self._contents.size, journal_bytes=octets, **counts)

    # Parts of the above. The first two are called under the lock.

    def _latest(self, view: ChainReader) -> ChainReader:
        # A caller with a view from before the last block would admit what that block has made void.
        if self._view is not None:
            return self._view
        self._order.reprice(view.rules().user_basefees())
        return view

    def _add(
        self,
        view: ChainReader,
        transaction: Transaction,
        raw: bytes,
        name: Hash32,
        clearance: Clearance | None = None,
        *,
        is_back: bool = False,
        since: int | None = None,
    ) -> records.AdmissionOutcome:
        """Take a transaction in; ``is_back``: it has waited before, ``since``: it is in the journal already."""
        # CHECK
        contents, limits, taken = self._contents, self.limits, self._taken
        if clearance is None or clearance.changes != contents.order.changes:
            clearance = check_entry(contents, view, transaction, limits=limits, taken=taken, is_back=is_back)
        queue, present, needs, _ = clearance
        leaving = find_room(contents, queue, transaction, len(raw), present, limits=limits, taken=taken)
        gone = leaving if present is None else (*leaving, present)
        if self._journal is not None and since is None:
            self._journal.append(view.height, raw, gone)
        # RUN
        height = view.height if since is None else since
        pooled = records.Pooled(
            transaction=transaction,
            hash=name,
            raw=raw,
            arrival=contents.arrivals,
            admitted_height=height,
            cost=needs.cost,
            cycles=needs.cycles,
            cells=needs.cells,
        )
        over = [(each, records.End.EVICTED, records.evicted(each, pooled)) for each in leaving]
        if present is not None:
            over.append((present, records.End.REPLACED, records.replaced_by(present, pooled)))
        endings = contents.end(over)
        contents.put(queue, pooled)
        status = records.AdmissionStatus.ACCEPTED if present is None else records.AdmissionStatus.REPLACED
        return records.AdmissionOutcome(hash=name, status=status, endings=tuple(endings))

    def _return(self, view: ChainReader, transaction: Transaction) -> Sequence[records.Ending]:
        raw, name = encode_transaction(transaction), transaction_hash(transaction)
        with self._lock:
            if name in self._pooled:
                return ()
            try:
                return self._add(view, transaction, raw, name, is_back=True).endings
            except Rejection as rejection:
                self._contents.refusals[name] = rejection
                return (records.Ending(hash=name, end=records.End.INVALIDATED, rejection=rejection),)

    def _stays(self, view: ChainReader, name: Hash32, rejection: Rejection) -> bool:
        """Return whether a transaction that one block refused may wait for another."""
        pooled = self._pooled.get(name)
        if pooled is not None and rejection.reason is RejectionReason.NONCE_MISMATCH:
            return pooled.transaction.nonce > standing_of(view, pooled.transaction.sender).nonce
        return rejection.reason in MAY_WAIT

    def _end_each(self, over: Sequence[tuple[Hash32, records.End, Rejection | None]]) -> list[records.Ending]:
        endings = []
        for start in range(0, len(over), CHUNK):
            with self._lock:
                chunk = over[start : start + CHUNK]
                waiting = [(self._pooled[name], end, why) for name, end, why in chunk if name in self._pooled]
                if waiting and self._journal is not None:
                    self._journal.forget([pooled for pooled, _, _ in waiting])
                endings += self._contents.end(waiting)
        return endings

    def _look_again(self, view: ChainReader, senders: Sequence[bytes]) -> list[records.Ending]:
        """End the waits that senders' accounts, as they are now, rule out."""
        void: list[tuple[Hash32, records.End, Rejection | None]] = []
        with self._lock:
            for sender in senders:
                queue = self._order.queues.get(sender)
                if queue is not None:
                    standing = standing_of(view, sender)
                    void += [(each.hash, records.End.INVALIDATED, why) for each, why in find_void(queue, standing)]
                    queue.nonce = standing.nonce
                    self._order.refresh(queue)
        # The places of those queues are right again after this; no block is chosen in between.
        return self._end_each(void)
