"""What a schedule must come to: a plain chain that builds the decided blocks one after another, and the laws."""

from collections.abc import Iterable

from tests.network.engines import Answer, Divergence, EngineBlock
from tests.network.members import RestartingMember
from tests.network.nodes import VALIDATORS
from tests.network.traffic import SUPPLY
from trailboss.chain import Chain
from trailboss.chain.replay import verify_chain
from trailboss.codec.wire import decode_transaction
from trailboss.crypto.digest import sha256
from trailboss.execution.genesis import Genesis
from trailboss.model.blocks import Block, Origin, Status
from trailboss.model.events import TIMER_ENDINGS, TIMER_SCHEDULED, EventRecord
from trailboss.model.transactions import Transaction, check_signature
from trailboss.primitives.errors import Rejection
from trailboss.vm.engine import Engine

OK, REVERTED, REFUSED = 0, 1, 2
NS_PER_MS = 1_000_000


class Oracle:
    """The chain without a network: each block is staged once and sealed."""

    def __init__(self, genesis: Genesis, engine: Engine | None) -> None:
        self.chain = Chain(genesis, engine)
        self.hashes: set[bytes] = set()  # of the transactions in its blocks

    def build(self, block: EngineBlock) -> Answer:
        """Build a decided block, and return what each member must answer."""
        places: dict[int, Transaction] = {}
        for place, raw in enumerate(block.transactions):
            try:
                transaction = decode_transaction(raw)
                check_signature(transaction)
            except Rejection:
                continue
            places[place] = transaction
        fee_account = VALIDATORS[block.proposer].fee_account
        applied = self.chain.stage(places.values(), block.time_ns // NS_PER_MS, proposer=fee_account)
        self.chain.seal(applied)
        refused = {id(transaction) for transaction, _ in applied.refused}
        receipts = [each for each in applied.block.receipts if each.origin is Origin.TRANSACTION]
        results = [(REFUSED, 0, 0)] * len(block.transactions)
        for place, transaction in places.items():
            if id(transaction) not in refused:
                receipt = receipts.pop(0)
                code = OK if receipt.status is Status.OK else REVERTED
                results[place] = (code, transaction.cycles_limit, receipt.cycles_used)
        for receipt in applied.block.receipts:
            if receipt.origin is Origin.TRANSACTION:
                name = bytes(receipt.origin_hash)
                check(name not in self.hashes, f"transaction {name.hex()} stands in two blocks")
                self.hashes.add(name)
        return Answer(bytes(applied.block.hash), tuple(results))

    def check_member(self, name: str, member: RestartingMember, *, thoroughly: bool) -> None:
        """Compare a member that is at the head with the chain, and check its money, its timers and its mempool."""
        chain, own = member.chain, self.chain
        check(chain.height == own.height, f"{name} is at block {chain.height}")
        own_blocks = list(own.blocks)
        for found in chain.blocks:
            expected = own_blocks[found.height]
            if found.height == chain.blocks.base > 0:  # of the block that it joined by, it has the header alone
                expected = Block(header=expected.header, hash=expected.hash)
            check(found == expected, f"{name} has another block {expected.height}: {_parting(found, expected)}")
        check(chain.state_root == own.state_root, f"{name} has another state")
        check(member.index.height == chain.height, f"the index of {name} is at {member.index.height}")
        chain.check_invariants()
        check(chain.economy()[0] == SUPPLY, f"the supply of {name} has changed")
        _check_timers(name, own_blocks, chain)
        self._check_fates(name, member)
        if thoroughly and not chain.blocks.base:
            report = verify_chain(chain, engine=chain.engine)
            check(report.ok, f"{name}: {report}")

    def _check_fates(self, name: str, member: RestartingMember) -> None:
        for tx_hash, raw in member.accepted.items():
            check(sha256(raw) == tx_hash, f"{name} has another transaction under {tx_hash.hex()}")
            waits = member.mempool.find(tx_hash) is not None
            if tx_hash in self.hashes:
                check(not waits, f"{tx_hash.hex()} stands in a block and waits in {name}")
            else:
                excuse = member.excuses.get(tx_hash)
                check(waits is (excuse is None), f"{tx_hash.hex()} waits in {name}: {waits}, ended because {excuse}")


def check(holds: object, what: str) -> None:
    """Raise `Divergence` if something does not hold."""
    if not holds:
        raise Divergence(what)


def _parting(found: Block, expected: Block) -> str:
    fields = [name for name in Block.__struct_fields__ if getattr(found, name) != getattr(expected, name)]
    return ", ".join(fields)


def _events(block: Block) -> Iterable[EventRecord]:
    yield from block.events
    for receipt in block.receipts:
        yield from receipt.events


def _check_timers(name: str, blocks: Iterable[Block], chain: Chain) -> None:
    """What ends lives, and ends once; what neither ends nor lives is lost. Globalbox may give an id a second life."""
    alive: set[bytes] = set()
    for block in blocks:
        for event in _events(block):
            timer_id = event.timer_id
            where = f"{name}: block {block.height}: {event.name} of timer {timer_id.hex()}"
            if event.name == TIMER_SCHEDULED:
                check(timer_id not in alive, f"{where}, which lives")
                alive.add(timer_id)
            elif event.name in TIMER_ENDINGS:
                check(timer_id in alive, f"{where}, which does not live")
                alive.remove(timer_id)
    live = {bytes(timer.timer_id) for timer in chain.timers()}
    check(alive == live, f"{name}: {len(alive - live)} timers are lost, {len(live - alive)} come from nowhere")
