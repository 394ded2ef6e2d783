"""A node that joined its network by a snapshot answers from what it has, and says what it lacks."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.integration.node.apis import Api, lively_chain, serve
from tests.unit.chain.joining import offer_of
from trailboss.api.app import create_app
from trailboss.chain.export import export_chain
from trailboss.chain.replay import compare_chains, replay_to, verify_chain
from trailboss.explorer import explorer_routes, links
from trailboss.explorer.pages import PAGES, SUBJECT
from trailboss.index import Index
from trailboss.primitives.errors import Rejection, RejectionReason, StorageError
from trailboss.rehearsal.run import fork_of
from trailboss.testing import LocalChain
from trailboss.views import explain_timer
from trailboss.views.timer_list import TimerFilter, match_timer
from trailboss.views.trace.executions import trace_height

MECHANISMS = ("fifo", "lane", "auction", "globalbox")
JOINED_AT = 20
AFTER = 30
"""Blocks that both chains build after that; timers of before fire, end and re-schedule themselves in them."""


class Pair(NamedTuple):
    """A chain from genesis, and one that joined it and went on."""

    straight: LocalChain
    joined: LocalChain
    before: list[bytes]  # ids of the timers that lived when it joined


def pair_of(mechanism: str, directory: Path) -> Pair:
    """Return a pair of chains with equal heads."""
    straight, _ = lively_chain(mechanism)
    straight.mine(JOINED_AT - straight.chain.height)
    before = [timer.timer_id for timer in straight.chain.timers()]
    offer_of(straight.chain).restore(directory).close()
    joined = LocalChain(mechanism=mechanism, preset="minimal", data_dir=directory)
    for chain in (straight, joined):
        chain.transfer(chain.accounts[1], 5, sender=chain.accounts[2])
        chain.mine(AFTER)
    return Pair(straight, joined, before)


@pytest.fixture(scope="module", params=MECHANISMS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A pair of chains of each mechanism, which stay as they are."""
    found = pair_of(request.param, tmp_path_factory.mktemp("joined") / "chain")
    yield found
    found.straight.close()
    found.joined.close()


def test_chains_are_equal_from_the_block_at_which_one_joined(pair: Pair) -> None:
    """Blocks, state and timers; the first block has its header alone."""
    straight, joined = pair.straight.chain, pair.joined.chain
    assert joined.blocks.base == JOINED_AT
    assert list(joined.blocks)[1:] == list(straight.blocks)[JOINED_AT + 1 :]
    assert joined.blocks[JOINED_AT].header == straight.blocks[JOINED_AT].header
    assert joined.blocks[5 : JOINED_AT + 2] == joined.blocks[JOINED_AT : JOINED_AT + 2]
    assert joined.blocks[::7] == [block for block in joined.blocks if block.height % 7 == 0]
    assert list(joined.timers()) == list(straight.timers())
    assert compare_chains(straight, joined) is None
    joined.check_invariants()


def refused(pair: Pair, height: int) -> str:
    return f"block {height} is not here: this node joined the network at block {JOINED_AT} and has none below it"


@pytest.mark.parametrize("height", [0, 7, JOINED_AT - 1])
def test_block_is_refused_when_it_lies_below_the_first_one(pair: Pair, height: int) -> None:
    """It is not found, and the reason says where the node joined and whom to ask."""
    for read in (lambda: pair.joined.chain.blocks[height], lambda: pair.joined.chain.publish().blocks[height]):
        with pytest.raises(Rejection, match=refused(pair, height)) as caught:
            read()
        assert caught.value.reason is RejectionReason.NOT_FOUND
        assert "ask a node that has the network's blocks from genesis" in str(caught.value)
    with pytest.raises(Rejection, match=refused(pair, height)):
        pair.joined.chain.blocks.record_at(height)


def test_replay_export_and_trace_are_refused_on_a_chain_without_its_first_blocks(pair: Pair, tmp_path: Path) -> None:
    """None begins; nothing is written."""
    chain = pair.joined.chain
    for action in (
        lambda: verify_chain(chain),
        lambda: replay_to(chain, chain.height),
        lambda: export_chain(chain, tmp_path / "export"),
        lambda: trace_height(chain, chain.height),
    ):
        with pytest.raises(Rejection, match=refused(pair, 0)):
            action()
    assert list(tmp_path.iterdir()) == []


def test_chain_cannot_go_back_below_its_first_block(tmp_path: Path) -> None:
    """Down to it, it can."""
    pair = pair_of("fifo", tmp_path / "chain")
    chain = pair.joined.chain
    assert chain.floor == JOINED_AT
    with pytest.raises(StorageError, match=f"reaches back to block {JOINED_AT}, not to block {JOINED_AT - 1}"):
        chain.reorg(chain.height - JOINED_AT + 1)
    chain.reorg(chain.height - JOINED_AT)
    assert chain.state_root == pair.straight.chain.blocks[JOINED_AT].header.state_root
    chain.check_invariants()
    pair.joined.mine(3)
    pair.joined.close()
    pair.straight.close()


def test_life_of_a_timer_begins_with_its_record_when_it_was_scheduled_before(pair: Pair) -> None:
    """A live timer has a story; one that has ended and whose beginning is not here is refused with the reason."""
    straight, joined = pair.straight.chain, pair.joined.chain
    lived = ended = 0
    for timer_id in pair.before:
        life = explain_timer(straight, timer_id)
        if joined.timer(timer_id) is None:
            ended += 1
            with pytest.raises(Rejection, match=f"no block above {JOINED_AT}, where this node joined the network"):
                explain_timer(joined, timer_id)
            continue
        lived += 1
        found = explain_timer(joined, timer_id)
        assert (found.state, found.outlook, found.waited) == (life.state, life.outlook, life.waited)
        assert found.steps[0].story.startswith(f"was scheduled; this node joined the network at block {JOINED_AT}")
        assert found.steps[0].block_height == life.steps[0].block_height
        known, facts = life.steps[0].event.data, found.steps[0].event.data
        assert {name: facts[name] for name in ("height", "handler", "fee_payer", "gas_limit")} == {
            name: known[name] for name in ("height", "handler", "fee_payer", "gas_limit")
        }
        assert found.steps[1:] == tuple(step for step in life.steps if step.block_height > JOINED_AT)
        assert match_timer(joined, timer_id.hex()[:16]) == [timer_id]
    assert lived
    assert ended


def test_index_has_the_timers_that_lived_when_the_node_joined(pair: Pair, tmp_path: Path) -> None:
    """Lists by actor and by payer are whole, whether the index is made then, later, or brought up to the head."""
    straight, joined = pair.straight.chain, pair.joined.chain
    view = joined.publish()
    full, late = Index.open(None, straight), Index.open(tmp_path / "index", joined)
    compared = (full, late)
    for _ in range(2):
        for actor, _account in straight.accounts():
            for role in ("actor", "target", "payer"):
                wanted = TimerFilter(**{role: actor})
                lists = [index.live_timers(wanted, view.height, 0, 1_000) for index in compared]
                assert lists[0].items == lists[1].items
                assert lists[0].total == lists[1].total
        for timer in joined.timers():
            known, here = (index.timer(timer.timer_id, view.height) for index in compared)
            assert known is not None
            assert here is not None
            is_earlier = timer.schedule_block <= JOINED_AT
            assert (here.cause is None) == is_earlier
            assert (here.sequence, here.height, here.actor, here.target, here.payer) == (
                known.sequence,
                known.height,
                known.actor,
                known.target,
                known.payer,
            )
        late.close()
        late = Index.open(tmp_path / "index", joined)
        compared = (full, late)
    late.close()
    full.close()


def test_index_of_another_beginning_is_made_again(pair: Pair, tmp_path: Path) -> None:
    """What a full chain's index says of blocks that are not here is not kept, and the other way round."""
    height = pair.joined.chain.height
    for chain, first in ((pair.straight.chain, 0), (pair.joined.chain, JOINED_AT), (pair.straight.chain, 0)):
        with_index = Index.open(tmp_path / "index", chain)
        assert with_index.block_height(chain.blocks[first].hash, chain.blocks) == first
        assert with_index.height == height
        assert with_index.block_height(pair.straight.chain.blocks[5].hash, chain.blocks) == (5 if not first else None)
        with_index.close()


def test_rehearsal_begins_with_what_the_chain_has(pair: Pair) -> None:
    """A fork of the chain goes on as the chain does."""
    with fork_of(pair.joined.chain) as fork, fork_of(pair.straight.chain) as other:
        assert [block.hash for block in fork.advance_to(fork.height + 20)] == [
            block.hash for block in other.advance_to(other.height + 20)
        ]
        with pytest.raises(Rejection, match=refused(pair, 3)):
            _ = fork.blocks[3]


@pytest.fixture(scope="module", params=MECHANISMS)
def joined_node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Pair]]:
    """A node over a chain that joined, with the chain from genesis beside it."""
    pair = pair_of(request.param, tmp_path_factory.mktemp("node") / "chain")
    with serve(pair.joined) as api:
        yield api, pair
    pair.straight.close()


def test_api_says_what_is_not_here(joined_node: tuple[Api, Pair]) -> None:
    """Blocks below are not found, with the reason; lists begin at the first one; the status names it."""
    api, pair = joined_node
    for height in (0, JOINED_AT - 1):
        assert refused(pair, height) in api.error("GET", f"/block/{height}", 404)["what"]
    first = api.get(f"/block/{JOINED_AT}")
    assert first["is_header_only"] == (any(first["header"]["receipts_root"].strip("0x")))
    listed = api.get(f"/blocks?limit=100&offset={AFTER - 3}")
    assert listed["total_count"] == pair.joined.chain.height - JOINED_AT + 1
    assert [each["height"] for each in listed["blocks"]] == list(range(JOINED_AT + 4, JOINED_AT - 1, -1))
    assert api.get("/blocks?offset=1000")["blocks"] == []
    status = api.get("/status")
    assert status["first_block"] == JOINED_AT
    assert status["genesis"]["block_hash"] is None


def test_api_answers_like_another_node_when_the_state_has_the_answer(joined_node: tuple[Api, Pair]) -> None:
    """Timers by address, accounts and timers themselves are those of the chain from genesis."""
    api, pair = joined_node
    actors = {bytes(timer.actor) for timer in pair.straight.chain.timers()}
    for actor in actors:
        listed = api.get(f"/timers?actor=0x{actor.hex()}&limit=100")
        expected = [timer for timer in pair.straight.chain.timers() if timer.actor == actor]
        assert listed["total_count"] == len(expected)
    for timer in pair.straight.chain.timers():
        found = api.get(f"/timers/0x{timer.timer_id.hex()}")
        assert found["height"] == timer.height
        assert api.get(f"/timers/0x{timer.timer_id.hex()}/explain")["state"] == "live"


def test_every_page_of_the_explorer_is_there(joined_node: tuple[Api, Pair]) -> None:
    """None fails; a block below is not found, and the first one says that it has its header alone."""
    api, pair = joined_node
    app = create_app(api.node, explorer_routes(api.node))
    accounts = [f"{links.ROOT}/account/0x{address.hex()}" for address, _ in pair.straight.chain.accounts()]
    paths = [page.path for page in PAGES if SUBJECT not in page.path and page.path != links.SEARCH] + accounts[:30]
    paths += [links.timer(timer.timer_id) for timer in pair.straight.chain.timers()]
    paths += [f"{links.SEARCH}?q=40", f"{links.BLOCKS}?top={JOINED_AT + 2}", f"{links.BLOCKS}?top=3"]
    paths += map(links.block, range(JOINED_AT, pair.joined.chain.height + 1))
    found: dict[str, httpx.Response] = {}

    async def crawl() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4000") as client:
            for path in (*paths, links.block(JOINED_AT - 1)):
                found[path] = await client.get(path, follow_redirects=True)

    api._runner.run(crawl())
    below = found.pop(links.block(JOINED_AT - 1))
    assert (below.status_code, f"joined the network at block {JOINED_AT}" in below.text) == (404, True)
    assert {path: answer.status_code for path, answer in found.items() if answer.status_code != 200} == {}
    first = pair.joined.chain.blocks[JOINED_AT]
    text = found[links.block(JOINED_AT)].text
    assert ("Only the header of this block is here" in text) == first.is_header_only
    assert ("Nothing happened in this block" in text) != first.is_header_only
    assert "at which this node joined the network" in found[links.BLOCKS].text


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_timer_of_before_is_known_when_it_ends_after_the_node_has_joined(tmp_path: Path, mechanism: str) -> None:
    """Its record was in the state: the index has it, its end is added, and only its story is not here."""
    straight, _ = lively_chain(mechanism)
    straight.mine(JOINED_AT - straight.chain.height)
    before = [timer.timer_id for timer in straight.chain.timers()]
    offer_of(straight.chain).restore(tmp_path / "chain").close()
    joined = LocalChain(mechanism=mechanism, preset="minimal", data_dir=tmp_path / "chain")
    straight.mine(AFTER)
    with serve(joined, development=True) as api:
        api.post("/dev/advance", {"height": JOINED_AT + AFTER})
        assert api.get("/status")["state_root"] == str(straight.chain.state_root)
        app = create_app(api.node, explorer_routes(api.node))
        ended = [timer_id for timer_id in before if straight.chain.timer(timer_id) is None]
        assert ended
        for timer_id in ended:
            told = explain_timer(straight.chain, timer_id)
            found = api.get(f"/timers/0x{timer_id.hex()}")
            assert (found["state"], found["cause"], found["ended_at"]) == (
                told.state,
                None,
                told.steps[-1].block_height,
            )
            why = api.error("GET", f"/timers/0x{timer_id.hex()}/explain", 404)["what"]
            assert f"no block above {JOINED_AT}, where this node joined the network, scheduled timer" in why

        async def page(path: str) -> httpx.Response:
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4000") as client:
                return await client.get(path)

        answer = api._runner.run(page(links.timer(ended[0])))
        assert answer.status_code == 200
        assert "Its story is not here" in answer.text
        stranger = api.error("GET", f"/timers/0x{bytes(32).hex()}", 404)["what"]
        assert f"no block above {JOINED_AT}, where this node joined the network, scheduled it" in stranger
    straight.close()
