"""Chains to measure: funded accounts, actors that run no code, and as many pending timers as wanted."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from trailboss.chain import Chain
from trailboss.crypto.digest import domain_digest, keccak256
from trailboss.crypto.signatures import address_of
from trailboss.execution.block import Applied, seal_block
from trailboss.execution.genesis import Genesis, encode_genesis
from trailboss.governance.rules import SCHEDULER_KEY
from trailboss.metering.meter import Meter
from trailboss.model.actors import Account, decode_account, encode_account
from trailboss.model.configs import SchedulerTotals, encode_record
from trailboss.model.timers import DEFAULT_HANDLER, RECORD_VERSION, Timer, TimerRequest, encode_timer, timer_id
from trailboss.model.transactions import ExecuteActor, Instruction, Transaction, sign_transaction
from trailboss.primitives.octets import Address
from trailboss.primitives.units import Cycles, Height
from trailboss.state.disk.store import DEFAULT_SETTINGS, DiskStore, StoreSettings
from trailboss.state.keys import account_key, code_key, timer_key
from trailboss.vm.engine import Engine, Frame, FrameOutcome
from trailboss.vm.host import Host

BALANCE = 10**18
SCRIPT = "# what it does is in the payload\n"
SCHEDULE = "schedule"
CANCEL = "cancel"
DISPATCH = "dispatch"
TIMER_PAYLOAD = bytes(32)
FIRE_CYCLES = 20_000
"""Gas limit of a planted or scheduled timer; the price of a frame is half of it."""
CALL_CYCLES = 15_000_000
CALL_CELLS = 900_000
FEE_CAP = 10**9
OVERRIDES = {"timers.max_timers_per_actor": 10_000_000, "timers.lane_cycles_per_block": 1_000_000_000}
"""A lane and a count per actor that never bind: the subject is the cost of a timer, not the protocol's limits."""
PLANTED_AT_ONCE = 100_000
"""Timers that one block plants; more would only hold more records in memory at a time."""


class ScriptedEngine:
    """An engine that runs no code, so that what is left is the chain.

    The handler ``schedule`` schedules a timer at each height that its payload lists, ``cancel`` cancels each timer that
    its payload lists, ``dispatch`` calls a handler of each actor that it lists; every other handler returns at once.
    """

    def version(self) -> str:
        """Return a name."""
        return "scripted"

    def check_source(self, source: str, code_hash: bytes) -> None:
        """Accept everything."""

    def name_source(self, code_hash: bytes, path: str) -> None:
        """Do nothing."""

    def handlers(self, source: str, code_hash: bytes) -> frozenset[str]:  # noqa: ARG002
        """Return the handlers that a script has."""
        return frozenset((SCHEDULE, CANCEL, DISPATCH, DEFAULT_HANDLER))

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:  # noqa: ARG002
        """Do what the payload says."""
        if frame.handler == SCHEDULE:
            for height in msgspec.msgpack.decode(frame.payload):
                host.schedule_timer(TimerRequest(height, TIMER_PAYLOAD, gas_limit=FIRE_CYCLES))
        elif frame.handler == CANCEL:
            for identity in msgspec.msgpack.decode(frame.payload):
                host.cancel_timer(identity)
        elif frame.handler == DISPATCH:
            for actor, handler, payload in msgspec.msgpack.decode(frame.payload):
                host.call_actor(actor, handler, payload, CALL_CYCLES)
        return FrameOutcome(b"", None)

    def perform(self, action: Callable[[], Any]) -> Any:
        """Run an action here."""
        return action()

    def prepare(self) -> None:
        """Load nothing."""

    def close(self) -> None:
        """Release nothing."""


class World:
    """A chain with senders and actors.

    Attributes:
        chain: The chain.
        keys: Private keys of the senders.
        senders: Their addresses.
        actors: Addresses of the actors.
        source: The code of every actor.
        code_hash: Its hash.
    """

    def __init__(
        self,
        senders: int,
        actors: int,
        engine: Engine | None = None,
        source: str = SCRIPT,
        *,
        overrides: Mapping[str, int] = OVERRIDES,
        directory: Path | None = None,
        durable: bool = False,
        settings: StoreSettings = DEFAULT_SETTINGS,
    ) -> None:
        """Start a chain, or open the one that a world of the same senders and actors has left in a directory.

        Args:
            senders: Funded accounts with keys.
            actors: Funded accounts that become actors when timers are planted.
            engine: What runs them; None for `ScriptedEngine`.
            source: The code of all of them.
            overrides: Parameters that differ from the preset mainnet.
            directory: Where the chain lies on disk; None for one in memory.
            durable: Whether a block on disk survives the end of the machine, and not only that of the process.
            settings: What a store on disk is tuned with.
        """
        self.keys = [domain_digest(b"benchmark-sender", index.to_bytes(8, "big")) for index in range(senders)]
        self.senders = [address_of(key) for key in self.keys]
        self.actors = [
            Address(domain_digest(b"benchmark-actor", index.to_bytes(8, "big"))[:20]) for index in range(actors)
        ]
        self.source = source.encode()
        self.code_hash = keccak256(self.source)
        genesis = Genesis(
            chain_id=1,
            proposer=Address(b"\x11" * 20),
            accounts=dict.fromkeys((*self.senders, *self.actors), BALANCE),
            overrides=dict(overrides),
        )
        disk = None
        if directory is not None:
            if directory.exists():
                disk = DiskStore.open(directory, durable=durable, settings=settings)
            else:
                disk = DiskStore.create(directory, encode_genesis(genesis), durable=durable, settings=settings)
        self.chain = Chain(genesis, engine or ScriptedEngine(), disk)

    def close(self) -> None:
        """Close the chain."""
        self.chain.close()

    def plant(self, heights: Iterable[int], handler: str = DEFAULT_HANDLER, cycles: int = FIRE_CYCLES) -> None:
        """Make the actors what they are, with one pending timer at each height given, in a block for each 100,000.

        The timers go to the actors in turn. No transactions could build these blocks, and a million timers would take
        minutes; what they leave is what those would have left, and `Chain.check_invariants` holds of it.
        """
        chain = self.chain
        owned = dict.fromkeys(self.actors, 0)
        timers = self._timers(heights, owned, handler, cycles)
        accounts = {actor: self.account(actor) for actor in self.actors}
        planted = 0
        for batch in _batches(timers):
            planted += len(batch)
            changes: dict[bytes, bytes | None] = {code_key(self.code_hash): self.source}
            for timer in batch:
                changes[timer_key(timer.height, timer.timer_id)] = encode_timer(timer)
            for actor, account in accounts.items():
                counted = replace(account, timer_nonce=owned[actor], timer_count=owned[actor])
                changes[account_key(actor)] = encode_account(counted)
            changes[SCHEDULER_KEY] = encode_record(SchedulerTotals(scheduled=planted))
            context = chain.next_context()
            chain.queue.advance(context.height)
            root = chain.store.commit(context.height, changes)
            chain.blocks.extend((seal_block(context, root),))
            # The queue has not seen these timers placed, so it reads the state anew.
            chain.queue.rewind(context.height)

    def account(self, actor: Address) -> Account:
        """Return the account of an actor, with the code that all actors have."""
        octets = self.chain.store.read(account_key(actor))
        account = Account() if octets is None else decode_account(octets)
        return replace(account, code_hash=self.code_hash, owner=bytes(self.senders[0]))

    def sign(self, sender: int, instruction: Instruction, *, cycles: int, cells: int, ahead: int = 0) -> Transaction:
        """Return a signed transaction; ``ahead`` counts those of the sender that come before it in the block."""
        account = self.chain.account(self.senders[sender])
        transaction = Transaction(
            chain_id=1,
            nonce=(account.nonce if account else 0) + ahead,
            instruction=instruction,
            cycles_limit=cycles,
            cells_limit=cells,
            max_fee_per_cycle=FEE_CAP,
            max_fee_per_cell=FEE_CAP,
            sender=self.senders[sender],
        )
        return sign_transaction(transaction, self.keys[sender])

    def schedule(self, heights: Iterator[int], each: int, actors: int | None = None) -> Transaction:
        """Return a transaction that lets the first ``actors``, or all, schedule ``each`` timers at the next heights."""
        encode = msgspec.msgpack.encode
        return self._dispatch((actor, SCHEDULE, encode(list(islice(heights, each)))) for actor in self.actors[:actors])

    def cancel(self, identities: Mapping[Address, list[bytes]]) -> Transaction:
        """Return a transaction that lets actors cancel timers of theirs."""
        return self._dispatch((actor, CANCEL, msgspec.msgpack.encode(own)) for actor, own in identities.items())

    def _dispatch(self, calls: Iterable[tuple[Address, str, bytes]]) -> Transaction:
        payload = msgspec.msgpack.encode([(bytes(actor), handler, payload) for actor, handler, payload in calls])
        return self.sign(0, ExecuteActor(self.actors[0], DISPATCH, payload), cycles=CALL_CYCLES, cells=CALL_CELLS)

    def _timers(self, heights: Iterable[int], owned: dict[Address, int], handler: str, cycles: int) -> Iterator[Timer]:
        for sequence, height in enumerate(heights):
            actor = self.actors[sequence % len(self.actors)]
            owned[actor] += 1
            yield Timer(
                version=RECORD_VERSION,
                actor=actor,
                height=Height(height),
                timer_id=timer_id(actor, height, TIMER_PAYLOAD, owned[actor] - 1),
                sequence=sequence,
                handler=handler,
                payload=TIMER_PAYLOAD,
                fee_payer=actor,
                gas_limit=Cycles(cycles),
                access_limit=0,
                expires_at=Height(height + 1_000_000),
                schedule_block=Height(self.chain.height + 1),
            )


def check_applied(applied: Applied, receipts: int) -> None:
    """Refuse to time a block that did not do its work."""
    ran = [receipt.status.value for receipt in applied.block.receipts]
    if ran != ["ok"] * receipts:
        raise AssertionError(f"{receipts} executions were to succeed, {ran.count('ok')} of {len(ran)} did")


def _batches(timers: Iterator[Timer]) -> Iterator[list[Timer]]:
    """Yield the timers of one block after another; the first has none if there are none."""
    batch = list(islice(timers, PLANTED_AT_ONCE))
    yield batch
    while batch := list(islice(timers, PLANTED_AT_ONCE)):
        yield batch
