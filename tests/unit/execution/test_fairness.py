"""The fairness window in state: who has fired how often, what leaves when, and that the sums always fit the records."""

from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trailboss.execution.lane.fairness import (
    check_window,
    count_fires,
    fires_key,
    first_to_leave,
    leave_window,
    read_fires,
    read_totals,
)
from trailboss.execution.ledger import Ledger
from trailboss.mechanisms.base import Follower
from trailboss.mechanisms.fee_lane.weight import lower_median
from trailboss.model.configs import BlockFires, FairnessTotals
from trailboss.model.transactions import SetGovParam
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Address
from trailboss.state.overlay import Overlay
from trailboss.state.store import MemoryStore
from trailboss.testing import ActorHandle, LocalChain

ALICE, BOB, CAROL = (Address(bytes([number]) * 20) for number in (1, 2, 3))
Fires = dict[bytes, int]


@dataclass
class Window(Follower):
    """A state that holds nothing but a fairness window, and what its mechanism would hear."""

    window: int = 3
    left_max: int = 16
    overlay: Overlay = field(default_factory=lambda: Overlay(MemoryStore()))
    heard: list[tuple[bytes, int]] = field(default_factory=list)

    def session(self, height: int) -> Any:
        lane = SimpleNamespace(fairness_window_blocks=self.window, window_blocks_left_max=self.left_max)
        rules = SimpleNamespace(params=SimpleNamespace(lane=lane))
        context = SimpleNamespace(height=height, rules=rules)
        return SimpleNamespace(context=context, overlay=self.overlay, ledger=Ledger(self.overlay), follower=self)

    def recount(self, actor: bytes, fires: int) -> None:
        self.heard.append((actor, fires))

    def block(self, height: int, fires: Fires | None = None) -> FairnessTotals:
        """Go through one block, and return the sums that its selection sees."""
        session = self.session(height)
        seen = leave_window(session)
        count_fires(session, fires or {})
        return seen

    def counts(self) -> Fires:
        """Return the fires of those that have any."""
        found = {actor: Ledger(self.overlay).account(actor).recent_fires for actor in (ALICE, BOB, CAROL)}
        return {actor: fires for actor, fires in found.items() if fires}

    def records(self) -> list[BlockFires]:
        totals = read_totals(self.overlay.read)
        return [read_fires(self.overlay.read, number) for number in range(totals.first, totals.next)]


@pytest.mark.spec("L-23", "L-25")
def test_fires_count_from_the_next_block_on_and_for_as_long_as_the_window() -> None:
    """Those of block 5 count in the selections of blocks 6 and 7 of a window of three, and no longer in that of 8."""
    window = Window()
    medians = [window.block(height, {ALICE: 2} if height == 5 else None).counts for height in range(4, 10)]
    assert medians == [(), (), ((2, 1),), ((2, 1),), (), ()]


@pytest.mark.spec("L-23", "L-25")
def test_sums_follow_when_several_actors_fire_over_several_blocks() -> None:
    """Worked by hand: a window of three, two actors, a block without a fire, and the first blocks leaving again."""
    window = Window()
    assert window.block(10, {ALICE: 2, BOB: 1}) == FairnessTotals()
    assert read_totals(window.overlay.read) == FairnessTotals(0, 1, ((1, 1), (2, 1)))
    window.block(11, {BOB: 1})
    assert read_totals(window.overlay.read) == FairnessTotals(0, 2, ((2, 2),))
    window.block(12)
    assert read_totals(window.overlay.read) == FairnessTotals(0, 2, ((2, 2),))
    assert window.block(13, {ALICE: 5}) == FairnessTotals(1, 2, ((1, 1),))
    assert window.counts() == {ALICE: 5, BOB: 1}
    assert window.block(14) == FairnessTotals(2, 3, ((5, 1),))
    assert window.counts() == {ALICE: 5}
    assert window.records() == [BlockFires(13, ((ALICE, 5),))]


@pytest.mark.spec("L-26")
def test_nothing_of_an_actor_stays_when_its_last_fire_has_left() -> None:
    """Neither a block record nor a count of the histogram; the numbering goes on."""
    window = Window(window=1)
    window.block(7, {ALICE: 3})
    assert window.overlay.read(fires_key(0)) is not None
    window.block(8)
    assert window.overlay.read(fires_key(0)) is None
    assert read_totals(window.overlay.read) == FairnessTotals(1, 1, ())
    assert (window.counts(), first_to_leave(window.session(1).context.rules, window.overlay.read)) == ({}, None)


def test_block_writes_nothing_when_nothing_fires_and_nothing_leaves() -> None:
    """An idle block is the same block whether it is built or not."""
    window = Window()
    window.block(5, {ALICE: 1})
    mark = window.overlay.changes()
    window.block(6)
    window.block(7)
    assert window.overlay.changes() == mark
    window.block(8)
    assert window.overlay.changes() != mark


def test_next_change_is_known_when_nothing_fires() -> None:
    """The oldest record leaves in the block that is a whole window after its own."""
    window = Window(window=4)
    assert first_to_leave(window.session(1).context.rules, window.overlay.read) is None
    window.block(5, {ALICE: 1})
    window.block(7, {ALICE: 1})
    assert first_to_leave(window.session(1).context.rules, window.overlay.read) == 9
    assert window.block(8).first == 0
    assert window.block(9).first == 1
    assert first_to_leave(window.session(1).context.rules, window.overlay.read) == 11


@pytest.mark.spec("L-27")
def test_blocks_leave_in_slices_when_the_window_is_made_much_shorter() -> None:
    """Two a block, oldest first; all the while the sums fit what is still there."""
    window = Window(window=100, left_max=2)
    for height in range(1, 8):
        window.block(height, {ALICE: 1})
    window.window = 1
    left = []
    for height in range(8, 14):
        window.block(height)
        left.append([record.height for record in window.records()])
        check_window(read_totals(window.overlay.read), window.counts(), window.records())
    assert left == [[3, 4, 5, 6, 7], [5, 6, 7], [7], [], [], []]


@pytest.mark.spec("L-27")
def test_what_has_left_stays_away_when_the_window_is_made_longer() -> None:
    """It begins to hold more from then on."""
    window = Window(window=1)
    window.block(1, {ALICE: 1})
    window.block(2, {BOB: 1})
    window.window = 100
    window.block(3, {CAROL: 1})
    assert window.counts() == {BOB: 1, CAROL: 1}
    window.block(101)
    assert window.counts() == {BOB: 1, CAROL: 1}
    window.block(102)
    assert window.counts() == {CAROL: 1}


BLOCKS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from([ALICE, BOB, CAROL]), st.integers(1, 5), max_size=3),
        st.integers(1, 4),
        st.one_of(st.none(), st.integers(1, 8)),
    ),
    max_size=30,
)


@pytest.mark.spec("L-23", "L-25", "L-26", "L-27")
@given(BLOCKS, st.integers(1, 6), st.integers(1, 3))
def test_sums_are_those_of_a_plain_list_of_fires(
    blocks: list[tuple[Fires, int, int | None]], first_window: int, left_max: int
) -> None:
    """Whatever fires, however the heights jump, and however often governance changes the window."""
    window = Window(window=first_window, left_max=left_max)
    plain: list[tuple[int, Fires]] = []
    height = 0
    for fires, step, changed in blocks:
        height += step
        window.window = changed or window.window
        leaving = [entry for entry in plain if entry[0] <= height - window.window][:left_max]
        plain = [entry for entry in plain if entry not in leaving]
        seen = window.block(height, fires)
        assert seen.counts == tuple(sorted(Counter(summed(plain).values()).items()))
        values = sorted(summed(plain).values())
        assert lower_median(seen.counts) == (values[(len(values) - 1) // 2] if values else 0)
        plain += [(height, fires)] if fires else []
        assert window.counts() == summed(plain)
        assert [(record.height, dict(record.fires)) for record in window.records()] == plain
        check_window(read_totals(window.overlay.read), window.counts(), window.records())


def summed(plain: list[tuple[int, Fires]]) -> Fires:
    return dict(sum((Counter(fires) for _, fires in plain), Counter()))


def test_window_that_lacks_a_record_stops_the_chain() -> None:
    """A number within the window without its record is a broken state."""
    window = Window()
    window.block(5, {ALICE: 1})
    window.block(6, {ALICE: 1})
    window.overlay.delete(fires_key(0))
    with pytest.raises(InvariantError, match=r"^the state holds no block record 0 of the fairness window$"):
        window.block(8)


def test_more_fires_that_leave_than_there_were_stop_the_chain() -> None:
    """A count below nothing is a broken state."""
    window = Window()
    window.block(5, {ALICE: 3})
    ledger = Ledger(window.overlay)
    ledger.put(ALICE, replace(ledger.account(ALICE), recent_fires=2))
    with pytest.raises(InvariantError, match=f"^{ALICE} has 2 fires in the window, and 3 of them leave$"):
        window.block(8)


SOUND = {
    "totals": FairnessTotals(4, 6, ((1, 1), (3, 1))),
    "actors": {ALICE: 3, BOB: 1},
    "records": [BlockFires(7, ((ALICE, 2),)), BlockFires(9, ((ALICE, 1), (BOB, 1)))],
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"actors": {ALICE: 3, BOB: 2}}, f"{BOB} has 2 fires in its account and 1 in the window"),
        ({"actors": {ALICE: 3}}, f"{BOB} has 0 fires in its account and 1 in the window"),
        ({"actors": {ALICE: 3, BOB: 1, CAROL: 1}}, f"{CAROL} has 1 fires in its account and 0 in the window"),
        ({"records": SOUND["records"][1:]}, f"{ALICE} has 3 fires in its account and 1 in the window"),
        ({"totals": FairnessTotals(4, 6, ((1, 2),))}, "the fairness histogram ((1, 2),) is not that of the accounts"),
        ({"totals": FairnessTotals(4, 6, ())}, "the fairness histogram () is not that of the accounts"),
        ({"records": SOUND["records"][::-1]}, "the block records of the fairness window are not in order of height"),
    ],
)
def test_sums_are_refused_when_they_do_not_add_up(change: dict[str, Any], words: str) -> None:
    """Accounts against block records, the histogram against accounts, the order of the records."""
    with pytest.raises(InvariantError) as caught:
        check_window(**SOUND | change)
    assert str(caught.value) == words


# Through a chain

ACTOR = """
def arm(payload):
    for item in payload.split():
        pvm_host.schedule_timer_ex(int(item), b"", gas_limit=30_000)


def handle_timer(payload):
    pass
"""


def lane_chain(actors: int, **params: int) -> tuple[LocalChain, list[ActorHandle]]:
    """Return a chain under the lane, with actors that fire when they are told to."""
    chain = LocalChain(mechanism="lane", params={f"lane.{name}": value for name, value in params.items()})
    owner = chain.accounts[0]
    return chain, [chain.deploy(ACTOR, sender=owner, value=10**13) for _ in range(actors)]


def arm(actor: ActorHandle, *heights: int) -> None:
    payload = " ".join(str(height) for height in heights).encode()
    actor.call("arm", payload, sender=actor.chain.accounts[0], check=True)


def recent(chain: LocalChain, actors: list[ActorHandle]) -> list[int]:
    return [account.recent_fires for actor in actors if (account := chain.chain.account(actor.address)) is not None]


@pytest.mark.spec("L-23", "L-25", "L-26")
def test_accounts_hold_their_recent_fires_when_a_chain_goes_on() -> None:
    """A window of three blocks on a chain; each block's record tells the median that its selection went by."""
    chain, actors = lane_chain(3, fairness_window_blocks=3)
    first = chain.height + 5
    arm(actors[0], first, first, first, first + 1, first + 4)
    arm(actors[1], first, first + 2)
    arm(actors[2], first + 1, first + 1)
    chain.advance_to(first - 1)
    counted, medians = [], []
    for _ in range(9):
        chain.chain.build()
        chain.check_invariants()
        record = chain.chain.decisions(chain.height)
        counted.append(recent(chain, actors))
        medians.append(None if record is None else record.median_fires)
    assert counted == [
        [3, 1, 0],
        [4, 1, 2],
        [4, 2, 2],
        [1, 1, 2],
        [1, 1, 0],
        [1, 0, 0],
        [1, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]
    # Lower medians of 3 1, of 4 1 2, of what is left of 4 2 2 ...; the last blocks decide nothing, and have no record.
    assert medians[:3] == [0, 1, 2]
    assert medians[4] == 1


@pytest.mark.spec("L-27")
def test_window_shrinks_block_by_block_when_governance_shortens_it() -> None:
    """From the block after the vote on; two block records leave in each, until the rest is within the new window."""
    chain, (actor,) = lane_chain(1, fairness_window_blocks=1_000, window_blocks_left_max=2)
    first = chain.height + 2
    arm(actor, *range(first, first + 7))
    chain.advance_to(first + 6)
    assert recent(chain, [actor]) == [7]
    value = (1).to_bytes(8, "big")
    chain.system(SetGovParam(b"system:cip1:fairness_window_blocks", value), sender=chain.deployer, check=True)
    assert recent(chain, [actor]) == [7]
    counted = []
    for _ in range(5):
        chain.chain.build()
        chain.check_invariants()
        counted += recent(chain, [actor])
    assert counted == [5, 3, 1, 0, 0]
