"""A node's watchtower sees what a walk over the whole chain sees, by a bounded number of payers at each look."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.node.apis import lively_chain, serve
from tests.unit.forecast.test_runway import CBY, PULSE
from trailboss.forecast import watchtower as forecast
from trailboss.forecast.watchtower import WatchedPayer, look, look_at
from trailboss.index import Index
from trailboss.node import watchtower
from trailboss.node.block_builder import Published
from trailboss.node.watchtower import Watchtower
from trailboss.testing import LocalChain

ACTORS = 12


@pytest.fixture
def local() -> Iterator[LocalChain]:
    """Return a chain on which a dozen actors have timers that go on, and purses of every depth."""
    with LocalChain() as chain:
        for at in range(ACTORS):
            actor = chain.deploy(PULSE, sender=chain.accounts[0], value=(20 + 5 * at) * CBY)
            actor.call("start", b"%d,60000" % (1 + at % 4), sender=chain.accounts[0], check=True)
        chain.mine(20)
        yield chain


@pytest.fixture
def index(local: LocalChain) -> Iterator[Index]:
    """Return an index of it."""
    found = Index.open(None, local.chain)
    yield found
    found.close()


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the payers that are looked at, as they are."""
    found: list[bytes] = []

    def counted(chain: Any, payer: bytes, *rest: Any) -> WatchedPayer:
        found.append(payer)
        return look_at(chain, payer, *rest)

    monkeypatch.setattr(watchtower, "look_at", counted)
    return found


def test_watch_is_that_of_the_whole_chain_when_there_are_few_payers(local: LocalChain, index: Index) -> None:
    """To the letter, and again after the chain has gone on."""
    tower = Watchtower(index)
    assert tower.look(local.chain.publish()) == look(local.chain)
    seen = local.height
    local.mine(7)
    blocks = tuple(local.chain.blocks[seen + 1 :])
    index.apply(blocks)
    view = local.chain.publish()
    tower.record(Published(view=view, blocks=blocks))
    assert tower.look(view) == look(local.chain)


@pytest.mark.parametrize("mechanism", ["fifo", "lane", "auction", "globalbox"])
def test_watch_is_that_of_the_whole_chain_under_every_mechanism(mechanism: str) -> None:
    """With timers of every fate: live, fired, expired, unfunded, reverted, and state watches."""
    chain, _ = lively_chain(mechanism)
    index = Index.open(None, chain.chain)
    expected = look(chain.chain)
    assert Watchtower(index).look(chain.chain.publish()) == expected
    assert any(each.timers for each in expected.payers)
    index.close()
    chain.close()


def test_look_is_bounded_and_all_are_seen_in_turn_when_there_are_many(
    local: LocalChain, index: Index, looked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many payers at once, whatever the chain holds; after some looks everybody has been seen."""
    monkeypatch.setattr(watchtower, "TIMERS_MAX", 6)
    tower, known = Watchtower(index), []
    for _ in range(30):
        local.mine(1)
        index.apply((local.chain.head,))
        before = len(looked)
        known.append(tower.look(local.chain.publish(), 100).known)
        # Each of them has one timer, and counts as one besides.
        assert len(looked) - before == 3
    assert known[0] == 3
    assert known[-1] == ACTORS == len(set(looked))
    count = len(looked)
    tower.look(local.chain.publish())
    assert len(looked) == count


def test_payer_is_looked_at_when_its_fire_has_run(
    local: LocalChain, index: Index, looked: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has paid since the last look is seen before the others have their turn."""
    monkeypatch.setattr(watchtower, "TIMERS_MAX", 2)
    tower = Watchtower(index)
    payers = [each.payer for each in local.chain.head.receipts]
    for at in range(len(payers)):
        tower.record(Published(view=local.chain.publish(), blocks=(local.chain.blocks[-1],) if not at else ()))
        tower.look(local.chain.publish())
        local.mine(1)
        index.apply((local.chain.head,))
    assert len(payers) > 2
    assert looked == payers


def test_nothing_of_a_lost_branch_is_left_when_the_chain_has_gone_back(local: LocalChain, index: Index) -> None:
    """What was seen of payers in blocks that are gone is forgotten."""
    tower = Watchtower(index)
    mark = local.snapshot()
    late = local.deploy(PULSE, sender=local.accounts[0], value=7 * CBY)
    late.call("start", b"1,60000", sender=local.accounts[0], check=True)
    index.apply(tuple(local.chain.blocks[index.height + 1 :]))
    assert late.address in [each.payer for each in tower.look(local.chain.publish()).payers]
    local.revert(mark)
    index.revert(local.height)
    view = local.chain.publish()
    tower.record(Published(view=view, reorg_from=local.height))
    assert tower.look(view) == look(local.chain)


def test_index_knows_who_pays_and_for_what(local: LocalChain, index: Index) -> None:
    """As a walk over all timers does, in the order of their heights; page by page."""
    timers = list(local.chain.timers())
    found, cursor, pages = [], 0, 0
    while cursor or not pages:
        payers, cursor = index.live_payers(cursor, 5)
        found += payers
        pages += 1
    assert sorted(found) == sorted({timer.fee_payer for timer in timers})
    assert pages >= ACTORS // 5
    for payer in found:
        ids = [timer.timer_id for timer in timers if timer.fee_payer == payer]
        assert list(index.next_paid(payer, 9)) == ids[:9]
    assert index.next_paid(bytes(20), 9) == ()


def test_node_answers_with_its_watch(local: LocalChain) -> None:
    """Under /watchtower, as many as are asked for."""
    expected = look(local.chain, limit=3)
    with serve(local) as api:
        answer = api.get("/watchtower?limit=3")
        assert [each["payer"] for each in answer["payers"]] == [str(each.payer) for each in expected.payers]
        assert (answer["known"], answer["height"]) == (ACTORS, local.height)
        assert api.error("GET", "/watchtower?limit=0", 400)["context"]["parameter"] == "limit"
        text = api.request("GET", "/metrics").text
    first = expected.payers[0]
    assert f'trailboss_payer_fires_left{{payer="{first.payer}"}} {float(first.fires_left or 0)}' in text
    assert f'trailboss_payers{{part="listed"}} {float(ACTORS)}' in text


def test_timers_of_a_payer_are_looked_at_up_to_a_bound(local: LocalChain, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that there are more; the first of them are what counts within so many fires."""
    monkeypatch.setattr(forecast, "PAID_TIMERS_MAX", 3)
    many = local.deploy(PULSE, sender=local.accounts[0], value=900 * CBY)
    many.call("start", b" ".join(b"%d,60000" % at for at in range(3, 9)), sender=local.accounts[0], check=True)
    [seen] = [each for each in look(local.chain, limit=99).payers if each.payer == many.address]
    assert (seen.timers, seen.has_more) == (3, True)
