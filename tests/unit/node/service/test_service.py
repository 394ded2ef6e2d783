"""The node: admission, outcomes, questions, and its end."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from tests.event_loop import on_loop
from tests.unit.node.service.conftest import on_node
from tests.unit.node.service.world import PATIENCE, TIGHT, Notes, gift, person
from trailboss.chain import Chain
from trailboss.chain.development import account_name, development_account
from trailboss.chain.drafts import Terms, draft_deployment, draft_transaction, draft_unsigned
from trailboss.chain.opening import GenesisOptions, new_genesis
from trailboss.mempool import AdmissionStatus, Mempool
from trailboss.model.transactions import Transaction, transaction_hash
from trailboss.node.block_builder import StoppingError
from trailboss.node.options import AUTO, MANUAL, NodeOptions, Pace
from trailboss.node.service import FAILED, RUNNING, STOPPING_STATUS, Node
from trailboss.primitives.errors import InvariantError, Rejection, RejectionReason, StorageError
from trailboss.primitives.octets import ZERO_HASH
from trailboss.sandbox.engines import SharedNativeEngine

ECHO = b"""
def echo(payload):
    return payload + str(pvm_host.block_height()).encode()


def spin(payload):
    while True:
        pass
"""


def drafted(node: Node, sender: int = 0, ahead: int = 0, terms: Terms = TIGHT) -> Transaction:
    """Return a signed transfer."""
    key = development_account(account_name(sender)).private_key
    return draft_transaction(node.view, gift(), key, terms=terms, waiting=ahead)


@on_node()
async def test_transactions_are_admitted_in_order_when_several_come_together(node: Node) -> None:
    """One verdict for each; what is refused does not keep the others out."""
    good = [drafted(node, ahead=ahead) for ahead in range(3)]
    forged = replace(drafted(node, sender=1), signature=drafted(node, sender=2).signature)
    verdicts = await node.submit([good[0], forged, good[1], good[2], good[0]])
    assert [verdict.status for verdict in verdicts] == [
        AdmissionStatus.ACCEPTED,
        AdmissionStatus.REFUSED,
        AdmissionStatus.ACCEPTED,
        AdmissionStatus.ACCEPTED,
        AdmissionStatus.KNOWN,
    ]
    assert verdicts[1].rejection.reason is RejectionReason.INVALID_SIGNATURE
    assert [verdict.hash for verdict in verdicts[2:4]] == [transaction_hash(each) for each in good[1:]]
    assert len(node.mempool) == 3


@on_node()
async def test_unsigned_transaction_is_refused_when_it_comes_from_the_network(node: Node) -> None:
    """A development chain would take it, but only the development calls may act for others."""
    [verdict] = await node.submit([draft_unsigned(node.view, gift(), person(0), terms=TIGHT)])
    assert verdict.rejection.reason is RejectionReason.INVALID_SIGNATURE


@on_node()
async def test_transaction_is_refused_when_it_has_no_encoding(node: Node) -> None:
    """As one of a JSON document can be; it has no hash."""
    [verdict] = await node.submit([replace(drafted(node), cycles_limit=1 << 64)])
    assert (verdict.status, verdict.hash) == (AdmissionStatus.REFUSED, ZERO_HASH)
    assert verdict.rejection.reason is RejectionReason.OVERFLOW


@on_node()
async def test_signature_is_not_looked_at_when_a_transaction_could_not_come_in_anyway(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flood of them must cost little."""

    def refuse(_: Transaction) -> None:
        raise AssertionError

    monkeypatch.setattr("trailboss.mempool.pool.check_signature", refuse)
    [verdict] = await node.submit([replace(drafted(node), chain_id=2)])
    assert verdict.rejection.reason is RejectionReason.CHAIN_ID_MISMATCH


@on_node()
async def test_outcome_is_none_when_the_time_is_over(node: Node) -> None:
    """Nothing of the wait is left."""
    [verdict] = await node.submit([drafted(node)])
    assert await node.outcome(verdict.hash, 0) is None
    assert node._waits == {}


@on_node()
async def test_outcome_is_the_refusal_when_a_transaction_is_replaced(node: Node) -> None:
    """Whoever waits for the one that lost its place hears of it at once, and later too."""
    [cheap] = await node.submit([drafted(node)])
    waiting = asyncio.create_task(node.outcome(cheap.hash, PATIENCE * 1_000))
    await asyncio.sleep(0)
    better = replace(TIGHT, max_priority_fee_per_cycle=9, max_fee_per_cycle=40_000, max_fee_per_cell=40_000)
    [verdict] = await node.submit([drafted(node, terms=better)])
    assert verdict.status is AdmissionStatus.REPLACED
    outcome = await waiting
    assert outcome.place is None
    assert outcome.rejection is not None
    assert await node.outcome(cheap.hash, 1) == outcome


@on_node()
async def test_question_is_answered_between_blocks(node: Node) -> None:
    """As the next block would, within a limit of cycles."""
    account = development_account(account_name(0))
    instruction, actor = draft_deployment(account.address, ECHO, b"")
    await node.submit([draft_transaction(node.view, instruction, account.private_key)])
    await node.development.mine()
    answer = await node.ask(actor, "echo", b"block ", person(3), 100_000)
    assert answer.return_value == b"block 2"
    answer = await node.ask(actor, "spin", b"", person(3), 1_000_000)
    assert (answer.error.slug, answer.cycles_used) == ("out_of_cycles", 1_000_000)
    assert node.view.height == 1


@pytest.mark.parametrize("cycles", [0, 1_000_001, -1])
@on_node()
async def test_question_is_refused_when_its_limit_cannot_be(node: Node, cycles: int) -> None:
    """It runs between two blocks, and both wait for it."""
    with pytest.raises(Rejection, match=f"cycles_limit is {cycles}, outside 1..=1000000"):
        await node.ask(person(0), "echo", b"", person(0), cycles)


@on_node()
async def test_subscribers_hear_of_blocks_before_whoever_asked_for_them(node: Node) -> None:
    """In order, none left out."""
    async with node.feed.subscribe() as subscription:
        await node.development.mine(300)
        assert node.feed.view is node.view
        await node.development.reorg(5)
        steps = [await subscription.take_next() for _ in range(3)]
    assert [(len(step.blocks), step.reorg_from) for step in steps] == [(256, None), (44, None), (0, 295)]


@on_node()
async def test_pace_changes_when_it_is_told(node: Node) -> None:
    """What waits is mined when the new pace says so."""
    [verdict] = await node.submit([drafted(node)])
    assert node.pace == MANUAL
    await node.development.set_pace(AUTO)
    assert node.pace == AUTO
    assert (await node.outcome(verdict.hash, PATIENCE * 1_000)).place.height == 1


@on_node()
async def test_node_fails_when_the_chain_contradicts_itself(node: Node) -> None:
    """It says so, those who wait hear that it stops, and nothing is taken any more."""
    [verdict] = await node.submit([drafted(node)])
    waiting = asyncio.create_task(node.outcome(verdict.hash, PATIENCE * 1_000))
    await asyncio.sleep(0)

    def fail(_: Any) -> None:
        raise InvariantError("sums differ")

    with pytest.raises(InvariantError):
        await node.do(fail)
    await node.ended.wait()
    assert (node.health.status, node.health.reason) == (FAILED, "sums differ")
    with pytest.raises(StoppingError):
        await waiting
    for refused in (node.submit([]), node.outcome(verdict.hash, 1), node.development.mine()):
        with pytest.raises(StoppingError):
            await refused


@on_node()
async def test_node_fails_when_what_it_accepts_cannot_be_written(node: Node) -> None:
    """Nothing is acknowledged that could be lost."""

    def refuse(*_: Any) -> None:
        raise StorageError("journal", "the disk is full", "make room")

    node.mempool.add = refuse
    with pytest.raises(StoppingError):
        await node.submit([drafted(node)])
    await node.ended.wait()
    assert node.health.status == FAILED
    assert "the disk is full" in node.health.reason


@on_node(NodeOptions(pace=Pace.every(1_000)))
async def test_those_who_wait_hear_of_it_when_the_node_stops(node: Node) -> None:
    """And everything that the node was given is closed."""
    assert node.health.status == RUNNING
    [verdict] = await node.submit([drafted(node)])
    waiting = asyncio.create_task(node.outcome(verdict.hash, PATIENCE * 1_000))
    await asyncio.sleep(0)
    async with node.feed.subscribe() as subscription:
        node.begin_stop()
        assert await subscription.take_next() is None
    assert node.health.status == STOPPING_STATUS
    with pytest.raises(StoppingError):
        await waiting
    await node.close()
    assert node.index.is_closed
    assert node.health.status == STOPPING_STATUS


@pytest.mark.parametrize("height", [0, 1])
@on_loop
async def test_engine_is_loaded_at_the_start_when_the_chain_may_have_actors(
    monkeypatch: pytest.MonkeyPatch, height: int
) -> None:
    """At genesis a chain has none: an engine takes memory, which a chain of transfers never needs."""
    loaded = []
    monkeypatch.setattr(SharedNativeEngine, "prepare", lambda engine: loaded.append(engine))  # noqa: PLW0108  # bound to it
    chain = Chain(new_genesis(GenesisOptions()))
    list(chain.advance_to(height))
    node = Node(chain, Mempool(), Notes(), NodeOptions(pace=MANUAL))
    node.start()
    await node.do(lambda _: None)
    await node.close()
    assert loaded == [chain.engine] * height
