"""The calls of Globalbox in transactions: what they refuse, what they cost, and what repeating or undoing them does."""

import json
from base64 import b64encode
from typing import Any

import pytest

from tests.integration.boxes import (
    BID,
    GAS,
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
    INDEX_CELLS,
    answers,
    assert_refused_call,
    events_about,
    perform,
    schedule,
    script,
    step,
    totals,
)
from trailboss.model.globalbox import TimerStatus, bid_octets
from trailboss.model.terms import Trigger
from trailboss.model.transactions import CancelTimer
from trailboss.testing import ActorHandle, LocalChain

CODES = {
    "ERR_INVALID_PARAM": 1511,
    "ERR_TARGET_NOT_FOUND": 1512,
    "ERR_TIMER_NOT_FOUND": 1513,
    "ERR_QUOTA_EXCEEDED": 1514,
    "ERR_UNSUPPORTED_TIMER_TYPE": 1515,
}
ONE_FIRE_A_BLOCK = {"globalbox__max_fires_per_block": 1, "globalbox__max_fires_per_target": 1}
ONE_RUN_A_BLOCK = {"timers__max_cycles_per_fire": GAS, "timers__lane_cycles_per_block": GAS}
KEY = b"k" * 20


@pytest.mark.spec("G-04")
@pytest.mark.parametrize(
    ("call", "trigger", "keywords", "error", "words"),
    [
        ("set_timeout", 0, {}, "INVALID_PARAM", "due_height is {now}, outside {next}..="),
        ("set_timeout", 1_700_000_000_000, {}, "UNSUPPORTED_TIMER_TYPE", "due_height is 1700000000000, which reads"),
        ("set_timeout", 2, {"expiry_height": 10**12}, "UNSUPPORTED_TIMER_TYPE", "expiry_height is 1000000000000"),
        ("set_timeout", 2, {"payload": b"x" * 101}, "INVALID_PARAM", "payload has 101 bytes and the limit is 100"),
        ("set_timeout", 2, {"gas_limit": -5}, "INVALID_PARAM", "gas_limit is -5, outside 10000..=550000"),
        ("set_timeout", -9, {}, "INVALID_PARAM", "outside {next}..="),
        ("set_timeout", 1_763_855_000, {}, "UNSUPPORTED_TIMER_TYPE", "heights count blocks, not seconds"),
        ("set_timeout", 10**12 - 1, {}, "UNSUPPORTED_TIMER_TYPE", "due_height is 999999999999, 999999999"),
        ("set_timeout", 2, {"bid_fp": -1}, "INVALID_PARAM", "the whole part of bid_fp is -1, outside 1..=3"),
        ("set_state_watch", [b""], {}, "INVALID_PARAM", "the size in bytes of watch_keys[0] is 0, outside 20..=84"),
        ("set_timeout", 2, {"gas_limit": 9_999}, "INVALID_PARAM", "gas_limit is 9999, outside 10000..=550000"),
        ("set_timeout", 2, {"gas_limit": 550_001}, "INVALID_PARAM", "gas_limit is 550001, outside 10000..=550000"),
        ("set_timeout", 2, {"bid_fp": BID - 1}, "INVALID_PARAM", "the whole part of bid_fp is 0, outside 1..=3"),
        ("set_timeout", 2, {"bid_fp": 4 * BID}, "INVALID_PARAM", "the whole part of bid_fp is 4, outside 1..=3"),
        (
            "set_timeout",
            2,
            {"client_nonce": b"n" * 65},
            "INVALID_PARAM",
            "client_nonce has 65 bytes and the limit is 64",
        ),
        ("set_state_watch", [], {}, "INVALID_PARAM", "the number of watch_keys is 0, outside 1..=2"),
        ("set_state_watch", [KEY, KEY + b"a", KEY + b"b"], {}, "INVALID_PARAM", "watch_keys is 3, outside 1..=2"),
        ("set_state_watch", [KEY[1:]], {}, "INVALID_PARAM", "is 19, outside 20..=84"),
        ("set_state_watch", [KEY + b"x" * 65], {}, "INVALID_PARAM", "is 85, outside 20..=84"),
        ("set_state_watch", [KEY, KEY], {}, "INVALID_PARAM", f"watch_keys has {KEY.hex()} more than once"),
        ("set_timeout", 2, {"target": KEY}, "TARGET_NOT_FOUND", "there is no actor at 0x"),
    ],
)
def test_set_is_refused_by_name_when_a_rule_is_broken(
    call: str, trigger: Any, keywords: dict[str, Any], error: str, words: str
) -> None:
    """The refusal names value and rule, and nothing is there afterwards; a number of a height is blocks from now."""
    limits = {"payload_bytes_max": 100, "bid_min": 1, "bid_max": 3, "watch_keys_max": 2}
    with open_box(**{f"globalbox__{name}": value for name, value in limits.items()}) as chain:
        actor = deploy_box(chain)
        now = chain.height + 1
        given = {"target": bytes(actor.address), "payload": b"", "gas_limit": GAS, "bid_fp": BID} | keywords
        at = trigger + now if isinstance(trigger, int) and trigger < 10**9 else trigger
        receipt = perform(actor, step(call, given.pop("target"), at, given.pop("payload"), **given))
        name = f"ERR_{error}"
        assert_refused_call(receipt, CODES[name], name, words.format(now=now, next=now + 1))
        assert chain.timers() == []
        assert count_of(chain, actor) == 0


@pytest.mark.spec("G-04")
def test_due_height_is_refused_when_no_timer_lives_to_see_it() -> None:
    """The farthest one is as many blocks ahead as the greatest TTL, whatever expiry is given."""
    with open_box(timers__max_ttl_blocks=10) as chain:
        actor = deploy_box(chain)
        for keywords in ({}, {"expiry_height": chain.height + 5}):
            now = chain.height + 1
            setting = step("set_timeout", bytes(actor.address), now + 11, b"", GAS, **keywords)
            words = f"{now + 11}, 11 blocks ahead, and a timer set in block {now} ends after height {now + 10}"
            name = "ERR_UNSUPPORTED_TIMER_TYPE"
            assert_refused_call(perform(actor, setting), CODES[name], name, words)
        assert chain.chain.timer(set_timeout(actor, chain.height + 11)).height == chain.height + 10


@pytest.mark.spec("G-04")
def test_expiry_is_refused_when_it_has_come_or_is_too_far() -> None:
    """It lies above the block of the call, and no farther than the greatest TTL."""
    with open_box(timers__max_ttl_blocks=10) as chain:
        actor = deploy_box(chain)
        for shift in (0, 11):
            now = chain.height + 1
            setting = step("set_timeout", bytes(actor.address), now + 1, b"", GAS, expiry_height=now + shift)
            words = f"expiry_height is {now + shift}, outside {now + 1}..={now + 10}"
            assert_refused_call(perform(actor, setting), CODES["ERR_INVALID_PARAM"], "ERR_INVALID_PARAM", words)
        assert chain.chain.timer(set_timeout(actor, chain.height + 2)).expires_at == chain.height + 10
        timer = chain.chain.timer(watch(actor, key(actor), expiry_height=chain.height + 5))
        assert (timer.height, timer.expires_at) == (chain.height + 5, chain.height + 4)


@pytest.mark.spec("G-04")
@pytest.mark.parametrize(("limit", "role"), [("owner", "owner"), ("target", "target")])
def test_set_is_refused_when_owner_or_target_has_its_fill(limit: str, role: str) -> None:
    """The third timer of an owner, or for a target, is one too many; a place is free again when one has gone."""
    with open_box(**{f"globalbox__max_timers_per_{limit}": 2}) as chain:
        owner, target = deploy_box(chain), deploy_box(chain)
        first = set_timeout(owner, chain.height + 9, target=target.address)
        set_timeout(owner, chain.height + 9, target=target.address)
        setting = step("set_timeout", bytes(target.address), chain.height + 9, b"", GAS)
        words = f"is the {role} of 2 live timers and the limit is 2"
        assert_refused_call(perform(owner, setting), CODES["ERR_QUOTA_EXCEEDED"], "ERR_QUOTA_EXCEEDED", words)
        answers(perform(owner, step("cancel_timer", bytes(target.address), first)))
        answers(perform(owner, setting))
        assert count_of(chain, target) == 2


@pytest.mark.spec("G-04")
def test_own_timers_do_not_need_the_quota_of_their_target() -> None:
    """Whoever fills it keeps others out, and never the target itself; its own count, for others as for itself."""
    with open_box(globalbox__max_timers_per_target=2, globalbox__max_timers_per_owner=3) as chain:
        other, target = deploy_box(chain), deploy_box(chain)
        first, _ = (watch(other, key(target, b"never"), target=target.address) for _ in range(2))
        for number in range(3):
            set_timeout(target, chain.height + 9 + number)
        assert count_of(chain, target) == 5
        setting = step("set_timeout", bytes(target.address), chain.height + 9, b"", GAS)
        words = "is the target of 5 live timers and the limit is 2"
        assert_refused_call(perform(other, setting), CODES["ERR_QUOTA_EXCEEDED"], "ERR_QUOTA_EXCEEDED", words)
        words = "is the owner of 3 live timers and the limit is 3"
        assert_refused_call(perform(target, setting), CODES["ERR_QUOTA_EXCEEDED"], "ERR_QUOTA_EXCEEDED", words)
        answers(perform(other, step("cancel_timer", bytes(target.address), first)))
        words = "is the target of 4 live timers and the limit is 2"
        assert_refused_call(perform(other, setting), CODES["ERR_QUOTA_EXCEEDED"], "ERR_QUOTA_EXCEEDED", words)


@pytest.mark.spec("G-04", "G-07")
@pytest.mark.parametrize("call", ["update_timer", "cancel_timer"])
def test_change_is_refused_when_the_timer_is_not_of_this_owner_and_target(call: str) -> None:
    """An unknown id, another's timer and another target are one and the same; a remembered one answers False."""
    with open_box() as chain:
        owner, other = deploy_box(chain), deploy_box(chain)
        here, there = bytes(owner.address), bytes(other.address)
        timer_id = set_timeout(owner, chain.height + 3)
        for actor, target, identity in ((owner, here, b"?"), (other, here, timer_id), (owner, there, timer_id)):
            receipt = perform(actor, step(call, target, identity))
            assert_refused_call(receipt, CODES["ERR_TIMER_NOT_FOUND"], "ERR_TIMER_NOT_FOUND", identity.hex())
        for identity in (b"", b"x" * 257):
            receipt = perform(owner, step(call, here, identity))
            assert_refused_call(receipt, CODES["ERR_INVALID_PARAM"], "ERR_INVALID_PARAM", "the size of timer_id")
        assert ended(chain, timer_id) is not None
        assert answers(perform(owner, step(call, here, timer_id))) == [False]
        assert_refused_call(perform(owner, step(call, there, timer_id)), 1513, "ERR_TIMER_NOT_FOUND")


@pytest.mark.spec("G-04")
def test_programs_see_the_name_of_the_error() -> None:
    """What the draft calls it is what an actor catches."""
    with open_box() as chain:
        actor = deploy_box(chain)
        attempt = step("attempt", step("set_timeout", bytes(actor.address), chain.height, b"", GAS))
        assert answers(perform(actor, attempt)) == [[1511, "ERR_INVALID_PARAM"]]


@pytest.mark.spec("G-05")
def test_setting_twice_gives_the_same_timer_when_its_owner_has_named_it() -> None:
    """In one transaction, later, when it has ended, and with its quota full; it stays as it was set first."""
    with open_box(globalbox__max_timers_per_owner=1) as chain:
        actor = deploy_box(chain)
        here, due = bytes(actor.address), chain.height + 4
        first = step("set_timeout", here, due, b"first", GAS, client_nonce=b"n")
        again = step("set_state_watch", here, [here], b"again", GAS, client_nonce=b"n")
        ids = answers(perform(actor, first, again))
        assert len(set(ids)) == 1
        assert chain.chain.timer(ids[0]).payload == b"first"
        repeated = perform(actor, first)
        assert answers(repeated) == [ids[0]]
        assert repeated.cells_used == len(b"perform") + len(script(first))
        chain.advance_to(due)
        assert ended(chain, ids[0]).status is TimerStatus.COMPLETED
        assert answers(perform(actor, first)) == [ids[0]]
        assert chain.timers() == []
        assert len(chain.events("timer.scheduled")) == 1
        assert totals(chain)[:2] == (1, 1)


@pytest.mark.spec("G-05", "G-22")
def test_a_name_is_free_again_when_its_timer_is_forgotten() -> None:
    """Until then it is taken, also for another kind of timer; then the same id is a new timer."""
    with open_box() as chain:
        actor = deploy_box(chain)
        timer_id = set_timeout(actor, chain.height + 2, client_nonce=b"n")
        chain.mine(1)
        kept = chain.chain.params.globalbox.ended_kept_blocks
        chain.mine(kept)
        assert ended(chain, timer_id) is not None
        chain.mine(1)
        assert ended(chain, timer_id) is None
        assert watch(actor, key(actor, b"new"), client_nonce=b"n") == timer_id
        assert terms(chain, timer_id).kind is Trigger.STATE_WATCH
        put(actor, b"new", b"1")
        assert terms(chain, timer_id).fire_seq == 1


@pytest.mark.spec("G-05")
def test_names_are_apart_when_owner_or_target_differ() -> None:
    """One nonce names one timer for each owner and target; without a nonce every set is a timer."""
    with open_box() as chain:
        one, two = deploy_box(chain), deploy_box(chain)
        due = chain.height + 20
        ids = [
            set_timeout(owner, due, target=target.address, client_nonce=nonce)
            for owner in (one, two)
            for target in (one, two)
            for nonce in (b"n", b"m", b"", b"")
        ]
        assert len(set(ids)) == 16


def queue_two(chain: LocalChain, actor: ActorHandle, setting: str) -> tuple[bytes, bytes]:
    """Have two timers hit in one block, of which one is materialized there and the other stays in the queue."""
    if setting == "watch":
        dear = watch(actor, key(actor, b"k"), payload=b"dear", bid_fp=2 * BID)
        cheap = watch(actor, key(actor, b"k"), payload=b"old", bid_fp=BID)
        put(actor, b"k", b"1")
    else:
        due = chain.height + 3
        dear = set_timeout(actor, due, b"dear", bid_fp=2 * BID)
        cheap = set_timeout(actor, due, b"old", bid_fp=BID)
        chain.mine(1)
    assert terms(chain, cheap).fire is not None
    assert actor.storage[b"payload"] == b"dear"
    assert state(chain).queued == 1
    return dear, cheap


@pytest.mark.spec("G-06")
def test_update_reaches_the_next_fire_when_one_is_queued() -> None:
    """The queued one keeps place, handler, payload, gas limit and bid; the one after it has the new ones."""
    with open_box(**ONE_FIRE_A_BLOCK) as chain:
        actor = deploy_box(chain)
        here = bytes(actor.address)
        dear, cheap = queue_two(chain, actor, "watch")
        fire = terms(chain, cheap).fire
        answers(perform(actor, step("cancel_timer", here, dear)))  # leaves the queue to the other
        assert actor.storage[b"payload"] == b"old"
        put(actor, b"k", b"2")
        chain.mine(1)

        hit = watch(actor, key(actor, b"q"), payload=b"dear", bid_fp=9 * BID)
        put(actor, b"x", b"1")
        perform(actor, step("set_state", b"q", b"1"), step("set_state", b"k", b"3"))
        assert terms(chain, cheap).fire is not None
        fire = terms(chain, cheap).fire
        envelope = json.dumps({"_handler": "handle_message", "_payload": b64encode(b"new").decode()}).encode()
        update = step("update_timer", here, cheap, payload=envelope, gas_limit=50_000, bid_fp=5 * BID)
        assert answers(perform(actor, update)) == [True]
        assert b"messages" not in actor.storage
        assert actor.storage[b"payload"] == b"old"
        assert chain.receipts(chain.height)[-1].timer_id == cheap
        assert (fire.payload, fire.handler, fire.gas_limit, fire.bid) == (b"old", "handle_timer", GAS, bid_octets(BID))
        timer = chain.chain.timer(cheap)
        assert (timer.payload, timer.handler, timer.gas_limit) == (b"new", "handle_message", 50_000)
        assert events_about(chain, cheap).count("timer.updated") == 1
        answers(perform(actor, step("cancel_timer", here, hit)))
        put(actor, b"k", b"4")
        assert actor.storage[b"messages"] == b"1"
        assert chain.receipts(chain.height)[-1].tip > 0


@pytest.mark.spec("G-06")
def test_update_answers_false_when_no_later_fire_will_come() -> None:
    """A height timer fires once: queued, in the mailbox or ended, there is nothing left to change."""
    with open_box(**ONE_RUN_A_BLOCK) as chain:
        actor = deploy_box(chain)
        here, due = bytes(actor.address), chain.height + 4
        set_timeout(actor, due, b"first", bid_fp=BID)
        second = set_timeout(actor, due, b"second")
        update = step("update_timer", here, second, payload=b"changed")
        assert answers(perform(actor, update)) == [True]
        chain.mine(1)
        assert [entry.timer.timer_id for entry in mailbox(chain)] == [second]
        assert answers(perform(actor, update)) == [False]
        assert actor.storage[b"payload"] == b"changed"
        assert answers(perform(actor, update)) == [False]


@pytest.mark.spec("G-06")
def test_update_answers_false_when_a_height_timer_is_queued() -> None:
    """Its one fire is delivered with what it was queued with."""
    with open_box(**ONE_FIRE_A_BLOCK) as chain:
        actor = deploy_box(chain)
        _, cheap = queue_two(chain, actor, "height")
        assert answers(perform(actor, step("update_timer", bytes(actor.address), cheap, payload=b"new"))) == [False]
        assert actor.storage[b"payload"] == b"old"


@pytest.mark.spec("G-06")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"payload": b"x" * 101}, "payload has 101 bytes"),
        ({"gas_limit": 1}, "gas_limit is 1, outside"),
        ({"bid_fp": (1 << 128) - 1}, "the whole part of bid_fp is 4294967295, outside 0..=3"),
    ],
)
def test_update_is_refused_when_it_breaks_a_rule(change: dict[str, Any], words: str) -> None:
    """The limits of setting are those of updating, and a refused update changes nothing."""
    with open_box(globalbox__payload_bytes_max=100, globalbox__bid_max=3) as chain:
        actor = deploy_box(chain)
        timer_id = set_timeout(actor, chain.height + 9, b"as it was")
        before = chain.chain.timer(timer_id)
        receipt = perform(actor, step("update_timer", bytes(actor.address), timer_id, **change))
        assert_refused_call(receipt, 1511, "ERR_INVALID_PARAM", words)
        assert chain.chain.timer(timer_id) == before


@pytest.mark.spec("G-02", "G-07")
@pytest.mark.parametrize("setting", ["watch", "height"])
@pytest.mark.parametrize("form", [1, 2])
def test_cancel_takes_the_queued_fire_along(setting: str, form: int) -> None:
    """Before it is materialized, in the same block even: nothing of it runs, and it is remembered as cancelled."""
    with open_box(**ONE_FIRE_A_BLOCK) as chain:
        actor = deploy_box(chain)
        _, cheap = queue_two(chain, actor, setting)
        arguments = (bytes(actor.address), cheap)[-form:]
        assert answers(perform(actor, step("cancel_timer", *arguments))) == [True if form == 2 else None]
        chain.mine(2)
        assert state(chain).queued == 0
        assert [receipt.timer_id for receipt in chain.receipts(since=0)].count(cheap) == 0
        assert ended(chain, cheap).status is TimerStatus.CANCELLED
        assert events_about(chain, cheap)[-1] == "timer.cancelled"


@pytest.mark.spec("G-07")
@pytest.mark.parametrize("form", ["one argument", "two arguments", "governance"])
def test_cancel_comes_too_late_when_a_height_timer_is_in_the_mailbox(form: str) -> None:
    """Nothing calls it back; it runs, and ends by that."""
    with open_box(**ONE_RUN_A_BLOCK) as chain:
        actor = deploy_box(chain)
        due = chain.height + 3
        set_timeout(actor, due, b"first", bid_fp=BID)
        second = set_timeout(actor, due, b"second")
        chain.mine(1)
        assert [entry.timer.timer_id for entry in mailbox(chain)] == [second]
        if form == "governance":
            assert chain.system(CancelTimer(second)).ok
        else:
            arguments = (bytes(actor.address), second)[-2 if form == "two arguments" else -1 :]
            answer = answers(perform(actor, step("cancel_timer", *arguments)))
            assert answer == [False if form == "two arguments" else None]
        assert events_about(chain, second)[-1] == "timer.fired"
        assert actor.storage[b"payload"] == b"second"
        assert totals(chain) == (2, 2, 0, 0, 0)


@pytest.mark.spec("G-02", "G-07")
def test_entries_run_when_their_watch_has_been_cancelled() -> None:
    """The watch ends at once, its entries run, and no count is left behind."""
    with open_box(**ONE_RUN_A_BLOCK) as chain:
        actor = deploy_box(chain)
        watch(actor, key(actor, b"k"), payload=b"first", bid_fp=BID)
        second = watch(actor, key(actor, b"k"), payload=b"second")
        put(actor, b"k", b"1")
        assert [entry.timer.timer_id for entry in mailbox(chain)] == [second]
        assert terms(chain, second).in_mailbox == 1
        assert answers(perform(actor, step("cancel_timer", bytes(actor.address), second))) == [True]
        assert chain.chain.timer(second) is None
        assert actor.storage[b"payload"] == b"second"
        assert events_about(chain, second)[-2:] == ["timer.cancelled", "TimerFireReceipt"]
        assert ended(chain, second).fire_seq == 1
        assert (count_of(chain, actor), totals(chain)) == (1, (2, 0, 0, 0, 1))


@pytest.mark.spec("G-18")
def test_set_update_and_cancel_cost_cycles_and_the_cells_of_what_is_kept() -> None:
    """A cell a byte of payload, watch keys and nonce, and 40 an index entry; cancelling costs no cell."""
    with open_box() as chain:
        actor = deploy_box(chain)
        here, due = bytes(actor.address), chain.height + 30
        heights = step("set_timeout", here, due, b"12345", GAS, client_nonce=b"abc")
        watches = step("set_state_watch", here, [here, here[::-1] + b"x"], b"1234", GAS)
        ids = []
        for setting, cells in ((heights, 5 + 3 + INDEX_CELLS), (watches, 4 + 20 + 21 + 3 * INDEX_CELLS)):
            receipt = perform(actor, setting)
            ids += answers(receipt)
            assert receipt.cells_used == len(b"perform") + len(script(setting)) + cells
            assert receipt.fee_burned == receipt.fee_paid > 0
        plain, costs = perform(actor), chain.chain.params.costs
        update = step("update_timer", here, ids[0], payload=b"123456789")
        cancel = step("cancel_timer", here, ids[0])
        for change, price, cells in ((update, costs.timer_extend, 9), (cancel, costs.timer_cancel, 0)):
            receipt = perform(actor, change)
            assert answers(receipt) == [True]
            assert receipt.cells_used == len(b"perform") + len(script(change)) + cells
            assert receipt.cycles_used >= plain.cycles_used + price


def test_schedule_timer_is_refused_by_name() -> None:
    """Its chain is Globalbox's, and says so."""
    with open_box() as chain:
        actor = deploy_box(chain)
        receipt = perform(actor, step("schedule_timer", chain.height + 9, b""))
        assert_refused_call(receipt, 1209, "unsupported", "globalbox", "set_timeout")
        with pytest.raises(AssertionError):
            schedule(actor, chain.height + 9)
