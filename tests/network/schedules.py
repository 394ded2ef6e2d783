"""Random schedules of a network: four applications, their engines, clients, crashes; all of it follows from a seed.

In a schedule clients send transactions to members that pass some of them on; proposers take turns, and some are
hostile; rounds fail after PrepareProposal or ProcessProposal; FinalizeBlock is repeated, also with other blocks;
processes end at every point between FinalizeBlock and Commit, stay away for some blocks, and replay; members begin
again at genesis, or join by a snapshot of the others, some of which lie. After every height all members have the app
hash and the results of a plain chain that builds the same blocks, and at the end all that a chain holds.

    python -m tests.network.schedules --count 10000 --seed 1
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

from tests.model.histories import Call, Dice
from tests.model.scripted_engine import ScriptedEngine
from tests.network.engines import Divergence, Engine, EngineBlock, Point, Records
from tests.network.joins import join_by_snapshot, small_parts
from tests.network.members import CommitPoint, Killed, PreparedGenesis, RestartingMember
from tests.network.oracle import Oracle, check
from tests.network.traffic import (
    GENESIS_MS,
    HOSTILE,
    Clients,
    calls_by_height,
    is_python,
    schedule_genesis,
    schedule_history,
)
from trailboss.crypto.digest import sha256

MEMBERS = 4
BLOCKS = (8, 14)  # least and most of a schedule
OPENING = 2  # blocks in which the actors are deployed and funded: nothing of them gets lost
ROUNDS_MAX = 6
NS_PER_MS = 1_000_000
STEPS_MS = (1, 2, 900, 1_000, 1_000, 1_001, 5_000, 3_600_000)
PROPOSAL_BYTES = (2**20, 2**20, 2**20, 1_500, 300, 0)
SHARED_MEMORY = Path("/dev/shm")
PAYMENT = Call("alice", "Transfer", ("@ghost", 1), 12_000, 600, "double", (0, 0), "")

Planted = Callable[[RestartingMember], object]


class Schedule:
    """One schedule. ``planted`` is done to the last member whenever its process starts."""

    def __init__(self, seed: int, planted: Planted | None = None) -> None:
        self.seed = seed
        self.seen: Counter[str] = Counter()
        self._dice = Dice(Random(f"schedule {seed}").randint)
        self._blocks = self._dice.integer(*BLOCKS)
        history = schedule_history(Dice(Random(f"traffic {seed}").randint), self._blocks)
        self._clients = Clients(history)
        self._calls = calls_by_height(history)[: self._blocks]
        genesis = PreparedGenesis.of(schedule_genesis(history))
        costs, find = genesis.params().costs, self._clients.names.__getitem__
        new_engine = (lambda: None) if is_python(history) else (lambda: ScriptedEngine(costs, find))
        self._opened = ExitStack()
        self._has_disk = self._dice.often(30)
        directories: list[Path | None] = [None] * MEMBERS
        if self._has_disk:
            folder = tempfile.TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None)
            root = Path(self._opened.enter_context(folder))
            directories = [root / str(place) for place in range(MEMBERS)]
        self.records, self.oracle = Records(), Oracle(genesis, new_engine())
        self.engines: list[Engine] = []
        for place, directory in enumerate(directories):
            plant = planted if planted is not None and place == MEMBERS - 1 else _nothing
            member = RestartingMember(genesis, directory, new_engine, plant)
            self._opened.callback(member.kill)
            self.engines.append(Engine(f"member {place}", member, self.records))
        self._time_ns = GENESIS_MS * NS_PER_MS
        self._away: tuple[Engine, int] | None = None  # who is away, and until which height
        self._carried: list[tuple[Engine, bytes]] = []  # transactions on their way to another member
        self._past: list[bytes] = []  # transactions that stand in blocks
        self.seen[f"{history.mechanism}, {'disk' if self._has_disk else 'memory'}"] += 1

    def run(self) -> None:
        """Run it to its end.

        Raises:
            Divergence: If members differ from one another or from the plain chain, or a law does not hold.
        """
        with self._opened, small_parts():
            for engine in self.engines:
                engine.handshake()
            for height in range(1, self._blocks + 1):
                self._go_on(height)
            if self._away is not None:
                self._come_back()
            thorough = self._dice.integer(0, MEMBERS * 5 - 1)
            for place, engine in enumerate(self.engines):
                self.oracle.check_member(engine.name, engine.member, thoroughly=place == thorough)
            self._count()

    def _go_on(self, height: int) -> None:
        """Have the network decide one block, and each member that is there apply it."""
        for call in self._calls[height - 1] if height <= len(self._calls) else ():
            self._send(call, is_everywhere=height <= OPENING)
        self._carry()
        block = self._agree(height)
        self.records.decided.append(block)
        self.records.answers[block] = self.oracle.build(block)
        self._past += [raw for raw in block.transactions if sha256(raw) in self.oracle.hashes]
        for engine in self._present():
            self._apply(engine, block)
        if self._away is not None and self._away[1] <= height:
            self._come_back()
        elif self._away is None and self._dice.often(16 if self._has_disk else 4):
            self._begin_again(self._dice.pick(self.engines))
        for engine in self.engines:
            if not self._is_away(engine):
                check(engine.state == height, f"{engine.name} is at {engine.state} after block {height}")

    def _present(self) -> list[Engine]:
        return [engine for engine in self.engines if not self._is_away(engine)]

    def _is_away(self, engine: Engine) -> bool:
        return self._away is not None and self._away[0] is engine

    # Clients

    def _send(self, call: Call, *, is_everywhere: bool) -> None:
        """Send a call to one member, which passes it on to some of the others, or all, at once or later."""
        engine = self._dice.pick(self._present())
        member = engine.member
        replaces = not is_everywhere and self._dice.often(6)
        raw = self._clients.sign(call, member.application.view, member.mempool, replaces=replaces)
        outcome = member.application.check_transaction(raw)
        self.seen["transactions accepted" if outcome.is_waiting else "transactions refused"] += 1
        for other in self.engines:
            if other is not engine and is_everywhere:
                other.member.application.check_transaction(raw)
            elif other is not engine and self._dice.often(60):
                self._carried.append((other, raw))

    def _carry(self) -> None:
        """Deliver some of what is on its way; what is for a member that is away is lost."""
        waiting, self._carried = self._carried, []
        for engine, raw in waiting:
            if self._dice.often(25):
                self._carried.append((engine, raw))
            elif not self._is_away(engine):
                engine.member.application.check_transaction(raw)

    # Rounds

    def _agree(self, height: int) -> EngineBlock:
        """Go through rounds until a proposal is decided, and return the block."""
        for number in range(ROUNDS_MAX):
            engine = self.engines[(height + number) % MEMBERS]
            if self._is_away(engine):
                continue
            is_last = number >= ROUNDS_MAX - 2
            if not is_last and self._dice.often(22):
                proposal = self._hostile(engine)
                if proposal is None or not self._dice.often(40):
                    continue
                self.seen["hostile blocks decided"] += 1
                return self._block(height, engine, proposal)
            proposal = engine.member.application.propose(
                2**20 if height <= OPENING else self._dice.pick(PROPOSAL_BYTES)
            )
            if not is_last and self._dice.often(8):
                self.seen["rounds without a vote"] += 1
                continue
            for voter in self._present():
                if self._dice.often(90):
                    why = voter.member.application.check_proposal(proposal)
                    check(why is None, f"{voter.name} votes against an honest proposal for block {height}: {why}")
            if is_last or not self._dice.often(12):
                return self._block(height, engine, proposal)
            self.seen["rounds without a decision"] += 1
            self._try_other(self._block(height, engine, proposal))
        raise AssertionError("no round has decided")

    def _hostile(self, engine: Engine) -> list[bytes] | None:
        """Have every member vote on a proposal that no honest one makes, and return it; None if none can be made."""
        view, mempool = engine.member.application.view, engine.member.mempool
        raw = self._clients.sign(PAYMENT, view, type(mempool)())
        if engine.member.application.check_proposal([raw]) is not None:
            return None
        name = self._dice.pick(tuple(HOSTILE))
        proposal = HOSTILE[name](raw, self._past)
        found = {}
        for voter in self._present():
            why = voter.member.application.check_proposal(proposal)
            check(why is not None, f"{voter.name} votes for a hostile proposal ({name})")
            found[voter.name] = why.what
        check(len({*found.values()}) == 1, f"the members' reasons differ: {found}")
        self.seen[f"refused proposals: {name}"] += 1
        return proposal

    def _block(self, height: int, engine: Engine, proposal: list[bytes]) -> EngineBlock:
        """Return the block of a proposal, a little later than the one before; the first has the time of genesis."""
        step = self._dice.pick(STEPS_MS) * NS_PER_MS + self._dice.integer(0, NS_PER_MS - 1)
        time_ns = self._time_ns + step if height > 1 else GENESIS_MS * NS_PER_MS
        self._time_ns = time_ns
        signers = tuple(place for place, each in enumerate(self.engines) if not self._is_away(each))
        return EngineBlock(height, tuple(proposal), self.engines.index(engine), time_ns, signers if height > 1 else ())

    def _try_other(self, block: EngineBlock) -> None:
        """Have one member finalize a block that the network does not decide: its engine is set back then."""
        if self._dice.often(60):
            engine = self._dice.pick(self._present())
            engine.finalize(block)
            self.seen["other blocks finalized"] += 1
            if self._dice.often(50):
                engine.member.application.forget()

    # Blocks

    def _apply(self, engine: Engine, block: EngineBlock) -> None:
        """Have a member apply a decided block, with what may happen meanwhile."""
        application = engine.member.application
        if self._dice.often(10):
            before = application.view.head.hash
            for _ in range(self._dice.integer(1, 2)):
                engine.finalize(block)
            check(application.view.head.hash == before, f"{engine.name} publishes a block that is not committed")
            self.seen["blocks finalized again"] += 1
            if self._dice.often(40):
                application.forget()
            if self._past:
                application.check_transaction(self._dice.pick(self._past))
            self._carry()
        engine.cut = self._cut() if self._dice.often(22) else None
        try:
            engine.take(block)
        except Killed:
            self._restart(engine, block.height)
        engine.cut = None

    def _cut(self) -> Point:
        """Return where the work on a block is cut off; in memory no process can end within Commit."""
        points = [each for each in Point if self._has_disk or each.name not in CommitPoint.__members__]
        return self._dice.pick(points)

    def _restart(self, engine: Engine, height: int) -> None:
        """End engine, application or both; at once or after some blocks they are back."""
        self.seen["crashes"] += 1
        # Within Commit it is the application that has ended, and its engine follows.
        is_within_commit = engine.cut is not None and engine.cut.name in CommitPoint.__members__
        engine.cut = None
        if is_within_commit or (self._has_disk and self._dice.often(60)):
            engine.member.kill()
            engine.member.open()
            self.seen["applications restarted"] += 1
        elif self._dice.often(70):
            engine.member.application.forget()
        if self._away is None and self._dice.often(25):
            self._away = engine, height + self._dice.integer(1, 4)
            self.seen["members away"] += 1
        else:
            self._start(engine)

    def _start(self, engine: Engine) -> None:
        """Start an engine; it may be cut off again, once."""
        engine.cut = self._cut() if self._dice.often(15) else None
        try:
            engine.handshake()
        except Killed:
            self.seen["crashes while starting"] += 1
            if self._has_disk:
                engine.member.kill()
                engine.member.open()
            engine.cut = None
            engine.handshake()
        engine.cut = None

    def _come_back(self) -> None:
        """Have the member that is away start, and apply the blocks that it has missed, without votes."""
        assert self._away is not None
        engine, self._away = self._away[0], None
        self._start(engine)
        self._catch_up(engine)

    def _begin_again(self, engine: Engine) -> None:
        """Have a member lose its chain, and perhaps its engine's data too; it joins by a snapshot or replays all."""
        others = [other for other in self.engines if other is not engine]
        if (
            self._has_disk
            and self._dice.often(70)
            and join_by_snapshot(self._dice, engine, others, self.records, self.seen)
        ):
            self.seen["joins by a snapshot"] += 1
        else:
            engine.member.wipe()
            if engine.base or self._dice.often(50):
                engine.forget_all()
            self.seen["replays from genesis"] += 1
        self._start(engine)
        self._catch_up(engine)

    def _catch_up(self, engine: Engine) -> None:
        for block in self.records.decided[engine.state :]:
            engine.take(block)

    def _count(self) -> None:
        """Count what has happened, so that it shows what schedules do not reach."""
        chain = self.oracle.chain
        self.seen["blocks"] += chain.height
        self.seen["transactions in blocks"] += len(self.oracle.hashes)
        self.seen["fires"] += chain.fire_count()
        self.seen["timers"] += chain.totals().scheduled
        self.seen["lanes activated"] += any(e.name == "lane.activated" for b in chain.blocks for e in b.events)
        for answer in self.records.answers.values():
            for code, _, _ in answer.results:
                self.seen[f"results with code {code}"] += 1


def run_schedule(seed: int, planted: Planted | None = None) -> Counter[str]:
    """Run the schedule of a seed, and return what it came to.

    Raises:
        Divergence: With the seed, and how to run it again.
    """
    schedule = Schedule(seed, planted)
    try:
        schedule.run()
    except Exception as error:
        again = f"python -m tests.network.schedules --seed {seed}"
        raise Divergence(f"schedule {seed}: {type(error).__name__}: {error}; repeat with: {again}") from error
    return schedule.seen


def run_schedules(first: int, count: int, planted: Planted | None = None) -> Counter[str]:
    """Run schedules from a seed on; see `run_schedule`."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        seen += run_schedule(seed, planted)
    return seen


def _nothing(_: RestartingMember) -> None:
    """Plant nothing."""


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule; each has the next one")
    options = parser.parse_args()
    try:
        seen = run_schedules(options.seed, options.count)
    except Divergence as divergence:
        sys.exit(str(divergence))
    last = options.seed + options.count - 1
    print(f"{options.count} schedules, seeds {options.seed} to {last}: all members agree with the plain chain")
    print("\n".join(f"{count:>10,} {what}" for what, count in sorted(seen.items())))


if __name__ == "__main__":
    main()
