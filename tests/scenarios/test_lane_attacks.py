"""What the lane gives to those who play against it, in numbers.

Each scenario is a small market on a real chain; the numbers in the docstrings are what it gives, and the tests hold the
chain to them. The lane takes eight fires a block here.
"""

import pytest

from tests.scenarios.players import CBY, fires_by_actor, lane_chain, player, start
from trailboss.model.timers import timer_id
from trailboss.testing import ActorHandle, LocalChain

HONEST = 16
WARM_UP = 60
WINDOW = 50
MEASURED = 50


def share_when_split(actors: int, *, honest_tip: int = 1_000, tip: int = 1_000) -> tuple[int, int]:
    """Return the fires of one owner's sixteen timers, spread over so many actors, and those of everybody else."""
    chain = lane_chain(lane__fairness_window_blocks=WINDOW)
    honest = [player(chain, number) for number in range(HONEST)]
    split = [player(chain, number) for number in range(actors)]
    for actor in honest:
        start(chain, actor, 2, tip=honest_tip, first=WARM_UP)
    for actor in split:
        start(chain, actor, HONEST // actors, tip=tip, first=WARM_UP)
    chain.advance_to(WARM_UP + WINDOW + MEASURED)
    fires = fires_by_actor(chain, WARM_UP + WINDOW + 1)
    own = sum(fires.get(bytes(actor.address), 0) for actor in split)
    return own, sum(fires.values()) - own


@pytest.mark.spec("L-23", "L-24")
def test_share_follows_the_number_of_actors_when_tips_are_equal() -> None:
    """Splitting works, as the seed fears (§8, limitation 1): at equal tips W shares the lane by actor, not by owner.

    Sixteen honest actors and one owner with sixteen timers, all at one tip, 400 fires: as 1, 4 and 16 actors the owner
    gets about 25, 80 and 195 of them: k / (16 + k).
    """
    shares = {actors: share_when_split(actors) for actors in (1, 4, 16)}
    assert {sum(share) for share in shares.values()} == {400}
    for actors, (own, others) in shares.items():
        fair = (own + others) * actors // (HONEST + actors)
        assert abs(own - fair) <= 8, (actors, own, fair)


@pytest.mark.spec("L-23", "L-03")
def test_splitting_buys_nothing_when_others_offer_more_than_twice_the_tip() -> None:
    """W lies within [1, 2], so a quiet actor outranks at most twice its tip.

    Against 2,001 a cycle sixteen quiet actors with 1,000 get no fire of 400; against 1,500 they get some.
    """
    assert share_when_split(16, honest_tip=2_001)[0] == 0
    assert share_when_split(16, honest_tip=1_500)[0] > 0


def basefees(chain: LocalChain, first: int, last: int) -> list[int]:
    """Return the lane basefees of blocks ``first..=last``."""
    records = [chain.chain.decisions(height) for height in range(first, last + 1)]
    return [record.lane_basefee for record in records if record is not None]


@pytest.mark.spec("L-11", "L-12")
@pytest.mark.parametrize(("alpha", "left"), [(1, 50), (8, 10)])
def test_basefee_falls_when_owners_fill_every_other_block(alpha: int, left: int) -> None:
    """They choose their heights, so they can use half the lane and drive its price down all the same.

    As written (alpha 1), a block of 85 % raises the basefee by 1/8, an empty one lowers it by 1/8: 9/8 · 7/8 = 63/64 in
    two blocks, one half in 88. Scaled (alpha 8) the same block raises it by 7/80 only: (87/80 · 7/8)^44, one tenth. The
    mean use is 42 %; with full blocks it would be 50 %, the target, and both readings would give one half.
    """
    chain = lane_chain(lane__alpha=alpha, lane__basefee_min=1, lane__fairness_window_blocks=WINDOW)
    actors = [player(chain, number) for number in range(8)]
    first = chain.height + 12
    for actor in actors:
        start(chain, actor, 1, tip=0, every=2, first=first)
    chain.advance_to(first + 88)
    fees = basefees(chain, first, first + 88)
    records = [chain.chain.decisions(height) for height in range(first, first + 88)]
    used = sum(record.lane_cycles_used for record in records)
    lane = sum(record.lane_cycles_max for record in records)
    assert 40 <= 100 * used // lane <= 50
    assert left - 2 <= 100 * fees[-1] // fees[0] <= left + 2


def ground_label(actor: ActorHandle, height: int, nonce: int, tries: int) -> bytes:
    """Return the label, out of so many, that gives the actor's next timer the lowest id. Decision: D-30."""
    labels = [b"%06d" % number for number in range(tries)]
    return min(labels, key=lambda label: timer_id(bytes(actor.address), height, label, nonce))


@pytest.mark.spec("L-03")
@pytest.mark.parametrize(("tries", "fires"), [(1, 2), (64, 8)])
def test_ground_ids_come_first_when_everything_else_is_equal(tries: int, fires: int) -> None:
    """Ties are broken by timer id, which a payload chooses: 64 tries a timer buy the whole first block.

    Sixty honest actors and one with eight timers, all new (W = 2), one tip, one height; eight fire. The eight get two
    places with whatever payloads come, and all eight with the best of 64 payloads each.
    """
    chain = lane_chain()
    honest = [player(chain, number, 100 * CBY) for number in range(60)]
    grinder = player(chain, 0, 1_000 * CBY)
    height = chain.height + 70
    for actor in honest:
        actor.call("once", b"%d 1000 honest" % height, sender=chain.accounts[0], check=True)
    for nonce in range(8):
        label = ground_label(grinder, height, nonce, tries)
        grinder.call("once", b"%d 1000 %s" % (height, label), sender=chain.accounts[0], check=True)
    chain.advance_to(height)
    assert sum(fires_by_actor(chain, height).values()) == 8
    assert fires_by_actor(chain, height).get(bytes(grinder.address), 0) == fires


@pytest.mark.spec("L-28", "L-29")
def test_live_timers_run_in_time_when_a_storm_of_expired_ones_is_due() -> None:
    """Three hundred expired timers, ten removals a block: they take 30 blocks to go, and nobody waits for them."""
    chain = lane_chain(timers__gc_cycles_per_block=2_000)
    storm = chain.deploy(STORM, sender=chain.accounts[0], value=50_000 * CBY)
    storm.call("brew", b"", sender=chain.accounts[0], check=True)
    live = player(chain, 1)
    first = chain.height + 10
    start(chain, live, 4, tip=0, first=first)
    chain.advance_to(first + 40)
    assert [receipt.block_height for receipt in chain.receipts(origin="timer")] == [
        height for height in range(first, first + 41) for _ in range(4)
    ]
    expired = [event.block_height for event in chain.events("TimerExpired")]
    assert len(expired) == 300
    assert {expired.count(height) for height in expired} == {10}
    assert {event.data["blocks_deferred"] for event in chain.events("timer.fired")} == {0}


VOTER = """
def vote(payload):
    height, votes, gas_limit, tip = (int(part) for part in payload.split())
    for number in range(votes):
        pvm_host.schedule_timer(height, b"%d" % number, gas_limit=gas_limit, max_fee_per_cycle=10**9,
                                max_priority_fee_per_cycle=tip)


def handle_timer(payload):
    pass
"""
FRAME = 10_000
BOUGHT_TIP = 5 * 10**8


@pytest.mark.spec("L-19")
@pytest.mark.parametrize(("votes", "median"), [(4, 1_000), (5, BOUGHT_TIP)])
def test_votes_on_the_median_tip_cost_what_they_say(votes: int, median: int) -> None:
    """Five of a block's eight fires set the median tip, four do not; each pays a frame at the tip it votes for.

    The smallest fire there is uses 10,000 cycles, so a majority of eight at a tip T costs at least 50,000 · T and the
    basefees: 25,000 CBY at 5 · 10⁸, for the default tip of one block.
    """
    chain = lane_chain()
    height = chain.height + 20
    for number in range(4):
        start(chain, player(chain, number), 2, tip=1_000, first=height)
    voter = chain.deploy(VOTER, sender=chain.accounts[0], value=50_000 * CBY)
    voter.call("vote", b"%d %d %d %d" % (height, votes, FRAME, BOUGHT_TIP), sender=chain.accounts[0], check=True)
    chain.advance_to(height + 1)
    fires = chain.receipts(height, origin="timer")[:8]
    assert {fire.block_height for fire in fires} == {height}
    bought = [fire for fire in fires if fire.actor == voter.address]
    assert [fire.cycles_used for fire in bought] == [FRAME] * votes
    record = chain.chain.decisions(height)
    assert (record.examined_count, record.cut_off) == (8, 8)
    paid = sum(fire.fee_paid for fire in bought)
    assert paid == votes * FRAME * (BOUGHT_TIP + record.cycle_basefee + record.lane_basefee)
    assert paid >= votes * 5_000 * CBY
    assert chain.chain.decisions(height + 1).previous_tip == median


@pytest.mark.spec("L-19", "L-24")
@pytest.mark.parametrize("gas_limit", [1, FRAME - 1])
def test_no_vote_is_had_for_less_than_a_frame(gas_limit: int) -> None:
    """Five fires of one cycle each would set the median tip to 5 · 10⁸ for 2.5 CBY, and make their actor a busy one."""
    chain = lane_chain()
    voter = chain.deploy(VOTER, sender=chain.accounts[0], value=50_000 * CBY)
    plan = b"%d 5 %d %d" % (chain.height + 20, gas_limit, BOUGHT_TIP)
    receipt = voter.call("vote", plan, sender=chain.accounts[0])
    assert receipt.error.slug == "invalid_input"
    assert receipt.error.what == f"gas_limit is {gas_limit}, outside 10000..=100000"
    assert chain.timers() == []


STORM = """
def brew(payload):
    now = pvm_host.block_height()
    for number in range(300):
        pvm_host.schedule_timer_ex(now + 10, b"%d" % number, gas_limit=20_000, expires_at=now + 1,
                                   max_fee_per_cycle=10**9, max_priority_fee_per_cycle=10**6)


def flood(payload):
    for number in range(400):
        pvm_host.schedule_timer_ex(int(payload), b"%d" % number, gas_limit=20_000,
                                   max_fee_per_cycle=10**9, max_priority_fee_per_cycle=10)


def handle_timer(payload):
    pass
"""


@pytest.mark.spec("L-04", "L-09")
def test_flood_at_one_height_delays_nobody_who_offers_more() -> None:
    """Four hundred cheap timers of one height, twenty join a block: those with a higher tip run in their own blocks.

    The flood itself is worked off at what the lane has left; nothing of it is lost. Decision: D-51.
    """
    chain = lane_chain(lane__joined_max=20)
    flooder = chain.deploy(STORM, sender=chain.accounts[0], value=50_000 * CBY)
    live = player(chain, 1)
    height = chain.height + 10
    start(chain, live, 2, tip=1_000, first=height)
    flooder.call("flood", b"%d" % height, sender=chain.accounts[0], check=True)
    chain.advance_to(height + 30)
    own = [receipt.block_height for receipt in chain.receipts(height, origin="timer") if receipt.actor == live.address]
    assert own == [each for each in range(height, height + 31) for _ in range(2)]
    assert chain.chain.decisions(height).not_joined == 400 + 2 - 20
    assert chain.chain.decisions(height + 19).not_joined > 0
    assert chain.chain.decisions(height + 30).not_joined == 0
    totals = chain.chain.totals()
    assert totals.scheduled == totals.fired + chain.chain.timer_count()
