"""A published view tells for ever what the chain told then, and an index of events changes no answer."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.model.histories import USERS, History, seeded
from tests.model.hunt import MADE, played
from tests.model.session import USER_ADDRESSES, Session
from trailboss.chain.chain import Chain
from trailboss.chain.proofs import AccountSubject, TimersSubject
from trailboss.chain.reader import ChainReader
from trailboss.forecast.quote import quote_timer
from trailboss.forecast.runway import runway_of
from trailboss.model import events as names
from trailboss.model.blocks import Block
from trailboss.primitives.errors import Rejection, ViewGoneError
from trailboss.primitives.units import U64_MAX
from trailboss.views.explain.life import EarlierEvents, TimerLife, events_since, explain_timer
from trailboss.views.mechanism.auction_records import auction_of
from trailboss.views.mechanism.globalbox_records import globalbox_of, mailbox_of
from trailboss.views.records import block_events, events_of
from trailboss.views.timer_list import ALL, TimerFilter, list_timers, match_timer

SEEDS = range(2)
LIFE_SEEDS = (1, 2, 3)
LIVES_APART = 5


def answer(ask: Callable[[], object]) -> object:
    """Return an answer, or the words of a refusal."""
    try:
        return ask()
    except Rejection as refusal:
        return refusal.what


def told_by_state(reader: ChainReader) -> dict[str, object]:
    """Return what can be asked of a chain's state."""
    timers, proved = list(reader.timers()), [AccountSubject(USER_ADDRESSES["dan"]), TimersSubject(0, U64_MAX)]
    return {
        "place": (reader.height, reader.head, reader.state_root, reader.mechanism.name),
        "rules": reader.rules(),
        "money": (reader.economy(), reader.circulating(), reader.totals(), reader.fire_count()),
        "accounts": [(address, account, reader.storage(address)) for address, account in reader.accounts()],
        "timers": (timers, [reader.timer(timer.timer_id) for timer in timers], reader.timer_count()),
        "tiers": [reader.tier(timer) for timer in timers],
        "counts": (reader.due_count(), reader.timer_counts(range(40)), reader.timer_counts([0, U64_MAX + 1])),
        "mechanism": [answer(lambda each=each: each(reader)) for each in (auction_of, globalbox_of, mailbox_of)],
        "quote": answer(lambda: quote_timer(reader, reader.height + 3, 10_000, blocks=1)),
        "proofs": [reader.prove(subject) for subject in proved],
    }


def told_by_blocks(reader: ChainReader) -> dict[str, object]:
    """Return what can be asked of a chain's blocks, and of both."""
    timer_ids = match_timer(reader, "")
    return {
        "blocks": list(reader.blocks),
        "decisions": [reader.decisions(height) for height in range(reader.height + 1)],
        "list": list(list_timers(reader, TimerFilter(state=ALL))),
        "ids": timer_ids,
        "lives": [explain_timer(reader, timer_id) for timer_id in timer_ids[::LIVES_APART]],
        "events": list(events_since(reader)),
        "purses": [runway_of(reader, USER_ADDRESSES[user]) for user in USERS],
        "quote": answer(lambda: quote_timer(reader, reader.height + 3, 10_000)),
    }


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mechanism", MADE)
def test_view_tells_what_the_chain_told_when_the_chain_goes_on(mechanism: str, seed: int, tmp_path: Path) -> None:
    """Every answer of a view taken halfway is that of the chain then, in memory and on disk, after a branch and all."""
    history = MADE[mechanism](seeded(seed))
    branch = MADE[mechanism](seeded(seed + 1))
    session = Session(history, tmp_path / "chain" if seed % 2 else None)
    half = len(history.blocks) // 2
    session.play(history.blocks[:half])
    view, told = session.chain.publish(), (told_by_state(session.chain), told_by_blocks(session.chain))
    view.check_invariants()
    session.play(history.blocks[half:])
    session.chain.publish()
    mark = session.chain.snapshot()
    session.branch(branch.blocks[1:])
    assert session.chain.snapshot() == mark
    assert (told_by_state(view), told_by_blocks(view)) == told
    view.check_invariants()
    session.chain.close()


@pytest.mark.parametrize("mechanism", MADE)
def test_view_keeps_its_state_and_names_the_blocks_it_lost_when_the_chain_goes_back(mechanism: str) -> None:
    """Below the point that the chain went back to nothing is lost; above it only the view's own head is there."""
    history = MADE[mechanism](seeded(3))
    session = Session(history)
    session.play(history.blocks)
    chain = session.chain
    view, state, blocks = chain.publish(), told_by_state(chain), list(chain.blocks)
    height, kept = chain.height, chain.height // 2
    chain.reorg(height - kept)
    chain.build(timestamp_ms=chain.head.header.timestamp_ms + 1)
    list(chain.advance_to(height + 5))
    assert told_by_state(view) == state != told_by_state(chain.publish())
    assert view.blocks[: kept + 1] == blocks[: kept + 1]
    assert view.blocks[height] == blocks[height] != chain.blocks[height]
    for lost in (
        lambda: view.blocks[kept + 1],
        lambda: view.decisions(height - 1),
        lambda: list(view.blocks),
        lambda: list(view.blocks.since(kept + 1)),
        lambda: list(view.blocks.eventful(kept)),
        lambda: list(events_since(view)),
    ):
        with pytest.raises(ViewGoneError, match=f"back to block {kept}; the view of block {height}"):
            lost()


def heights_by_timer(blocks: Iterable[Block]) -> dict[bytes, set[int]]:
    """Return the heights of the blocks that hold events of each timer."""
    found: dict[bytes, set[int]] = defaultdict(set)
    for block in blocks:
        for record in block_events(block):
            if record.timer_id:
                found[record.timer_id].add(block.height)
    return found


def earlier_of(chain: Chain, life: TimerLife) -> EarlierEvents:
    """Return what came before the block that scheduled a timer, counted the plain way."""
    begun = life.steps[0]
    before = [event for block in chain.blocks[: begun.block_height] for event in events_of(block)]
    agents = [event for event in before if event.name == names.AGENT_SET and event.emitter == begun.event.emitter]
    return EarlierEvents(
        scheduled=sum(event.name == names.TIMER_SCHEDULED for event in before),
        agent=agents[-1].data["agent"] if agents else b"",
    )


@pytest.mark.parametrize("seed", LIFE_SEEDS)
@pytest.mark.parametrize("mechanism", MADE)
def test_lives_are_the_same_when_an_index_names_their_blocks(mechanism: str, seed: int) -> None:
    """Of every timer there ever was, with or without what came before it, and with blocks that have nothing of it."""
    history: History = MADE[mechanism](seeded(seed))
    chain = played(history).chain
    for timer_id, heights in heights_by_timer(chain.blocks).items():
        life = explain_timer(chain, timer_id)
        assert explain_timer(chain, timer_id, heights) == life
        assert explain_timer(chain, timer_id, heights, earlier_of(chain, life)) == life
        assert explain_timer(chain, timer_id, range(chain.height + 3)) == life
