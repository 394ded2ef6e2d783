"""What is told of the auction: views, decision records, the lives of its timers, and that its sums are checked."""

import msgspec
import pytest

from tests.integration.auctions import CBY, GAS, arm, bidder, open_auction, price, tell
from trailboss.chain.replay import verify_chain
from trailboss.execution.auction.standings import actor_key, epoch_key, find_actor, read_epoch
from trailboss.model.configs import encode_record
from trailboss.model.decisions import Order
from trailboss.primitives.errors import InvariantError
from trailboss.views.explain.decision_view import decision_view
from trailboss.views.mechanism.base import OutlookKind
from trailboss.views.timer_list import TimerFilter, list_timers

DUE = 14
ONE_FIRE = {"auction__budget_cycles": 100_000, "timers__max_cycles_per_fire": 100_000}
"""A budget for one fire of a hundred thousand cycles of gas at a time."""


@pytest.mark.spec("A-03", "A-08")
def test_view_has_agent_bid_and_delay() -> None:
    """Before it was asked there is no bid; then the standing one, and how long it has waited since it was due."""
    with open_auction() as chain:
        actor = bidder(chain, "1000000 5", value=CBY)
        (timer_id,) = arm(actor, "a", height=DUE)
        (view,) = chain.timers()
        assert view.auction is not None
        assert (view.auction.agent, view.auction.asked_at, view.auction.bid_max_fee) == (actor.address, None, None)
        assert (view.fees, view.auction.delay_count) == ("agent", 0)
        chain.advance_to(DUE + 1)
        (view,) = chain.timers()
        assert view.auction is not None
        assert (view.auction.bid_max_fee, view.auction.bid_tip, view.auction.asked_at) == (10**6, 5, DUE + 1)
        assert (view.fees, view.auction.delay_count, view.auction.is_late) == ("standing", 2, False)
        assert view.timer_id == timer_id


def test_timer_is_priced_out_when_its_bid_is_below_the_cycle_basefee() -> None:
    """The view, the list and the life say so; the record counts it and the sentence names the basefee."""
    with open_auction() as chain:
        actor = bidder(chain, "9999 0")
        (timer_id,) = arm(actor, "a", height=DUE)
        chain.advance_to(DUE + 1)
        assert [view.priced_out for view in chain.timers()] == [True]
        assert [entry.timer_id for entry in list_timers(chain.chain, TimerFilter(state="priced-out"))] == [timer_id]
        record = chain.decisions(DUE)
        assert record is not None
        assert decision_view(record, DUE).sentences == (
            "1 priced out: its max_fee is below the cycle basefee of 10,000",
        )
        life = chain.explain(timer_id)
        assert life.waited == "deferred 2 times: priced out at 14 and 15 (max_fee 9,999 < cycle basefee 10,000)"
        assert life.outlook_kind is OutlookKind.WAITS
        assert life.outlook.startswith("priced out as things stand: its standing bid of up to 9,999 a cycle is below")


@pytest.mark.spec("A-09", "A-10")
def test_auction_view_has_weights_and_what_they_follow_from() -> None:
    """Actors that took part, in order of address, with what the epoch has seen of them."""
    with open_auction(**ONE_FIRE) as chain:
        one, two = bidder(chain, "1000000 9"), bidder(chain, "1000000 5")
        arm(one, "a", "b", height=DUE)
        arm(two, "c", height=DUE)
        chain.advance_to(DUE)
        found = chain.auction()
        assert [each.actor for each in found.actors] == sorted((one.address, two.address))
        by_actor = {each.actor: each for each in found.actors}
        assert (by_actor[one.address].fires, by_actor[one.address].waiting) == (1, 1)
        assert (by_actor[two.address].fires, by_actor[two.address].deferrals) == (0, 1)
        assert (found.epoch, found.first_block, found.next_epoch_at, found.waiting) == (3, 12, 16, 2)
        assert found.highest_tip == 9
        assert found.cycles_used == by_actor[one.address].cycles_used > 0
        assert not any(each.is_behind for each in found.actors)
        chain.advance_to(15)
        assert all(each.is_behind for each in chain.auction().actors)


@pytest.mark.spec("A-01")
def test_record_tells_rank_tip_weight_and_bids() -> None:
    """It ranks by tip; there is no product of tip and weight, and no basefee of a lane."""
    with open_auction(**ONE_FIRE) as chain:
        one, two = bidder(chain, "1000000 9"), bidder(chain, "1000000 5")
        (first,), (second,) = arm(one, "a", height=DUE), arm(two, "b", height=DUE)
        chain.advance_to(DUE)
        record = chain.decisions(DUE)
        assert record is not None
        assert record.order is Order.TIP
        assert [(bid.timer_id, bid.max_priority_fee) for bid in record.agent_bids] == [(first, 9), (second, 5)]
        view = decision_view(record, DUE)
        assert (view.lane_basefee, view.queued, view.order) == (None, None, "tip")
        (row,) = view.rows
        assert (row.rank, row.tip, row.weight, row.effective_priority, row.fees) == (1, 9, "0.5", None, "agent")
        assert [found.timer_id for found in view.runners_up] == [second]
        assert view.sentences[0].startswith("1 outranked: the budget had ")


@pytest.mark.spec("A-08")
def test_life_tells_when_a_timer_was_asked_what_it_bid_and_what_outranked_it() -> None:
    """Carried on until it ran, with the rank and the tip at which it did."""
    with open_auction(**ONE_FIRE) as chain:
        one, two = bidder(chain, "1000000 9"), bidder(chain, "1000000 5")
        arm(one, "a", "b", height=DUE)
        (timer_id,) = arm(two, "c", height=DUE)
        chain.advance_to(DUE)
        price(two, "1000000 6")
        chain.mine()
        life = chain.explain(timer_id)
        assert life.state == "fired"
        assert [(bid.height, bid.max_priority_fee) for bid in life.bids] == [(14, 5), (15, 5), (16, 6)]
        assert life.waited.startswith("deferred 2 times: outranked at 14 and 15 (rank ")
        assert "at rank 1 of 1 with a tip of 6 a cycle and a weight of " in life.steps[-1].story
        assert "after 2 deferred blocks" in life.steps[-1].story
        assert [label for label, _ in life.lines()][-3:] == ["asked", "waited", "block 16"]


@pytest.mark.spec("A-03")
def test_life_tells_the_default_bid_when_the_agent_gives_none() -> None:
    """Until it is asked again, which every block without pressure does."""
    with open_auction() as chain:
        actor = bidder(chain, "raises", value=CBY)
        (timer_id,) = arm(actor, "a", height=DUE)
        chain.advance_to(DUE + 1)
        life = chain.explain(timer_id)
        assert [(bid.max_fee, bid.max_priority_fee, bid.is_default) for bid in life.bids] == [(20_000, 0, True)] * 2
        stories = [step.story for step in life.steps if step.event.name == "gba.fallback"]
        assert stories[0].startswith("the default agent's fees until it is asked again: its agent ")
        assert "no bid today" in stories[0]


@pytest.mark.spec("A-08")
def test_life_tells_that_a_timer_was_not_reached_when_a_block_passed_over_as_many_as_it_may() -> None:
    """Each block fires one of a crowd whose others do not fit what is left then; its own gas would, and no slice.

    The record names it only once it is among those that come next.
    """
    with open_auction(auction__budget_cycles=550_000, auction__passed_over_max=2) as chain:
        many, one = bidder(chain, "1000000 9", value=100_000 * CBY), bidder(chain, "1000000 5")
        arm(many, *(f"a{number}" for number in range(20)), height=DUE, gas_limit=550_000)
        (timer_id,) = arm(one, "z", height=DUE, gas_limit=300_000)
        chain.advance_to(DUE)
        assert chain.explain(timer_id).waited == (
            "deferred once: not reached at 14 (rank above 19, cut-off 1; tip 5, the last to fire tipped 9), as many as "
            "a block passes over stood before it"
        )
        chain.mine(2)
        assert chain.explain(timer_id).waited == (
            "deferred 3 times: not reached at 14 to 16 (rank 19 to above 19, cut-off 1), as many as a block passes "
            "over stood before it"
        )


@pytest.mark.spec("A-06")
def test_life_tells_that_its_payer_could_not_pay_when_it_was_asked_and_not_ranked() -> None:
    """It bids more than what ran and more than who came next; the record does not name it a second time."""
    with open_auction(**ONE_FIRE) as chain:
        poor, other = bidder(chain, "1000000 9", value=0), bidder(chain, "1000000 5")
        (timer_id,) = arm(poor, "a", height=DUE)
        arm(other, *"bcd", height=DUE)
        chain.advance_to(DUE + 1)
        life = chain.explain(timer_id)
        assert [bid.height for bid in life.bids] == [14, 15]
        assert life.waited == "deferred 2 times: its payer could not pay at 14 and 15"


def test_life_tells_lateness_and_its_end() -> None:
    """What follows from being late is what governance has chosen."""
    with open_auction(auction__delays_max=2, auction__delay_action=2) as chain:
        actor = bidder(chain, "1000000 5", value=CBY)
        (timer_id,) = arm(actor, "a", height=DUE)
        chain.advance_to(DUE + 4)
        life = chain.explain(timer_id)
        assert life.state == "cancelled"
        assert life.steps[-1].story.startswith("cancelled without running, as it was late: ")
        assert life.waited == "deferred 3 times: its payer could not pay at 14 to 16"
    with open_auction(auction__delays_max=2, auction__delay_action=1) as chain:
        actor = bidder(chain, "1000000 5", value=CBY)
        (timer_id,) = arm(actor, "a", height=DUE)
        chain.advance_to(DUE + 4)
        life = chain.explain(timer_id)
        assert life.steps[-1].story == (
            "late, it has waited for 3 blocks: from now on it goes before all that are not late, by due order"
        )
        assert [entry.timer_id for entry in list_timers(chain.chain, TimerFilter(state="late"))] == [timer_id]


def test_transaction_after_the_fires_is_told_after_them() -> None:
    """Timers come first in a block of the auction: what cancels one of them then is its end."""
    with open_auction(auction__delays_max=1) as chain:
        actor = bidder(chain, "1000000 5", value=CBY)
        (timer_id,) = arm(actor, "a", height=DUE)
        chain.advance_to(DUE + 1)
        tell(actor, "drop", "a")
        life = chain.explain(timer_id)
        assert [step.event.name for step in life.steps][-2:] == ["timer.delayed", "timer.cancelled"]
        assert life.state == "cancelled"


def test_broken_sums_are_found_when_a_chain_is_checked() -> None:
    """A timer that waits and is not counted, and an actor that draws from an epoch which does not count it."""
    with open_auction(**ONE_FIRE) as chain:
        actor = bidder(chain, "1000000 9")
        arm(actor, "a", "b", height=DUE)
        chain.advance_to(DUE)
        store, address = chain.chain.store, bytes(actor.address)
        record = find_actor(store.read, address)
        assert record is not None
        sums = read_epoch(store.read, record.epoch)
        miscounted = msgspec.structs.replace(record, waiting=2)
        broken = [
            ({actor_key(address): encode_record(miscounted)}, "counts 2 waiting timers of"),
            ({epoch_key(record.epoch): encode_record(msgspec.structs.replace(sums, actors=2))}, "counts 2 actors"),
            ({epoch_key(record.epoch): encode_record(msgspec.structs.replace(sums, cycles_used=0))}, "counts 0$"),
        ]
        for changes, words in broken:
            store.commit(chain.height + 1, changes)
            with pytest.raises(InvariantError, match=words):
                chain.check_invariants()
            store.revert(chain.height)
        chain.check_invariants()
        assert verify_chain(chain.chain).ok


def test_runway_counts_the_standing_bid() -> None:
    """A fire reserves basefee and tip of the bid that stands; the notes say that an agent may bid otherwise."""
    with open_auction(auction__budget_cycles=100_000, timers__max_cycles_per_fire=100_000) as chain:
        one, two = bidder(chain, "1000000 9"), bidder(chain, "10000000 90")
        arm(one, "a", height=DUE)
        arm(two, *"bcd", height=DUE)
        chain.advance_to(DUE)
        found = chain.runway(one)
        rules = chain.chain.rules()
        cycle, cell = rules.timer_basefees()
        reach = found.reaches[0]
        assert (reach.fires, reach.spent) == (1, GAS * (cycle + 9) + rules.timer.max_cells_per_fire * cell)
        assert found.notes[-1].startswith("its timers are counted at their standing bids")
