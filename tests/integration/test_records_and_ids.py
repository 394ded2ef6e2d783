"""Timer records, ids and the order within a height, as the chain stores them."""

import pytest
from msgspec.structs import replace

from tests.integration.helpers import (
    CBY,
    FIRE_CYCLES,
    answers,
    assert_refused_call,
    deploy_puppet,
    events_about,
    fired_ids,
    perform,
    schedule,
    script,
    step,
)
from trailboss.codec.canonical import pack
from trailboss.crypto.digest import keccak256
from trailboss.model.timers import Timer, decode_timer, encode_timer
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.testing import LocalChain, TimerView

PAYLOAD_MAX = 1_048_576

WRITES_LARGE = """
def schedule(payload):
    height, size = payload.split()
    return pvm_host.schedule_timer(int(height), bytes(int(size)))


def handle_timer(payload):
    pvm_host.set_state(b"size", str(len(payload)).encode())


def cancel(payload):
    pvm_host.cancel_timer(payload)


def extend(payload):
    pvm_host.extend_timer(payload, pvm_host.block_height() + 5)
"""

# One transaction must be able to carry a payload of a whole mebibyte; its fire holds no more cells than that.
ROOMY = {"limits.block_cells_max": 4_000_000, "limits.block_cycles_max": 40_000_000}


def expected_id(actor: Address, height: int, payload: bytes, nonce: int) -> bytes:
    """Derive an id from its definition: actor, height in 8 bytes, payload, nonce in 8 bytes."""
    return keccak256(bytes(actor) + height.to_bytes(8, "big") + payload + nonce.to_bytes(8, "big"))


@pytest.mark.spec("F-01")
def test_timer_holds_all_its_fields_when_scheduled(chain: LocalChain) -> None:
    """Every field of the record is what was asked for, the defaults of the rest included."""
    actor = deploy_puppet(chain)
    height = chain.height + 41
    timer_id = schedule(
        actor,
        height,
        b"hello",
        fee_payer=bytes(chain.accounts[0].address),
        gas_limit=123_456,
        expires_at=height + 7,
    )
    assert chain.timers() == [
        TimerView(
            timer_id=Hash32(timer_id),
            actor=actor.address,
            height=height,
            handler="handle_timer",
            payload=b"hello",
            fee_payer=chain.accounts[0].address,
            gas_limit=123_456,
            access_limit=0,
            expires_at=height + 7,
            sequence=0,
            schedule_block=chain.height,
            tier="ring",
            deferrals=0,
            deferred_for=None,
            will_expire_unfired=False,
        )
    ]


@pytest.mark.spec("F-01")
def test_record_is_refused_when_its_codec_version_is_unknown(chain: LocalChain) -> None:
    """The stored record begins with its version; one of another version is refused by name, whatever follows."""
    schedule(deploy_puppet(chain), 100)
    (timer,) = chain.chain.timers()
    assert decode_timer(encode_timer(timer)) == timer
    for other in (replace(timer, version=1), ("another", "layout")):
        octets = encode_timer(other) if isinstance(other, Timer) else pack([4, *other])
        with pytest.raises(Rejection) as caught:
            decode_timer(octets)
        assert caught.value.reason is RejectionReason.INVALID_DATA
        version = 1 if isinstance(other, Timer) else 4
        assert caught.value.what == f"timer record has codec version {version}; this chain reads version 3"


@pytest.mark.spec("F-03")
def test_timer_id_commits_to_actor_height_payload_and_nonce_when_scheduled(chain: LocalChain) -> None:
    """Three schedules count the actor's nonce up from 0; another actor counts for itself."""
    actor, other = deploy_puppet(chain), deploy_puppet(chain)
    first = schedule(actor, 100, b"a")
    second = schedule(actor, 100, b"a")
    third = schedule(actor, 200, b"bc")
    elsewhere = schedule(other, 100, b"a")
    assert first == expected_id(actor.address, 100, b"a", 0)
    assert second == expected_id(actor.address, 100, b"a", 1)
    assert third == expected_id(actor.address, 200, b"bc", 2)
    assert elsewhere == expected_id(other.address, 100, b"a", 0)


@pytest.mark.spec("F-03")
def test_equal_schedules_get_two_ids_and_both_fire_when_made_in_one_transaction(chain: LocalChain) -> None:
    """Two equal calls in one transaction are two timers, not one."""
    actor = deploy_puppet(chain)
    height = chain.height + 5
    twice = step("schedule_timer", height, b"same")
    first, second = answers(perform(actor, twice, twice))
    assert first != second
    chain.advance_to(height)
    assert fired_ids(chain) == [first, second]


@pytest.mark.spec("F-03")
def test_timer_nonce_goes_back_when_the_schedule_is_rolled_back(chain: LocalChain) -> None:
    """The nonce is state: a reverted transaction gives its ids back."""
    actor = deploy_puppet(chain)
    lost = perform(actor, step("schedule_timer", 100, b"x"), step("raise", "no"))
    assert lost.status == "reverted"
    assert schedule(actor, 100, b"x") == expected_id(actor.address, 100, b"x", 0)


@pytest.mark.spec("F-03")
def test_timer_id_covers_the_envelope_when_the_payload_has_one(chain: LocalChain) -> None:
    """The id is derived from the payload as given, the record holds what the handler gets."""
    actor = deploy_puppet(chain)
    payload = b'{"_handler":"perform","_payload":"W10="}'
    timer_id = schedule(actor, 100, payload)
    assert timer_id == expected_id(actor.address, 100, payload, 0)
    (timer,) = chain.timers()
    assert (timer.handler, timer.payload) == ("perform", b"[]")


@pytest.mark.spec("F-02")
@pytest.mark.trailboss(params={**ROOMY, "timers.max_cells_per_fire": 2_000_000})
def test_payload_is_accepted_when_it_has_exactly_one_mebibyte(chain: LocalChain) -> None:
    """The largest payload is stored whole and reaches its handler whole."""
    actor = chain.deploy(WRITES_LARGE, sender=chain.accounts[0], value=10_000 * CBY)
    height = chain.height + 2
    receipt = actor.call("schedule", b"%d %d" % (height, PAYLOAD_MAX), sender=chain.accounts[0], cells_limit=2_000_000)
    assert receipt.ok, receipt.error
    (timer,) = chain.timers()
    assert timer.payload == bytes(PAYLOAD_MAX)
    chain.advance_to(height)
    assert actor.storage[b"size"] == b"1048576"


@pytest.mark.spec("F-02", "F-30")
@pytest.mark.trailboss(params=ROOMY)
def test_payload_is_refused_when_it_has_a_byte_more_than_one_mebibyte(chain: LocalChain) -> None:
    """The refusal names size and limit, and no timer is left."""
    actor = chain.deploy(WRITES_LARGE, sender=chain.accounts[0], value=10 * CBY)
    receipt = actor.call("schedule", b"%d %d" % (chain.height + 3, PAYLOAD_MAX + 1), sender=chain.accounts[0])
    assert_refused_call(receipt, 1202, "invalid_input", "payload has 1048577 bytes and the limit is 1048576")
    assert receipt.error is not None
    assert receipt.error.context["size"] == PAYLOAD_MAX + 1
    assert receipt.error.context["limit"] == PAYLOAD_MAX
    assert chain.timers() == []


@pytest.mark.spec("F-02")
@pytest.mark.parametrize("handler", ["cancel", "extend"])
def test_timer_id_is_refused_when_it_has_more_than_256_bytes(chain: LocalChain, handler: str) -> None:
    """An id of 256 bytes that nobody has is simply gone; one of 257 bytes is no id."""
    actor = chain.deploy(WRITES_LARGE, sender=chain.accounts[0])
    assert actor.call(handler, bytes(256), sender=chain.accounts[0]).ok
    refused = actor.call(handler, bytes(257), sender=chain.accounts[0])
    assert_refused_call(refused, 1202, "invalid_input", "timer_id has 257 bytes, outside 1..=256")
    assert_refused_call(
        actor.call(handler, b"", sender=chain.accounts[0]), 1202, "invalid_input", "timer_id has 0 bytes"
    )


@pytest.mark.spec("F-02", "F-16")
def test_handler_name_is_taken_up_to_256_bytes_and_falls_back_beyond(chain: LocalChain) -> None:
    """A name of 256 bytes of UTF-8 is a name; one byte more is no envelope, and handle_timer gets it all."""
    actor = deploy_puppet(chain)
    longest = "ä" * 128
    too_long = "ä" * 128 + "a"
    envelopes = [f'{{"_handler":"{name}","_payload":"aGk="}}' for name in (longest, too_long, "")]
    for envelope in envelopes:
        schedule(actor, 100, envelope.encode())
    assert [(timer.handler, timer.payload) for timer in chain.timers()] == [
        (longest, b"hi"),
        ("handle_timer", envelopes[1].encode()),
        ("handle_timer", envelopes[2].encode()),
    ]


@pytest.mark.spec("F-05", "F-40")
def test_due_timers_come_in_order_of_insertion_when_several_actors_share_a_height(chain: LocalChain) -> None:
    """The order is that of the transactions, and within one that of its calls; ids and payloads play no part."""
    first, second = deploy_puppet(chain), deploy_puppet(chain)
    height = chain.height + 10

    def small(payload: bytes) -> list[object]:
        return step("schedule_timer_ex", height, payload, gas_limit=100_000)

    with chain.one_block():
        pending = [
            perform(actor, *(small(b"%d" % (9 - number)) for number in range(3)), sender=who)
            for actor, who in ((second, chain.accounts[3]), (first, chain.accounts[1]), (second, chain.accounts[2]))
        ]
    later = schedule(first, height, b"", gas_limit=100_000)
    order = [timer_id for receipt in pending for timer_id in answers(receipt)] + [later]
    assert order != sorted(order)
    assert [timer.timer_id for timer in chain.timers(height=height)] == order
    chain.advance_to(height)
    assert chain.timers() == []
    assert fired_ids(chain) == order


@pytest.mark.spec("F-05")
@pytest.mark.trailboss(preset="minimal")
def test_order_of_insertion_survives_the_tiers_when_a_height_comes_near(chain: LocalChain) -> None:
    """Timers of one height placed while it lay in the overflow, in an epoch and in the ring fire in that order."""
    actor = deploy_puppet(chain)
    height = 62
    order, tiers = [], []
    for at in (5, 50, 57, 60):
        chain.advance_to(at)
        order.append(schedule(actor, height, b"%d" % at, gas_limit=100_000))
        tiers.append(chain.timers(height=height)[-1].tier)
    assert tiers == ["overflow", "epoch", "epoch", "ring"]
    assert [timer.timer_id for timer in chain.timers(height=height)] == order
    chain.advance_to(height)
    assert fired_ids(chain) == order


def scheduled_by(senders: tuple[int, int], expiry: int = 500) -> LocalChain:
    """Return a chain on which two actors have scheduled for one height, in the given order of their callers."""
    chain = LocalChain()
    actors = {1: deploy_puppet(chain), 2: deploy_puppet(chain)}
    call = step("schedule_timer_ex", 100, b"", expires_at=expiry)
    with chain.one_block():
        for number in senders:
            perform(actors[number], call, sender=chain.accounts[number])
    return chain


@pytest.mark.spec("F-04")
def test_state_root_commits_to_record_and_order_when_everything_else_is_equal() -> None:
    """Two states that differ in one timer's expiry, or in the order within a height alone, have different roots."""
    chain, same = scheduled_by((1, 2)), scheduled_by((1, 2))
    swapped, other_expiry = scheduled_by((2, 1)), scheduled_by((1, 2), expiry=501)
    assert chain.state_root == same.state_root
    assert {timer.timer_id for timer in swapped.timers()} == {timer.timer_id for timer in chain.timers()}
    assert dict(swapped.chain.accounts()) == dict(chain.chain.accounts())
    assert swapped.state_root != chain.state_root
    assert dict(other_expiry.chain.accounts()) == dict(chain.chain.accounts())
    assert other_expiry.state_root != chain.state_root


@pytest.mark.spec("F-15", "F-42")
def test_timer_fires_once_and_is_gone_when_its_height_comes(chain: LocalChain) -> None:
    """It runs in its block, neither before nor ever again, and no index remembers it."""
    actor = deploy_puppet(chain)
    height = chain.height + 4
    timer_id = schedule(actor, height, b"once")
    chain.advance_to(height - 1)
    assert fired_ids(chain) == []
    chain.mine()
    assert fired_ids(chain) == [timer_id]
    assert chain.timers() == []
    assert chain.chain.queue.height_of(timer_id) is None
    chain.mine(30)
    assert fired_ids(chain) == [timer_id]
    assert actor.storage[b"fires"] == b"1"
    assert events_about(chain, timer_id) == ["timer.scheduled", "timer.fired"]


@pytest.mark.spec("F-10")
def test_timer_takes_the_defaults_when_scheduled_with_height_and_payload(chain: LocalChain) -> None:
    """The actor pays, the gas limit is the configured maximum, the expiry the maximal TTL ahead."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, 100, b"plain")
    (timer,) = actor.timers()
    assert timer.timer_id == timer_id
    assert (timer.fee_payer, timer.gas_limit) == (actor.address, FIRE_CYCLES)
    assert timer.expires_at == chain.height + 2_592_000


def test_script_is_compact_when_written() -> None:
    """The puppet's payloads are bytes one can count."""
    assert script(step("cancel_timer", b"\x01")) == b'[["cancel_timer",[{"$":"01"}],{}]]'
