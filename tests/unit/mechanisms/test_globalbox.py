"""Globalbox's decisions, one rule at a time."""

import msgspec
import pytest

from tests.unit.mechanisms.globalbox_worlds import (
    CELL_BASEFEE,
    OWNER,
    RICH,
    TARGET,
    World,
    deliver,
    height_timer,
    make_mechanism,
    terms_of,
    watch_timer,
)
from trailboss.mechanisms.base import Decision, DueTimers, Rest, Verdict
from trailboss.mechanisms.globalbox import build_globalbox
from trailboss.model import calls
from trailboss.model.configs import MarketKind
from trailboss.model.decisions import FeeSource, Stop
from trailboss.model.globalbox import CarriedHit, bid_octets
from trailboss.model.timers import DeferralReason, Timer
from trailboss.params import load_params
from trailboss.primitives.errors import InvariantError

ONE = 1 << 96
OTHER = b"\x03" * 20
KEY = TARGET + b"count"
"""A slot of the target."""


class Play:
    """A world with a mechanism, block by block."""

    def __init__(self, *timers: Timer, **terms: int) -> None:
        self.world = World()
        for name, value in terms.items():
            setattr(self.world.terms, name, value)
        self.mechanism = make_mechanism(self.world)
        self.mechanism.begin(lambda: iter(timers))
        for timer in timers:
            self.world.timers[timer.timer_id] = timer

    def block(self, *modified: bytes, carried: tuple[CarriedHit, ...] = ()) -> tuple[list[Decision], Rest]:
        """Deliver the next block."""
        self.world.begin(modified, carried)
        self.mechanism.begin(lambda: iter(()))
        return deliver(self.world, self.mechanism)

    def outcomes(self, *modified: bytes) -> list[tuple[str, int]]:
        """Deliver the next block; return verdicts and sequences."""
        decisions, _ = self.block(*modified)
        return [(decision.verdict.value, decision.timer.sequence) for decision in decisions]


def queued(decisions: list[Decision]) -> list[int]:
    """Return the sequences of the candidates, in order."""
    return [decision.timer.sequence for decision in decisions if decision.verdict is Verdict.ENQUEUE]


def test_policy_names_the_calls_and_bounds_of_globalbox() -> None:
    """What differs from other mechanisms is data."""
    policy = build_globalbox(load_params(overrides={"globalbox.joined_max": 9})).policy
    assert (policy.joined_max, policy.keeps) == (9, MarketKind.GLOBALBOX)
    assert {calls.SET_STATE_WATCH, calls.UPDATE, calls.CANCEL} < policy.calls
    assert calls.SCHEDULE not in policy.calls


@pytest.mark.spec("G-01")
def test_height_timer_fires_once_when_its_height_has_come() -> None:
    """It is queued, materialized and run in the block of its height, and never again."""
    play = Play(height_timer(0, height=21))
    assert play.outcomes() == []
    assert play.outcomes() == [("enqueue", 0), ("materialize", 0), ("fire", 0)]
    assert play.outcomes() == []
    assert play.world.timers == {}


@pytest.mark.spec("G-01", "G-08")
def test_watch_fires_in_every_block_that_modifies_a_key_under_its_prefix() -> None:
    """One fire a block, whatever number of its keys is modified; other keys do not concern it."""
    play = Play(watch_timer(0, TARGET, KEY[:-1]))
    assert play.outcomes(OTHER + b"count") == []
    decisions, _ = play.block(KEY, TARGET + b"other", OTHER)
    assert [decision.verdict for decision in decisions] == [Verdict.ENQUEUE, Verdict.MATERIALIZE, Verdict.FIRE]
    fire, entry = decisions[0].fire, decisions[2].entry
    assert fire is not None
    assert entry is not None
    assert fire.matched_keys == entry.matched_keys == (KEY, TARGET + b"other")
    assert play.outcomes(KEY) == [("enqueue", 0), ("materialize", 0), ("fire", 0)]


@pytest.mark.spec("G-01")
def test_watch_does_not_hear_of_the_block_that_sets_it() -> None:
    """Nor of what counts as modified as of that block."""
    play = Play()
    play.world.begin((KEY,))
    play.world.put_in(watch_timer(0, KEY, schedule_block=play.world.height))
    assert deliver(play.world, play.mechanism)[0] == []
    carried = (CarriedHit(KEY, 0, play.world.height),)
    assert play.block(carried=carried)[0] == []
    assert len(play.block(KEY)[0]) == 3


@pytest.mark.spec("G-08")
def test_watch_is_no_candidate_when_its_fire_is_queued() -> None:
    """A change that comes while the fire waits adds nothing; when it has left the queue, the next block counts."""
    play = Play(watch_timer(0, KEY, bid=ONE), height_timer(1, height=20, bid=9 * ONE), max_fires=1)
    assert play.outcomes(KEY) == [("enqueue", 1), ("enqueue", 0), ("materialize", 1), ("fire", 1)]
    assert play.outcomes(KEY) == [("materialize", 0), ("fire", 0)]
    assert play.outcomes() == []
    assert play.outcomes(KEY) == [("enqueue", 0), ("materialize", 0), ("fire", 0)]


@pytest.mark.spec("G-09", "G-10")
def test_candidates_are_in_order_of_score_when_they_differ_in_it() -> None:
    """A bid of 2 is worth two blocks of age at the usual weights, and scores in 2⁻⁹⁶ tell the rest."""
    timers = [
        height_timer(0, height=20, bid=2 * ONE),
        height_timer(1, height=18, bid=1),
        height_timer(2, height=18),
        height_timer(3, height=19, bid=ONE + 2),
        watch_timer(4, KEY, bid=3 * ONE),
    ]
    decisions, _ = Play(*timers).block(KEY)
    assert queued(decisions) == [4, 3, 1, 0, 2]
    standings = [int.from_bytes(decision.fire.standing, "big") for decision in decisions[:5] if decision.fire]
    assert standings == [3 * ONE - ONE, ONE + 2, ONE + 1, ONE, ONE]


@pytest.mark.spec("G-10")
def test_candidates_of_equal_score_are_in_order_of_bucket_cursor_height_target_and_id() -> None:
    """Each member of the order decides where those before it are equal."""
    timers = [
        height_timer(0, height=20, bid=ONE, target=OTHER),
        height_timer(1, height=20, bid=ONE, target=TARGET),
        height_timer(2, height=20, bid=ONE, target=TARGET),
        height_timer(3, height=19, bid=0, target=TARGET),
        height_timer(4, height=19, bid=0, target=b"\x04" * 20),
    ]
    decisions, _ = Play(*timers).block()
    # 0 to 4 score the same. The bid of 1 has the higher bucket; 1 and 0 are the first of their targets, 2 the second.
    assert queued(decisions) == [1, 0, 2, 4, 3]
    fires = [decision.fire for decision in decisions[:5] if decision.fire]
    assert [(fire.bucket, fire.cursor) for fire in fires] == [(1, 0), (1, 0), (1, 1), (0, 0), (0, 2)]


@pytest.mark.spec("G-09")
def test_score_fits_its_octets_when_everything_is_at_its_bound() -> None:
    """Age over all heights, the greatest bid and the greatest weights, against a clock of the same size."""
    weights = {"age_weight": (2**63 - 1) << 64, "bid_weight": 2**32 - 1}
    timer = height_timer(0, height=1, bid=2**128 - 1, gas_limit=1, expires_at=2**64 - 1)
    play = Play(timer, **weights)
    play.world.height = 2**64 - 2
    play.world.clock = weights["age_weight"] * (2**64 - 2)
    decisions, _ = play.block()
    assert queued(decisions) == [0]
    assert decisions[0].fire is not None
    standing = int.from_bytes(decisions[0].fire.standing, "big", signed=True)
    assert standing == weights["bid_weight"] * (2**128 - 1) - weights["age_weight"]
    least = Play(watch_timer(0, KEY, expires_at=2**64 - 1), **weights)
    least.world.height, least.world.clock = play.world.height - 1, play.world.clock
    decisions, _ = least.block(KEY)
    assert decisions[0].fire is not None
    assert int.from_bytes(decisions[0].fire.standing, "big", signed=True) == -least.world.clock


@pytest.mark.spec("G-12")
def test_quotas_pass_over_a_target_that_has_had_its_share() -> None:
    """The rest stays queued, in its place."""
    timers = [height_timer(number, height=20, bid=(9 - number) * ONE) for number in range(4)]
    timers.append(height_timer(4, height=20, target=OTHER))
    play = Play(*timers, max_fires=3, share=2)
    outcomes = play.outcomes()
    assert outcomes[5:8] == [("materialize", 0), ("materialize", 1), ("materialize", 4)]
    assert play.outcomes() == [("materialize", 2), ("materialize", 3), ("fire", 2), ("fire", 3)]


@pytest.mark.spec("G-11")
def test_queued_fire_keeps_its_place_when_weights_change() -> None:
    """It ages by W_age a block, whatever W_age is: a lesser bid that waits overtakes nobody who was queued with it."""
    play = Play(height_timer(0, height=20, bid=5 * ONE), height_timer(1, height=20), max_fires=0, share=0)
    play.block()
    play.world.terms.age_weight = 100 * ONE
    play.world.put_in(height_timer(2, height=21, bid=50 * ONE))
    play.world.put_in(height_timer(3, height=21, bid=102 * ONE))
    play.block()
    play.world.terms.max_fires = play.world.terms.share = 4
    assert play.outcomes()[:4] == [("materialize", number) for number in (0, 3, 1, 2)]


@pytest.mark.spec("G-06")
def test_fire_is_delivered_with_what_it_was_queued_with_when_its_timer_is_updated() -> None:
    """An update reaches later fires, and moves none that is queued."""
    play = Play(watch_timer(0, KEY), max_fires=0)
    play.block(KEY)
    timer = play.world.timers[bytes(b"%032d" % 0)]
    terms = msgspec.structs.replace(terms_of(timer), bid=bid_octets(7 * ONE))
    play.world.write(msgspec.structs.replace(timer, gas_limit=33, payload=b"new", terms=terms))
    play.world.terms.max_fires = 1
    decisions, _ = play.block()
    assert [decision.gas_limit for decision in decisions] == [100, 100]
    assert decisions[1].prices.cycle_tip == 0
    decisions, _ = play.block(KEY)
    assert (decisions[2].gas_limit, decisions[2].prices.cycle_tip) == (33, 7)


@pytest.mark.spec("G-07")
def test_cancelled_timer_leaves_the_queue_and_its_entries_run() -> None:
    """What is materialized is untouched."""
    first = height_timer(2, height=20, bid=9 * ONE, gas_limit=1)
    play = Play(watch_timer(0, KEY), watch_timer(1, KEY), first, max_fires=2, lane=50)
    ran = play.outcomes(KEY)
    assert ran[3:] == [("materialize", 2), ("materialize", 0), ("fire", 2)]
    play.world.remove(b"%032d" % 0)
    play.world.remove(b"%032d" % 1)
    assert play.outcomes(KEY) == [("fire", 0)]
    assert not play.mechanism.is_watched(KEY)


@pytest.mark.spec("G-22")
def test_expired_timers_end_first_when_the_budget_allows() -> None:
    """Earliest expiry first; those left over are neither candidates nor materialized, and go in the next block."""
    timers = [
        height_timer(0, height=19, expires_at=19),
        height_timer(1, height=18, expires_at=19),
        height_timer(2, height=20, expires_at=18),
        watch_timer(3, KEY, expires_at=19),
    ]
    play = Play(*timers, gc=400)
    assert play.outcomes(KEY) == [("expire", 2), ("expire", 1)]
    assert play.outcomes(KEY) == [("expire", 0), ("expire", 3)]
    assert play.world.timers == {}


@pytest.mark.spec("G-22")
def test_queued_fire_ends_with_its_timer_when_that_expires() -> None:
    """While the clean-up budget is spent it stays queued and is passed over, others are not."""
    timers = [height_timer(0, height=20, bid=9 * ONE, expires_at=20), height_timer(1, height=20)]
    play = Play(*timers, max_fires=0, gc=0)
    play.block()
    play.world.terms.max_fires = 2
    decisions, rest = play.block()
    assert [decision.timer.sequence for decision in decisions] == [1, 1]
    assert rest.outranked == 1
    play.world.terms.gc = 200
    assert play.outcomes() == [("expire", 0)]


def test_timer_in_the_mailbox_does_not_expire() -> None:
    """A height timer ends with its entry; a watch ends, and its entries run."""
    first = height_timer(2, height=20, bid=9 * ONE, gas_limit=1)
    play = Play(height_timer(0, height=20, expires_at=20), watch_timer(1, KEY, expires_at=20), first, lane=50)
    assert play.outcomes(KEY)[-1] == ("fire", 2)
    play.world.terms.lane = 1_000
    assert play.outcomes() == [("expire", 1), ("fire", 0), ("fire", 1)]


@pytest.mark.spec("G-16")
def test_first_entry_runs_when_it_is_larger_than_the_lane() -> None:
    """Governance has lowered the lane since; one a block, so that the mailbox is never stuck. Decision: D-67."""
    play = Play(height_timer(0, height=20, bid=ONE), height_timer(1, height=20), lane=50)
    assert play.outcomes()[-1] == ("fire", 0)
    assert play.outcomes() == [("fire", 1)]


@pytest.mark.spec("G-16")
def test_mailbox_runs_a_prefix_when_the_lane_is_short() -> None:
    """The first entry that does not fit ends the walk, though a later one would fit."""
    limits = enumerate((50, 1, 90, 60))
    timers = [height_timer(number, height=20, bid=number * ONE, gas_limit=gas) for number, gas in limits]
    play = Play(*timers, lane=120)
    decisions, rest = play.block()
    assert [decision.timer.sequence for decision in decisions if decision.verdict is Verdict.FIRE] == [3]
    assert (rest.stopped, rest.smallest_gas) == (Stop.LANE_FULL, 90)
    assert play.outcomes() == [("fire", 2), ("fire", 1)]
    decisions, rest = play.block()
    assert (decisions[0].rank, rest.stopped) == (1, Stop.NONE_LEFT)


def test_entry_costs_basefee_and_the_whole_part_of_its_bid() -> None:
    """Per cycle; cells at their basefee."""
    play = Play(height_timer(0, height=20, bid=5 * ONE // 2))
    decisions, _ = play.block()
    fire = decisions[-1]
    assert (fire.max_cost, fire.prices.cycle_tip, fire.fee_source) == (100 * (7 + 2) + 50 * 3, 2, FeeSource.FROZEN)


@pytest.mark.spec("G-12", "G-16")
def test_entry_is_settled_at_the_prices_of_its_materialization() -> None:
    """Whatever the prices are when it runs, and whatever its owner has left by then. Decision: D-63."""
    play = Play(
        height_timer(0, height=20, bid=3 * ONE),
        height_timer(1, height=20, bid=2 * ONE, actor=OTHER, fee_payer=OTHER),
        lane=50,
    )
    play.world.balances[OTHER] = 100 * (7 + 2) + 150
    decisions, _ = play.block()
    paid = [decision for decision in decisions if decision.verdict is Verdict.MATERIALIZE]
    assert [(decision.max_cost, decision.available) for decision in paid] == [(1_150, RICH), (1_050, 1_050)]
    assert (play.world.balances[OTHER], decisions[-1].timer.sequence) == (0, 0)
    play.world.terms.cycle_basefee = 14
    (fire,), _ = play.block()
    assert (fire.verdict, fire.timer.sequence, fire.max_cost) == (Verdict.FIRE, 1, 1_050)
    assert (fire.prices.cycle_basefee, fire.prices.cell_basefee, fire.prices.cycle_tip) == (7, CELL_BASEFEE, 2)


@pytest.mark.spec("G-12")
def test_fire_takes_no_place_when_its_owner_cannot_pay() -> None:
    """Neither of the block's nor of its target's; its timer ends, height timer and watch alike."""
    empty = {"actor": OTHER, "fee_payer": OTHER}
    timers = [height_timer(number, height=20, bid=(9 - number) * ONE, **empty) for number in range(3)]
    timers += [watch_timer(3, KEY, bid=5 * ONE, **empty), height_timer(4, height=20, bid=ONE)]
    timers += [height_timer(5, height=20), height_timer(6, height=20, target=OTHER)]
    play = Play(*timers, max_fires=2, share=1, gc=800)
    play.world.balances[OTHER] = 100 * 7 + 149
    decisions, _ = play.block(KEY)
    outcomes = [(decision.verdict.value, decision.timer.sequence, decision.rank) for decision in decisions[7:]]
    assert outcomes == [
        *(("unfund", number, number + 1) for number in range(4)),
        ("materialize", 4, 5),
        ("materialize", 6, 6),
        ("fire", 4, 1),
        ("fire", 6, 2),
    ]
    assert (decisions[7].max_cost, decisions[7].available) == (100 * (7 + 9) + 150, 849)
    assert [timer.sequence for timer in play.world.timers.values()] == [5]
    assert play.outcomes(KEY) == [("materialize", 5), ("fire", 5)]


@pytest.mark.spec("G-12")
def test_owner_pays_for_as_many_fires_as_it_can() -> None:
    """Each is paid for before the next is looked at."""
    play = Play(*(height_timer(number, height=20) for number in range(3)))
    play.world.balances[OWNER] = 2 * 850 + 849
    outcomes = play.outcomes()[3:]
    assert outcomes[:3] == [("materialize", 0), ("materialize", 1), ("unfund", 2)]
    assert play.world.balances[OWNER] == 849


@pytest.mark.spec("G-12", "G-22")
def test_fire_without_funds_is_passed_over_when_the_clean_up_budget_is_spent() -> None:
    """It keeps its place and its timer, others go on, and it ends when there is budget, or goes when there is money.

    A block can always remove as many as it may materialize, here one.
    """
    empty = {"actor": OTHER, "fee_payer": OTHER}
    timers = [height_timer(number, height=20, bid=(9 - number) * ONE, **empty) for number in range(3)]
    timers += [height_timer(number, height=20) for number in range(3, 6)]
    play = Play(*timers, max_fires=1, share=1, gc=0)
    play.world.balances[OTHER] = 0
    decisions, rest = play.block()
    assert [(each.verdict.value, each.timer.sequence, each.rank) for each in decisions[6:]] == [
        ("unfund", 0, 1),
        ("materialize", 3, 4),
        ("fire", 3, 1),
    ]
    assert (rest.outranked, [each.timer.sequence for each in rest.runners_up]) == (4, [1, 2, 4, 5])
    assert play.outcomes() == [("unfund", 1), ("materialize", 4), ("fire", 4)]
    play.world.balances[OTHER] = RICH
    assert [play.outcomes()[0] for _ in range(2)] == [("materialize", number) for number in (2, 5)]


@pytest.mark.spec("G-12", "G-22")
def test_walk_ends_when_a_block_has_passed_over_as_many_as_it_may() -> None:
    """Those that it ends are not among them, and those behind wait for another block."""
    empty = {"actor": OTHER, "fee_payer": OTHER}
    timers = [height_timer(number, height=20, bid=(9 - number) * ONE, **empty) for number in range(4)]
    play = Play(*timers, height_timer(4, height=20), max_fires=1, share=1, passed_over_max=2, gc=0)
    play.world.balances[OTHER] = 0
    assert play.outcomes()[5:] == [("unfund", 0)]
    assert play.outcomes() == [("unfund", 1)]
    assert play.outcomes() == [("unfund", 2), ("materialize", 4), ("fire", 4)]


@pytest.mark.spec("G-12", "G-22")
def test_trickle_of_expiries_stops_nobody_when_a_block_removes_one_timer() -> None:
    """Expiries go first and take the whole clean-up budget; a fire without funds goes all the same."""
    timers = [watch_timer(number, KEY, expires_at=18 + number) for number in range(9)]
    timers.append(height_timer(9, height=20, bid=9 * ONE, actor=OTHER, fee_payer=OTHER))
    timers += [height_timer(number, height=height) for number, height in enumerate(range(20, 26), 10)]
    play = Play(*timers, gc=200)
    play.world.balances[OTHER] = 0
    for number in range(6):
        outcomes = [outcome for outcome in play.outcomes() if outcome[0] != "enqueue"]
        removed = [("expire", number), *([] if number else [("unfund", 9)])]
        assert outcomes == [*removed, ("materialize", 10 + number), ("fire", 10 + number)]


@pytest.mark.spec("G-12")
def test_every_target_moves_one_fire_when_shares_are_one() -> None:
    """Lines of many targets are walked once each, and the rest of each line stays in order."""
    targets = [b"%020d" % number for number in range(40)]
    timers = [
        height_timer(number, height=20, bid=number % 7 * ONE, target=targets[number % 40]) for number in range(120)
    ]
    play = Play(*timers, max_fires=1_000, share=1, joined_max=200, lane=10**6)
    seen: list[int] = []
    for _ in range(3):
        decisions, _ = play.block()
        moved = [each for each in decisions if each.verdict is Verdict.MATERIALIZE]
        assert sorted(each.timer.target for each in moved) == targets
        seen += [each.timer.sequence for each in moved]
    assert sorted(seen) == list(range(120))
    for target in range(40):
        bids = [number % 7 for number in seen if number % 40 == target]
        assert bids == sorted(bids, reverse=True)


def test_mailbox_is_walked_within_the_bound_on_examined_timers() -> None:
    """However little each entry uses."""
    play = Play(*(height_timer(number, height=20, gas_limit=1) for number in range(3)), examined_max=2)
    decisions, rest = play.block()
    assert [decision.timer.sequence for decision in decisions if decision.verdict is Verdict.FIRE] == [0, 1]
    assert rest.stopped is Stop.EXAMINED_MAX
    assert play.outcomes() == [("fire", 2)]


def test_rest_counts_what_joined_and_names_who_comes_next() -> None:
    """Runners-up are the next of the queue, and decide nothing."""
    play = Play(*(height_timer(number, height=20) for number in range(4)), max_fires=1)
    _, rest = play.block()
    assert (rest.joined, rest.outranked) == (3, 3)
    assert [decision.timer.sequence for decision in rest.runners_up] == [1, 2, 3]
    assert {decision.reason for decision in rest.runners_up} == {DeferralReason.OUTRANKED}
    assert play.outcomes() == [("materialize", 1), ("fire", 1)]


def test_rest_is_refused_when_the_walk_is_not_over() -> None:
    """It would not be known."""
    play = Play(height_timer(0, height=20))
    play.world.begin()
    selection = play.mechanism.select(play.world.due(), play.world.context())
    with pytest.raises(InvariantError, match="when it is over"):
        selection.rest()


def test_selection_is_refused_when_the_block_has_not_begun() -> None:
    """What waits is read then."""
    play = Play()
    context = play.world.context()
    play.mechanism.rewind()
    with pytest.raises(InvariantError, match="a block that has begun"):
        play.mechanism.select(DueTimers(()), context)


def test_timer_is_refused_when_it_joins_twice() -> None:
    """The joining has lost count."""
    play = Play()
    timer = height_timer(0, height=20)
    with pytest.raises(InvariantError, match="joins Globalbox a second time"):
        play.mechanism.select(DueTimers((), [timer, timer]), play.world.context())


def test_timer_is_refused_when_it_is_none_of_globalbox() -> None:
    """A record without the terms has no place in it."""
    timer = msgspec.structs.replace(height_timer(0), terms=None)
    with pytest.raises(InvariantError, match="no GlobalboxTerms"):
        build_globalbox(load_params()).begin(lambda: iter([timer]))


def test_nothing_is_remembered_before_the_first_block_and_after_going_back() -> None:
    """What is heard then is in the state, from which the index is made."""
    mechanism = build_globalbox(load_params())
    for _ in range(2):
        mechanism.schedule(watch_timer(0, KEY))
        mechanism.replace(watch_timer(0, KEY))
        mechanism.leave(watch_timer(0, KEY).timer_id)
        mechanism.recount(OWNER, 1)
        mechanism.expire([watch_timer(0, KEY).timer_id])
        assert not mechanism.only_wait(3)
        assert mechanism.next_end() == 0
        assert not mechanism.is_watched(KEY)
        mechanism.begin(lambda: iter([watch_timer(0, KEY)]))
        assert mechanism.is_watched(KEY)
        mechanism.rewind()


@pytest.mark.spec("G-22")
def test_next_end_follows_what_waits_to_expire() -> None:
    """Watches and height timers that end before their height count, and those whose height comes do not."""
    mechanism = build_globalbox(load_params())
    early, late = height_timer(0, height=90, expires_at=30), watch_timer(1, KEY, expires_at=40)
    mechanism.begin(lambda: iter([late, height_timer(2, height=20, expires_at=25)]))
    assert mechanism.next_end() == 41
    mechanism.schedule(early)
    mechanism.schedule(height_timer(3, height=20, expires_at=20))
    assert mechanism.next_end() == 31
    mechanism.replace(msgspec.structs.replace(early, height=30))
    assert mechanism.next_end() == 41
    mechanism.leave(late.timer_id)
    assert mechanism.next_end() is None
