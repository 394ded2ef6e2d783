"""A chain under the timer lane comes to rest, and its idle blocks are the blocks that building one by one gives."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trailboss.chain import Chain
from trailboss.model.configs import MarketKind
from trailboss.model.transactions import SetGovParam
from trailboss.testing import ActorHandle, LocalChain

CBY = 10**9
FLOOR = 1_000
ACTIVATION = b"system:cip1:activation_height"
WINDOW = b"system:cip1:fairness_window_blocks"

ACTOR = """
def arm(payload):
    now = pvm_host.block_height()
    for item in payload.split():
        blocks, _, priority = item.partition(b",")
        fees = {"max_priority_fee_per_cycle": int(priority)} if priority else {}
        pvm_host.schedule_timer_ex(now + int(blocks), b"", gas_limit=100_000, **fees)


def arm_large(payload):
    now = pvm_host.block_height()
    pvm_host.schedule_timer_ex(now + int(payload), b"", gas_limit=300_000, expires_at=now + int(payload) + 20)


def arm_cancelling(payload):
    height = pvm_host.block_height() + int(payload)
    ids = [pvm_host.schedule_timer_ex(height, b"cancel", gas_limit=100_000 + number) for number in range(3)]
    pvm_host.set_state(b"last", ids[2])


def handle_timer(payload):
    if payload == b"cancel" and pvm_host.get_state(b"last"):
        pvm_host.cancel_timer(pvm_host.get_state(b"last"))
        pvm_host.delete_state(b"last")
"""


def deploy(chain: LocalChain) -> ActorHandle:
    return chain.deploy(ACTOR, sender=chain.accounts[0], value=1_000 * CBY)


def arm(actor: ActorHandle, *items: str) -> None:
    actor.call("arm", " ".join(items).encode(), sender=actor.chain.accounts[0], check=True)


def arm_large(actor: ActorHandle, blocks: int) -> None:
    """Schedule a timer above the cap of the lane, which will wait for 20 blocks and expire."""
    actor.call("arm_large", b"%d" % blocks, sender=actor.chain.accounts[0], check=True)


def govern(chain: LocalChain, key: bytes, value: int) -> None:
    chain.system(SetGovParam(key, value.to_bytes(8, "big")), sender=chain.deployer, check=True)


@contextmanager
def built_blocks(patch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Note the heights of blocks that are built, and not sealed as idle."""
    stage, heights = Chain.stage, []

    def noted(chain: Chain, *arguments: object, **keywords: object) -> object:
        applied = stage(chain, *arguments, **keywords)
        heights.append(applied.block.height)
        return applied

    with patch.context() as inner:
        inner.setattr(Chain, "stage", noted)
        yield heights


def lane_from_genesis() -> LocalChain:
    """Fires with tips, then nothing: the basefee falls from 10,000, and the window of twelve blocks empties."""
    chain = LocalChain(mechanism="lane", params={"lane.fairness_window_blocks": 12})
    actor = deploy(chain)
    arm(actor, "3,50", "3,70", "3", "9", "40")
    return chain


def lane_at_a_height() -> LocalChain:
    """Nothing is due when the lane is activated, and for long after it."""
    chain = LocalChain(params={"lane.activation_height": 30, "lane.fairness_window_blocks": 5})
    arm(deploy(chain), "2", "60")
    return chain


def lane_at_its_floor() -> LocalChain:
    """The lane starts at its floor: its first block writes that, and says it, though no price moves."""
    chain = LocalChain(params={"lane.activation_height": 20, "lane.basefee_min": 10_000})
    deploy(chain)
    return chain


def lane_by_vote() -> LocalChain:
    """As voted, and moved once; one timer is due just before it, one above the cap just then, one later."""
    chain = LocalChain(params={"lane.fairness_window_blocks": 9})
    actor = deploy(chain)
    govern(chain, ACTIVATION, chain.height + 25)
    govern(chain, ACTIVATION, chain.height + 15)
    arm(actor, "13", "30")
    arm_large(actor, 13)
    return chain


def short_window() -> LocalChain:
    """The window is cut from 1,000 blocks to 2 while ten block records are in it; three leave a block."""
    chain = LocalChain(mechanism="lane", params={"lane.window_blocks_left_max": 3, "lane.basefee_min": 7})
    actor = deploy(chain)
    arm(actor, *(f"{blocks},{blocks}" for blocks in range(1, 11)))
    chain.advance_to(chain.height + 10)
    govern(chain, WINDOW, 2)
    return chain


def open_crowded(data_dir: Path | None) -> LocalChain:
    params = {"lane.activation_height": 12, "lane.joined_max": 2, "lane.fairness_window_blocks": 4}
    return LocalChain(params=params, data_dir=data_dir)


def crowded_lane(data_dir: Path | None = None) -> LocalChain:
    """More timers are due than join in one block, before and after the activation; one waits above the cap."""
    chain = open_crowded(data_dir)
    actor = deploy(chain)
    arm_large(actor, 10)
    arm(actor, *["9"] * 30, *["10"] * 7, "50")
    return chain


def cancelled_before_joining() -> LocalChain:
    """Two of three timers join, and the first of them to fire cancels the one that was left out: no timer is left."""
    chain = LocalChain(
        mechanism="lane", params={"lane.joined_max": 2, "lane.basefee_min": 10_000, "lane.fairness_window_blocks": 20}
    )
    deploy(chain).call("arm_cancelling", b"4", sender=chain.accounts[0], check=True)
    return chain


def smoothed_median() -> LocalChain:
    """The median of fires moves long after the last fire."""
    params = {"lane.fires_median_blocks": 2, "lane.fairness_window_blocks": 7}
    chain = LocalChain(mechanism="lane", params=params | {"lane.basefee_min": 10_000})
    arm(deploy(chain), *["3,50"] * 4, "3,70", "9", "20", "20")
    return chain


SCENES = (
    lane_from_genesis,
    lane_at_a_height,
    lane_at_its_floor,
    cancelled_before_joining,
    lane_by_vote,
    short_window,
    crowded_lane,
    smoothed_median,
)


@pytest.mark.spec("L-30", "L-25", "F-82")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_idle_blocks_are_those_that_building_gives_when_the_lane_is_active(
    scene: Callable[[], LocalChain], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block is equal, its decisions included, across activation, fall of the basefee and end of the window."""
    with scene() as walked, scene() as jumped:
        end = walked.height + 90
        while walked.height < end:
            walked.chain.build()
        with built_blocks(monkeypatch) as built:
            jumped.advance_to(end)
        for one, other in zip(walked.chain.blocks, jumped.chain.blocks, strict=True):
            assert one == other
        assert walked.state_root == jumped.state_root
        walked.check_invariants()
        jumped.check_invariants()
        assert len(built) < 60, built


@pytest.mark.spec("L-11", "L-25")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_chain_comes_to_rest_when_nothing_is_left_to_happen(
    scene: Callable[[], LocalChain], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The basefee is at its floor, the window is empty, and a thousand blocks more are not built at all."""
    with scene() as chain:
        chain.advance_to(chain.height + 200)
        root, rules = chain.state_root, chain.chain.rules()
        assert rules.market.kind is MarketKind.LANE
        assert rules.market.basefee == rules.params.lane.basefee_min
        assert rules.market.previous_tip == 0
        assert {account.recent_fires for _, account in chain.chain.accounts()} == {0}
        with built_blocks(monkeypatch) as built:
            chain.advance_to(chain.height + 1_000)
        assert (built, chain.state_root) == ([], root)
        assert chain.chain.decisions(chain.height) is None


@pytest.mark.spec("L-30")
def test_block_of_the_activation_has_a_record_when_no_price_moves() -> None:
    """Beside it nothing is decided, and nothing is recorded."""
    with lane_at_its_floor() as chain:
        chain.advance_to(40)
        assert [height for height in range(41) if chain.chain.decisions(height) is not None] == [20]


@pytest.mark.spec("L-11", "L-30")
def test_basefee_falls_to_its_floor_block_by_block_when_the_lane_is_activated_and_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the cycle basefee of 10,000 by an eighth a block, rounded in its favour; then nothing is built any more."""
    with LocalChain(params={"lane.activation_height": 10}) as chain:
        with built_blocks(monkeypatch) as built:
            chain.advance_to(60)
        expected, basefees = 10_000, []
        while expected > FLOOR:
            basefees.append(expected)
            expected = max(FLOOR, expected - expected // 8)
        assert built == list(range(10, 10 + len(basefees)))
        records = [chain.chain.decisions(height) for height in built]
        assert [record.lane_basefee for record in records if record is not None] == basefees
        assert [record.next_lane_basefee for record in records if record is not None] == [*basefees[1:], FLOOR]
        assert [event.data for event in chain.events("lane.activated")] == [{"height": 10, "basefee": 10_000}]


@pytest.mark.spec("L-30", "F-83")
@pytest.mark.parametrize("height", [11, 12, 14, 31])
def test_lane_goes_on_when_its_directory_is_opened_again(tmp_path: Path, height: int) -> None:
    """Before the activation, in it, while timers join and while one waits above the cap: the index is built anew."""
    with crowded_lane() as never_closed:
        never_closed.advance_to(70)
        expected = list(never_closed.chain.blocks)
    with crowded_lane(tmp_path / "chain") as chain:
        chain.advance_to(height)
    with open_crowded(tmp_path / "chain") as chain:
        assert list(chain.chain.blocks) == expected[: height + 1]
        chain.advance_to(70)
        chain.check_invariants()
        assert list(chain.chain.blocks) == expected


@pytest.mark.spec("L-30")
@pytest.mark.parametrize("ahead", [0, 1, 5])
def test_activation_is_repeated_when_the_chain_goes_back_across_it(ahead: int) -> None:
    """From before it, from the block of it and from after it: the same blocks again."""
    with crowded_lane() as chain:
        chain.advance_to(11 + ahead)
        mark = chain.snapshot()
        chain.advance_to(70)
        first = list(chain.chain.blocks)
        chain.revert(mark)
        chain.check_invariants()
        chain.advance_to(70)
        assert list(chain.chain.blocks) == first
        chain.reorg(65)
        chain.check_invariants()
        chain.advance_to(70)
        assert list(chain.chain.blocks) == first
        assert len(chain.events("lane.activated")) == 1
