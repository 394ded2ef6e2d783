"""A fire's way under Globalbox: what sets it off, where it waits, what it is delivered with, and who pays."""

import pytest

from tests.integration.boxes import (
    BID,
    GAS,
    carried,
    count_of,
    deploy_box,
    ended,
    key,
    mailbox,
    open_box,
    put,
    set_timeout,
    state,
    terms,
    watch,
)
from tests.integration.helpers import (
    BASEFEE,
    FIRE_CELLS,
    answers,
    events_about,
    fired_ids,
    fires,
    max_cost,
    only_event,
    perform,
    script,
    step,
    totals,
)
from trailboss.crypto.digest import domain_digest
from trailboss.model.globalbox import CarriedHit, TimerStatus
from trailboss.model.terms import Trigger
from trailboss.model.timers import RECORD_VERSION
from trailboss.primitives.octets import Hash32

ONE_RUN_A_BLOCK = {"timers__max_cycles_per_fire": GAS, "timers__lane_cycles_per_block": GAS}
LISTENER = '''
"""Writes down who called it, and where."""


def handle_timer(payload):
    context = pvm_host.context()
    pvm_host.set_state(b"sender", context["sender"])
    pvm_host.set_state(b"actor", context["actor_addr"])
'''


@pytest.mark.spec("G-02", "G-16")
def test_height_timer_runs_the_target_for_its_owner_and_is_completed() -> None:
    """The handler is the target's, with its storage; sender and payer are the owner; the timer is remembered."""
    with open_box() as chain:
        owner = deploy_box(chain)
        target = chain.deploy(LISTENER, sender=chain.accounts[1])
        due = chain.height + 3
        timer_id = set_timeout(owner, due, b"hello", target=target.address, bid_fp=3 * BID)
        timer = chain.chain.timer(timer_id)
        assert (timer.version, timer.actor, timer.target, timer.height) == (
            RECORD_VERSION,
            owner.address,
            target.address,
            due,
        )
        assert (terms(chain, timer_id).kind, terms(chain, timer_id).fire_seq) == (Trigger.HEIGHT, 0)
        before = chain.balance(owner.address)
        chain.advance_to(due)
        assert target.storage == {b"sender": owner.address, b"actor": target.address}
        (receipt,) = chain.receipts(due)
        assert receipt.tip == 3 * receipt.cycles_used
        assert chain.balance(owner.address) == before - receipt.fee_paid
        remembered = ended(chain, timer_id)
        assert (remembered.status, remembered.kind) == (TimerStatus.COMPLETED, Trigger.HEIGHT)
        assert (remembered.fire_seq, remembered.last_fire_height, remembered.ended_at) == (1, due, due)
        assert events_about(chain, timer_id) == [
            "timer.scheduled",
            "TimerFireReceipt",
            "timer.fired",
            "timer.queued",
            "timer.materialized",
        ]


@pytest.mark.spec("G-01", "G-02", "G-23")
def test_watch_fires_whenever_its_key_changes_until_it_ends() -> None:
    """A write of the value that is there is no change; every fire has its receipt with the keys that set it off."""
    with open_box() as chain:
        owner, other = deploy_box(chain), deploy_box(chain)
        timer_id = watch(owner, key(other, b"price"), payload=b"heard", expiry_height=chain.height + 9)
        heights = []
        for name, value in ((b"price", b"1"), (b"price", b"1"), (b"pric", b"2"), (b"price.eth", b"3")):
            put(other, name, value)
            heights += [chain.height] * (terms(chain, timer_id).fire_seq > len(heights))
        first = chain.chain.timer(timer_id).schedule_block + 1
        assert heights == [first, first + 3]
        receipts = [event.data for event in chain.events("TimerFireReceipt")]
        assert [receipt["fire_seq"] for receipt in receipts] == [0, 1]
        assert [receipt["matched_keys"] for receipt in receipts] == [[key(other, b"price")], [key(other, b"price.eth")]]
        assert {receipt["kind"] for receipt in receipts} == {"STATE_WATCH"}
        assert {receipt["due_height"] for receipt in receipts} == {0}
        assert terms(chain, timer_id).last_fire_height == first + 3
        chain.advance_to(chain.chain.timer(timer_id).height)
        assert events_about(chain, timer_id)[-1] == "TimerExpired"
        assert ended(chain, timer_id).status is TimerStatus.COMPLETED
        assert (totals(chain), fires(owner)) == ((1, 0, 0, 1, 0), 2)


@pytest.mark.spec("G-13", "G-14", "G-15")
def test_entries_are_numbered_on_and_hold_what_they_will_be_delivered_with() -> None:
    """A fire that waits in the mailbox has an id of its own, and has touched nobody's state but the chain's."""
    with open_box(**ONE_RUN_A_BLOCK) as chain:
        owner, first, second = (deploy_box(chain) for _ in range(3))
        due = chain.height + 4
        set_timeout(owner, due, b"1", target=first.address, bid_fp=2 * BID)
        timer_id = set_timeout(owner, due, b"2", target=second.address, bid_fp=BID)
        chain.advance_to(due - 1)
        parent, untouched = chain.state_root, chain.chain.account(second.address)
        chain.mine(1)
        (entry,) = mailbox(chain)
        octets = (due.to_bytes(8, "big"), parent, timer_id, bytes(8))
        assert entry.deliver_id == domain_digest(b"globalbox-deliver-v1", *octets)
        assert (entry.deliver_seq, entry.fire_seq, entry.hit_height, entry.materialized_at) == (1, 0, due, due)
        assert (entry.timer.payload, entry.timer.gas_limit, entry.timer.target) == (b"2", GAS, second.address)
        assert (terms(chain, timer_id).fire_seq, terms(chain, timer_id).in_mailbox) == (1, 1)
        assert (dict(second.storage), chain.chain.account(second.address)) == ({}, untouched)
        chain.mine(1)
        assert second.storage[b"payload"] == b"2"
        third = set_timeout(owner, chain.height + 2, b"3")
        chain.mine(1)
        numbers = [event.data["deliver_seq"] for event in chain.events("timer.materialized")]
        assert numbers == [0, 1, 2]
        ids = [event.data["deliver_id"] for event in chain.events("TimerFireReceipt")]
        assert ids == [event.data["deliver_id"] for event in chain.events("timer.materialized")]
        assert len(set(ids)) == 3
        assert (state(chain).first, state(chain).next) == (3, 3)
        assert fired_ids(chain)[-1] == third


@pytest.mark.spec("G-16", "G-23")
@pytest.mark.parametrize("end", ["raise", "spin"])
def test_failed_fire_has_a_receipt_and_is_paid_for(end: str) -> None:
    """It is rolled back and charged; a height timer is completed by it, a watch goes on."""
    with open_box() as chain:
        actor = deploy_box(chain)
        failing = script(step("set_state", b"kept", b"1"), step(end, *(["x"] if end == "raise" else [])))
        timer_id = set_timeout(actor, chain.height + 2, failing)
        listener = watch(actor, key(actor, b"k"), payload=failing)
        put(actor, b"k", b"1")
        assert b"kept" not in actor.storage
        receipts = {receipt.timer_id: receipt for receipt in chain.receipts(since=0) if receipt.timer_id}
        assert {receipt.status for receipt in receipts.values()} == {"reverted"}
        assert all(receipt.fee_paid > 0 for receipt in receipts.values())
        assert (receipts[listener].cycles_used == GAS) == (end == "spin")
        assert {event.data["status"] for event in chain.events("TimerFireReceipt")} == {"reverted"}
        assert ended(chain, timer_id).status is TimerStatus.COMPLETED
        assert terms(chain, listener).fire_seq == 1


@pytest.mark.spec("G-16")
def test_the_mailbox_is_run_in_order_as_far_as_the_cycles_go() -> None:
    """A strict prefix: the first that does not fit ends it, though one behind it would; the next block goes on."""
    with open_box(timers__max_cycles_per_fire=GAS, timers__lane_cycles_per_block=GAS + 50_000) as chain:
        actor = deploy_box(chain)
        due = chain.height + 6
        gas = {b"1": 30_000, b"2": GAS, b"3": GAS, b"4": 30_000}
        for place, (name, limit) in enumerate(gas.items()):
            burn = script(step("set_state", b"ran" + name, b"1"), *([step("spin")] if name == b"2" else []))
            set_timeout(actor, due, burn, gas_limit=limit, bid_fp=(9 - place) * BID)
        chain.advance_to(due)
        assert b"ran1" in actor.storage
        assert [event.data["deliver_seq"] for event in chain.events("TimerFireReceipt")] == [0, 1]
        assert [entry.deliver_seq for entry in mailbox(chain)] == [2, 3]
        chain.mine(1)
        assert [event.data["deliver_seq"] for event in chain.events("TimerFireReceipt")] == [0, 1, 2, 3]
        assert {b"ran3", b"ran4"} <= dict(actor.storage).keys()


@pytest.mark.spec("G-17")
def test_what_a_block_sets_does_not_run_in_it() -> None:
    """A watch does not hear of its own block, nor does a handler's timer run before the next."""
    with open_box() as chain:
        actor = deploy_box(chain)
        here = bytes(actor.address)
        setting = step("set_state_watch", here, [key(actor, b"k")], b"heard", GAS)
        (listener,) = answers(perform(actor, setting, step("set_state", b"k", b"1")))[:1]
        assert terms(chain, listener).fire_seq == 0
        chain.mine(1)
        assert terms(chain, listener).fire_seq == 0
        due = chain.height + 2
        set_timeout(actor, due, script(step("set_timeout", here, due + 1, b"child", GAS)))
        chain.advance_to(due)
        assert actor.storage[b"payload"] != b"child"
        chain.mine(1)
        assert actor.storage[b"payload"] == b"child"


@pytest.mark.spec("G-01")
@pytest.mark.parametrize("origin", ["timer", "message"])
def test_changes_after_the_delivery_count_in_the_next_block(origin: str) -> None:
    """What a handler or a message modifies is heard of one block later, with that block as its age's start."""
    with open_box() as chain:
        actor = deploy_box(chain)
        listener = watch(actor, key(actor, b"k"), payload=b"heard")
        change = script(step("set_state", b"k", b"1"))
        if origin == "timer":
            at = chain.height + 2
            set_timeout(actor, at, change)
        else:
            at = chain.height + 1
            answers(perform(actor, step("send_message", bytes(actor.address), change)))
        chain.advance_to(at)
        assert actor.storage[b"k"] == b"1"
        assert terms(chain, listener).fire_seq == 0
        assert carried(chain) == (CarriedHit(key(actor, b"k"), 0, at + 1),)
        chain.mine(1)
        queued = [event for event in chain.events("timer.queued") if event.timer_id == listener]
        assert [(event.block_height, event.data["hit_height"]) for event in queued] == [(at + 1, at + 1)]
        assert carried(chain) == ()


@pytest.mark.spec("G-01")
def test_a_watch_set_after_a_handlers_change_does_not_hear_of_it() -> None:
    """It counts for the next block, and what is set in that block comes too late; what was set with it hears."""
    with open_box() as chain:
        actor = deploy_box(chain)
        there = key(actor, b"k")
        at = chain.height + 3
        set_timeout(actor, at, script(step("set_state", b"k", b"1")))
        watch(actor, key(actor, b"other"))
        with_it = watch(actor, there)
        assert chain.height == at
        too_late = watch(actor, there)
        assert [terms(chain, each).fire_seq for each in (with_it, too_late)] == [1, 0]


@pytest.mark.spec("G-08")
def test_unwatched_changes_are_not_carried() -> None:
    """The state does not hold what nobody asked for."""
    with open_box() as chain:
        actor = deploy_box(chain)
        listener = watch(actor, key(actor, b"k"))
        set_timeout(actor, chain.height + 2, script(step("set_state", b"x", b"1")))
        chain.mine(1)
        assert actor.storage[b"x"] == b"1"
        assert carried(chain) == ()
        assert terms(chain, listener).fire_seq == 0


@pytest.mark.spec("G-08", "G-14")
def test_fan_out_goes_on_in_the_next_block_when_it_is_too_wide() -> None:
    """Five watches of one key, two a block: all hear once, in the order in which they were set."""
    params = {"max_fires_per_block": 1, "max_fires_per_target": 1, "hits_max": 2}
    with open_box(**{f"globalbox__{name}": value for name, value in params.items()}) as chain:
        actor = deploy_box(chain)
        here, there = bytes(actor.address), key(actor, b"k")
        setting = step("set_state_watch", here, [there], b"heard", GAS)
        ids = answers(perform(actor, *[setting] * 5))
        first = chain.chain.timer(ids[0]).sequence
        put(actor, b"k", b"1")
        hit = chain.height
        assert carried(chain) == (CarriedHit(there, first + 2, hit),)
        assert state(chain).queued == 1
        chain.mine(1)
        assert carried(chain) == (CarriedHit(there, first + 4, hit),)
        chain.mine(1)
        assert carried(chain) == ()
        queued = chain.events("timer.queued")
        assert [{event.timer_id for event in queued[at : at + 2]} for at in (0, 2, 4)] == [
            set(ids[:2]),
            set(ids[2:4]),
            set(ids[4:]),
        ]
        assert [event.block_height - hit for event in queued] == [0, 0, 1, 1, 2]
        assert {event.data["hit_height"] for event in queued} == {hit}
        chain.mine(2)
        assert sorted(fired_ids(chain)) == sorted(ids)
        assert fires(actor) == 5


@pytest.mark.spec("G-16")
@pytest.mark.parametrize("setting", ["watch", "height"])
def test_timer_ends_unfunded_when_its_owner_cannot_pay_for_a_fire(setting: str) -> None:
    """The fire is not materialized, the timer ends with its one event, and the money stays where it is."""
    with open_box() as chain:
        owner, other = deploy_box(chain, value=10), deploy_box(chain)
        if setting == "height":
            timer_id = set_timeout(owner, chain.height + 2, target=other.address, bid_fp=BID)
        else:
            timer_id = watch(owner, key(other, b"k"), target=other.address, bid_fp=BID)
        put(other, b"k", b"1")
        required = max_cost(GAS, FIRE_CELLS, BASEFEE) + GAS
        facts = {"timer_id": timer_id, "fee_payer": owner.address, "required": required, "available": 10}
        assert only_event(chain, "TimerCancelledInsufficientFunds").data == facts
        assert chain.balance(owner.address) == 10
        assert (ended(chain, timer_id).status, ended(chain, timer_id).fire_seq) == (TimerStatus.COMPLETED, 0)
        assert (count_of(chain, other), mailbox(chain), totals(chain)) == (0, [], (1, 0, 1, 0, 0))
        assert fires(other) == 0


@pytest.mark.spec("G-14")
def test_an_old_entry_leaves_a_new_timer_of_the_same_name_alone() -> None:
    """A watch ends, is forgotten, and its nonce names a new one, all while its entry waits; the new one keeps count."""
    with open_box(**ONE_RUN_A_BLOCK, globalbox__ended_kept_blocks=1) as chain:
        busy, actor = deploy_box(chain), deploy_box(chain)
        due = chain.height + 9
        for _ in range(6):
            set_timeout(busy, due, script(step("spin")), bid_fp=BID)
        old = watch(actor, key(actor, b"k"), payload=b"old", client_nonce=b"n")
        chain.advance_to(due - 1)
        put(actor, b"k", b"1")
        answers(perform(actor, step("cancel_timer", bytes(actor.address), old)))
        chain.mine(2)
        assert ended(chain, old) is None
        assert watch(actor, key(actor, b"k"), payload=b"new", client_nonce=b"n") == old
        assert [entry.timer.timer_id for entry in mailbox(chain)][-1:] == [old]
        chain.mine(3)
        assert actor.storage[b"payload"] == b"old"
        assert (terms(chain, old).fire_seq, terms(chain, old).in_mailbox, mailbox(chain)) == (0, 0, [])


ACCOUNTANT = '''
"""Does each delivery once, and writes down what it knows of it; an actor that it calls reports its own context."""

from trailboss.sdk import current_delivery


def report(payload):
    pvm_host.emit_event("context", repr(sorted(pvm_host.context().items())).encode())


def handle_timer(payload):
    delivery, context = current_delivery(), pvm_host.context()
    trigger = context["trigger_ctx"]
    if delivery.deliver_id != context["deliver_id"] or pvm_host.get_state(delivery.deliver_id) is not None:
        raise ValueError("a wrong delivery, or a second time")
    if (delivery.kind, delivery.due_height, delivery.matched_keys) != tuple(trigger.values()):
        raise ValueError("the SDK says something else")
    trigger["matched_keys"].append(b"of my own")
    if pvm_host.context()["trigger_ctx"] == trigger:
        raise ValueError("what one call returns, another one changes")
    pvm_host.set_state(delivery.deliver_id, repr(delivery).encode())
    if payload:
        pvm_host.call_actor(payload, "report", b"", 50_000)
'''


@pytest.mark.spec("G-13")
def test_fire_finds_its_delivery_and_what_set_it_off_in_its_context() -> None:
    """Its id, the due height, the keys that hit it, in plain types; actors that it calls find the same."""
    with open_box() as chain:
        owner = deploy_box(chain)
        target = chain.deploy(ACCOUNTANT, sender=chain.accounts[1])
        due = chain.height + 4
        set_timeout(owner, due, bytes(target.address), target=target.address)
        keys = [key(owner, name) for name in (b"price:a", b"price:b")]
        watch(owner, key(owner, b"price:"), target=target.address)
        with chain.one_block():
            for name in (b"price:a", b"price:b"):
                owner.call("perform", script(step("set_state", name, b"1")), sender=chain.accounts[0])
        chain.mine(1)
        entries = [event.data for event in chain.events("timer.materialized")]
        hit, reached = (Hash32(data["deliver_id"]) for data in entries)
        noted = {Hash32(slot): octets.decode() for slot, octets in target.storage.items()}
        assert noted == {
            hit: f"Delivery(deliver_id={bytes(hit)!r}, kind='STATE_WATCH', due_height=None, matched_keys={keys!r})",
            reached: f"Delivery(deliver_id={bytes(reached)!r}, kind='HEIGHT', due_height={due}, matched_keys=[])",
        }
        (reported,) = chain.events("context")
        assert f"('deliver_id', {bytes(reached)!r})" in bytes(reported.data).decode()


@pytest.mark.spec("G-13")
def test_context_has_no_delivery_outside_of_fires() -> None:
    """A transaction finds what it always found, and the SDK says that there is none."""
    source = (
        ACCOUNTANT
        + """

def ask(payload):
    context = pvm_host.context()
    return repr(["deliver_id" in context, "trigger_ctx" in context, current_delivery()]).encode()
"""
    )
    with open_box() as chain:
        actor = chain.deploy(source, sender=chain.accounts[0])
        assert actor.call("ask", b"", sender=chain.accounts[0]).return_value == b"[False, False, None]"
