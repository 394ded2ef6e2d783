"""System instructions: cancelling and extending anybody's timer, and the governed configuration."""

import pytest

from tests.integration.helpers import (
    CBY,
    FIRE_CELLS,
    answers,
    assert_refused_call,
    deploy_puppet,
    events_about,
    fired_ids,
    max_cost,
    perform,
    schedule,
    step,
    totals,
    world,
)
from trailboss.codec.canonical import encode_canonical
from trailboss.codec.layout import SYSTEM_NAMES
from trailboss.model.configs import TimerConfig, decode_record
from trailboss.model.transactions import (
    CancelTimer,
    ExtendTimer,
    SetGovParam,
    UpdateBasefeeConfig,
    UpdateLaneFeeMultipliers,
    UpdateTimerConfig,
    UpgradeActor,
)
from trailboss.primitives.octets import system_address
from trailboss.testing import LocalChain

TTL = 2_592_000
DEFAULTS = (2_592_000, 550_000, 550_000, 1_024, 5_000_000)
BASEFEE_ACTOR = system_address(9)
GOVERNANCE_ACTOR = system_address(10)
SLOT = b"system:timer_config"


@pytest.mark.spec("F-54")
def test_governance_cancels_anybodys_timer_and_does_nothing_the_second_time(chain: LocalChain) -> None:
    """The timer is gone, one event tells of it, and the same instruction again succeeds without one."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, 100)
    receipt = chain.system(CancelTimer(timer_id))
    assert receipt.ok
    (event,) = receipt.events
    assert (event.name, event.emitter, event.timer_id) == (
        "timer.cancelled_by_governance",
        GOVERNANCE_ACTOR,
        timer_id,
    )
    assert event.data == {"timer_id": timer_id, "refund": 0}
    assert chain.timers() == []
    again = chain.system(CancelTimer(timer_id))
    assert (again.status, again.events) == ("ok", ())
    chain.advance_to(105)
    assert fired_ids(chain) == []
    assert totals(chain) == (1, 0, 0, 0, 1)


@pytest.mark.spec("F-54", "F-55")
def test_governance_instruction_succeeds_when_the_timer_has_left_already(chain: LocalChain) -> None:
    """Fired, expired, unfunded or unknown: nothing happens, nothing is told."""
    rich, poor = deploy_puppet(chain), deploy_puppet(chain, value=0)
    height = chain.height + 5
    gone = [schedule(rich, height), schedule(rich, height, b"", expires_at=height - 1), schedule(poor, height)]
    chain.advance_to(height)
    assert chain.timers() == []
    for timer_id in (*gone, bytes(32), b"\x01", bytes(256)):
        for instruction in (CancelTimer(timer_id), ExtendTimer(timer_id, chain.height + 50)):
            receipt = chain.system(instruction)
            assert (receipt.status, receipt.events) == ("ok", ()), receipt.error
    assert totals(chain) == (3, 1, 1, 1, 0)


@pytest.mark.spec("F-02")
@pytest.mark.parametrize("width", [0, 257])
def test_governance_instruction_is_refused_when_the_id_has_no_allowed_length(chain: LocalChain, width: int) -> None:
    """An id has 1 to 256 bytes wherever one is given."""
    for instruction in (CancelTimer(bytes(width)), ExtendTimer(bytes(width), chain.height + 50)):
        refused = chain.system(instruction)
        assert_refused_call(refused, 1202, "invalid_input", f"timer_id has {width} bytes, outside 1..=256")


@pytest.mark.spec("F-55", "F-56")
def test_governance_extends_anybodys_timer_and_is_held_at_the_ceiling(chain: LocalChain) -> None:
    """As the owner's own extension: taken as given up to the ceiling, held there above it."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, 100, b"", expires_at=50)
    for asked, offset in ((10, 10), (TTL, TTL), (TTL + 1, TTL), (2**63, TTL)):
        now = chain.height + 1
        receipt = chain.system(ExtendTimer(timer_id, now + asked))
        (event,) = receipt.events
        assert (event.name, event.emitter) == ("timer.extended_by_governance", GOVERNANCE_ACTOR)
        assert event.data == {"timer_id": timer_id, "expires_at": now + offset}
        assert [timer.expires_at for timer in chain.timers()] == [now + offset]
    chain.advance_to(100)
    assert fired_ids(chain) == [timer_id]


@pytest.mark.spec("F-56")
@pytest.mark.parametrize("offset", [0, -1])
def test_governance_extension_is_refused_when_not_above_the_present_height(chain: LocalChain, offset: int) -> None:
    """Nothing changes, the fee is paid."""
    timer_id = schedule(deploy_puppet(chain), 100, b"", expires_at=120)
    now = chain.height + 1
    receipt = chain.system(ExtendTimer(timer_id, now + offset))
    assert_refused_call(receipt, 1202, "invalid_input", f"new_expires_at is {now + offset}, outside {now + 1}..=")
    assert receipt.fee_paid > 0
    assert [timer.expires_at for timer in chain.timers()] == [120]


GATED = [
    CancelTimer(bytes(32)),
    ExtendTimer(bytes(32), 1_000),
    UpdateTimerConfig(*DEFAULTS),
    UpdateBasefeeConfig(8, 8, 10_000, 10**24, 10_000_000, 500_000, 0, 0),
    UpdateLaneFeeMultipliers(10_000, 10_000, 10_000, 10_000),
    SetGovParam(b"system:cip1:lane_timer_cycles", (2_000_000).to_bytes(8, "big")),
    UpgradeActor(system_address(77), b"x = 1\n"),
]


@pytest.mark.spec("F-54", "F-55", "F-72")
@pytest.mark.parametrize("instruction", GATED, ids=lambda item: item.name)
def test_instruction_is_refused_when_its_sender_is_no_system_deployer(
    chain: LocalChain, instruction: CancelTimer
) -> None:
    """Not even for one's own actor's timer; the attempt is charged and changes nothing else."""
    timer_id = schedule(deploy_puppet(chain), 100)
    if instruction.name in ("CancelTimer", "ExtendTimer"):
        instruction = type(instruction)(timer_id, *((1_000,) if instruction.name == "ExtendTimer" else ()))
    sender = chain.accounts[0]
    before, balance = world(chain, without=(sender.address,)), chain.balance(sender)
    receipt = chain.system(instruction, sender=sender)
    words = f"{instruction.name} from {sender.address}, which is not among the system deployers"
    assert_refused_call(receipt, 1211, "unauthorized", words)
    assert world(chain, without=(sender.address,)) == before
    assert chain.balance(sender) == balance - receipt.fee_paid < balance


@pytest.mark.spec("F-54", "F-55", "F-72")
def test_timer_instructions_have_the_opcodes_of_the_specification() -> None:
    """48, 49 and 50."""
    assert (SYSTEM_NAMES[48], SYSTEM_NAMES[49], SYSTEM_NAMES[50]) == ("CancelTimer", "UpdateTimerConfig", "ExtendTimer")


@pytest.mark.spec("F-70")
def test_timer_config_has_its_defaults_when_none_is_stored(chain: LocalChain) -> None:
    """The five values of the text; state holds none of them."""
    assert chain.chain.rules().timer == TimerConfig(*DEFAULTS)
    assert chain.chain.storage(BASEFEE_ACTOR) == {}


@pytest.mark.spec("F-71", "F-72")
def test_timer_config_is_stored_and_told_when_governance_sets_it(chain: LocalChain) -> None:
    """Under the basefee actor at its key; the event carries the new values."""
    receipt = chain.system(UpdateTimerConfig(1_000, 400_000, 300_000, 7, 9_000))
    assert receipt.ok
    (event,) = receipt.events
    assert (event.name, event.emitter) == ("timer_config.updated", BASEFEE_ACTOR)
    assert event.data == {
        "max_ttl_blocks": 1_000,
        "max_cycles_per_fire": 400_000,
        "max_cells_per_fire": 300_000,
        "max_timers_per_actor": 7,
        "gc_cycles_per_block": 9_000,
    }
    stored = chain.chain.storage(BASEFEE_ACTOR)
    assert list(stored) == [SLOT]
    assert decode_record(stored[SLOT], TimerConfig) == TimerConfig(1_000, 400_000, 300_000, 7, 9_000)
    assert chain.chain.rules().timer == TimerConfig(1_000, 400_000, 300_000, 7, 9_000)


@pytest.mark.spec("F-72", "F-10", "F-19", "F-20", "F-21")
def test_every_value_of_the_timer_config_counts_when_it_is_in_force(chain: LocalChain) -> None:
    """TTL, gas limit, cap: the defaults and the edges are those of the new configuration."""
    actor = deploy_puppet(chain)
    assert chain.system(UpdateTimerConfig(1_000, 400_000, 300_000, 2, 9_000)).ok
    schedule(actor, 100)
    (timer,) = chain.timers()
    assert (timer.gas_limit, timer.expires_at) == (400_000, chain.height + 1_000)
    now = chain.height + 1
    refused = perform(actor, step("schedule_timer_ex", 100, b"", gas_limit=400_001))
    assert_refused_call(refused, 1202, "invalid_input", "gas_limit is 400001, outside 1..=400000")
    refused = perform(actor, step("schedule_timer_ex", 100, b"", expires_at=now + 1_002))
    assert_refused_call(refused, 1202, "invalid_input", f"expires_at is {now + 1_002}, outside")
    refused = perform(actor, *(step("schedule_timer", 100, b"") for _ in range(2)))
    assert_refused_call(refused, 1501, "timer_limit", "the limit is 2")
    chain.advance_to(100)
    (record,) = chain.block().receipts
    assert record.reserved == max_cost(400_000, 300_000)


@pytest.mark.spec("F-45", "F-72")
@pytest.mark.parametrize(("size", "status"), [(299_999, "ok"), (300_000, "reverted")])
def test_fire_has_the_cells_that_governance_grants_when_that_was_changed(
    chain: LocalChain, size: int, status: str
) -> None:
    """A fire's cells are those of the configuration in force, not of the chain's parameters."""
    source = f"""
def arm(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + 1, b"")


def handle_timer(payload):
    pvm_host.set_state(b"k", bytes({size}))
"""
    actor = chain.deploy(source, sender=chain.accounts[0], value=100 * 10**9)
    assert chain.system(UpdateTimerConfig(1_000, 400_000, 300_000, 2, 9_000)).ok
    actor.call("arm", sender=chain.accounts[0], check=True)
    chain.mine()
    (receipt,) = chain.receipts(chain.height)
    assert (receipt.status, receipt.cells_used) == (status, 300_000)


@pytest.mark.spec("F-73")
def test_timer_config_counts_from_the_next_block_when_it_changes(chain: LocalChain) -> None:
    """Transactions behind it in the same block, and that block's fires, still have the old one."""
    actor = deploy_puppet(chain)
    height = chain.height + 3
    schedule(actor, height - 1 + 1)
    schedule(actor, height + 1)
    assert chain.height == height - 1
    with chain.one_block():
        change = chain.system(UpdateTimerConfig(1_000, 200_000, 100_000, 1_024, 5_000_000))
        same_block = perform(actor, step("schedule_timer_ex", 200, b"", gas_limit=550_000))
    assert change.ok
    assert same_block.ok
    assert [timer.expires_at for timer in chain.timers() if timer.height == 200] == [chain.height + TTL]
    assert chain.block().receipts[-1].reserved == max_cost(550_000, FIRE_CELLS)
    refused = perform(actor, step("schedule_timer_ex", 200, b"", gas_limit=550_000))
    assert_refused_call(refused, 1202, "invalid_input", "outside 1..=200000")
    # A timer accepted before keeps its gas limit; its cells are those of the configuration in force.
    assert chain.block().receipts[-1].reserved == max_cost(550_000, 100_000)
    assert len(fired_ids(chain)) == 2


@pytest.mark.spec("F-73")
def test_last_change_counts_when_a_block_changes_the_timer_config_twice(chain: LocalChain) -> None:
    """Both are told; the later one is in force in the next block."""
    with chain.one_block():
        for cap in (5, 6):
            chain.system(UpdateTimerConfig(1_000, 200_000, 100_000, cap, 5_000_000))
    assert [event.data["max_timers_per_actor"] for event in chain.events("timer_config.updated")] == [5, 6]
    assert chain.chain.rules().timer.max_timers_per_actor == 6


@pytest.mark.spec("F-72")
@pytest.mark.parametrize("position", range(5))
def test_timer_config_is_refused_when_a_value_is_zero(chain: LocalChain, position: int) -> None:
    """The old one stays in force."""
    values = list(DEFAULTS)
    values[position] = 0
    receipt = chain.system(UpdateTimerConfig(*values))
    assert_refused_call(receipt, 1601, "invalid_parameter", " = 0 must be at least 1")
    assert chain.chain.rules().timer == TimerConfig(*DEFAULTS)
    assert chain.chain.storage(BASEFEE_ACTOR) == {}


@pytest.mark.spec("F-62", "F-65")
def test_fires_are_priced_by_the_timer_lanes_multiplier_when_governance_sets_it(chain: LocalChain) -> None:
    """1.5 for timers and 1.0 for users: only fires become dearer, from the next block on."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    schedule(actor, height, b"", gas_limit=100_000)
    assert chain.system(UpdateLaneFeeMultipliers(10_000, 10_000, 15_000, 10_000)).ok
    chain.advance_to(height)
    (record,) = chain.block().receipts
    assert record.reserved == max_cost(100_000, basefee=15_000)
    assert record.fee_burned == (record.cycles_used + record.cells_used) * 15_000
    user = chain.transfer(chain.accounts[1], 1, sender=chain.accounts[0])
    assert user.fee_paid == (10_000 + 500) * 10_000


@pytest.mark.spec("F-74")
def test_lane_is_as_governance_sets_it_when_the_next_block_comes(chain: LocalChain) -> None:
    """SetGovParam moves LANE_TIMER_CYCLES; one timer instead of three fits."""
    actor = deploy_puppet(chain)
    height = chain.height + 3
    ids = answers(perform(actor, *(step("schedule_timer", height, b"%d" % number) for number in range(3))))
    value = (700_000).to_bytes(8, "big")
    receipt = chain.system(SetGovParam(b"system:cip1:lane_timer_cycles", value))
    (event,) = receipt.events
    assert (event.name, event.emitter) == ("parameter.set", BASEFEE_ACTOR)
    assert event.data == {"key": b"system:cip1:lane_timer_cycles", "value": 700_000}
    for number in range(3):
        chain.mine()
        assert fired_ids(chain, since=chain.height) == [ids[number]]


STOPPABLE = """
from cowboy_sdk import OWNER, actor, callable_by, public
import pvm_host


@actor
class Stoppable:
    @callable_by(OWNER)
    def arm(self) -> bytes:
        return pvm_host.schedule_timer(pvm_host.current_block() + 90, b"")

    @callable_by(OWNER)
    def stop(self, timer_id: bytes) -> None:
        pvm_host.cancel_timer(timer_id)
"""


@pytest.mark.spec("F-53", "F-54")
@pytest.mark.parametrize("instruction", [CancelTimer, ExtendTimer])
def test_owner_and_payer_have_no_power_over_a_timer_when_its_actor_gives_them_none(
    chain: LocalChain, instruction: type[CancelTimer]
) -> None:
    """The account that deployed the actor is refused, and so is the one that pays; governance is not."""
    owner = chain.accounts[0]
    timer_id = schedule(deploy_puppet(chain), 100, fee_payer=bytes(owner.address))
    wanted = instruction(timer_id, *(() if instruction is CancelTimer else (500,)))
    refused = chain.system(wanted, sender=owner)
    call = "pvm_host.cancel_timer" if instruction is CancelTimer else "pvm_host.extend_timer"
    assert_refused_call(refused, 1211, "unauthorized", "by its own actor, which calls", call, "or by governance")
    assert events_about(chain, timer_id) == ["timer.scheduled"]
    by_governance = chain.system(wanted)
    assert [event.name for event in by_governance.events] == [
        f"timer.{'cancelled' if instruction is CancelTimer else 'extended'}_by_governance"
    ]


@pytest.mark.spec("F-13", "F-53")
def test_owner_cancels_when_a_handler_of_the_actor_is_for_the_owner(chain: LocalChain) -> None:
    """The code says who may: the one that deployed it, and not another account."""
    owner, stranger = chain.accounts[0], chain.accounts[1]
    actor = chain.deploy(STOPPABLE, sender=owner, value=CBY)
    armed = actor.call("arm", encode_canonical(None), sender=owner, check=True)
    timer_id = armed.return_value
    assert not actor.call("stop", encode_canonical(timer_id), sender=stranger).ok
    assert len(chain.timers()) == 1
    actor.call("stop", encode_canonical(timer_id), sender=owner, check=True)
    assert events_about(chain, timer_id) == ["timer.scheduled", "timer.cancelled"]
