"""Recurring timers and retries, as actors import them from `trailboss.sdk`. Decision: D-115.

A timer of the chain fires once, and a fire that reverts takes back the timer that it has scheduled. So `dispatch`
schedules the next fire first, and then runs the actor's handler in a frame of its own by a call of the actor to itself:
if the handler fails, its frame alone is rolled back.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

SCHEDULE_SLOT = b"__schedule:"
"""What the slots of recurring timers begin with; a name follows, and the slot holds a `RecurringTimer` as JSON."""
WHOLE_SLOT = b"__schedule_whole:"
"""What a slot begins with that is there unless the last run used up the cells of its fire.

Such a fire can write no more. To delete a slot takes no cells, and the next fire finds it missing.
"""
RUN_EVENT = "schedule.run"
RETRY_EVENT = "retry.run"
NAME_BYTES_MAX = 64
ATTEMPTS_MAX = 16
SPAN_MAX = 2_592_000  # blocks that a timer lives by default: one for a later height expires before. Spec: CIP-5 §6.4
GAS_LIMIT_MIN = 20_000  # `dispatch` without a handler uses 15,500 cycles in a small module
CHOICES = {"align": ("grid", "drift"), "overlap": ("skip", "queue"), "catch_up": ("one", "all", "none")}
_RUN_TAG = b"\x00EVRY"
_RETRY_TAG = b"\x00RTRY"
_RESERVE = 6_000
"""Cycles of a fire that its handler does not get: they record a failure and schedule the next attempt."""
_OUT_OF_CELLS = "E1006 out_of_cells"
_TRIED_AGAIN = "an earlier slot was tried again"
_INTEGER, _TEXT, _MAP = 0x00, 0x60, 0xA0  # CBOR's major types of small numbers, text and maps
_WHY_MAX = 200  # characters of a failure in an event


@dataclass
class RecurringTimer:
    """A recurring timer of an actor, as its slot has it. Times are heights, and spans are in blocks."""

    name: str
    handler: str  # which runs in each slot
    blocks: int  # from one slot to the next
    align: str  # ``grid`` or ``drift``
    overlap: str  # ``skip`` or ``queue``: slots that come while an earlier one is tried again
    catch_up: str  # ``one``, ``all`` or ``none``: slots that are overdue at once
    attempts: int  # how often a slot is tried
    backoff: int  # from a slot's first attempt to its second; twice as many to each one after it
    gas_limit: int | None  # cycles of a fire; None for the most that is allowed
    start: int  # from which the slots of a grid are counted
    slot: int = 0  # the slot that comes next, or is tried again
    due: int = 0  # when the timer fires that waits
    timer_id: str = ""  # the timer that waits, in hexadecimal digits; empty in a pause
    attempt: int = 1  # number of the attempt that waits
    is_paused: bool = False
    last: int | None = None  # the slot that ran last
    ok: int = 0  # slots whose run ended well
    failed: int = 0  # slots whose last attempt failed
    missed: int = 0  # slots that were overdue and, by ``catch_up``, not run
    skipped: int = 0  # slots that came while an earlier one was tried again, in a pause, or before other terms


@dataclass(frozen=True)
class ScheduledRun:
    """The run of a slot, as its handler gets it."""

    name: str
    slot: int  # height at which it was due
    late: int  # blocks since then
    attempt: int  # from 1
    missed: int  # overdue slots that this fire counts and does not run

    @classmethod
    def decode(cls, payload: bytes) -> "ScheduledRun":
        """Return the run from the payload of its handler, a JSON object. `ValueError` or `TypeError` if it is none."""
        return cls(**json.loads(payload))


def every(
    name: str,
    blocks: int,
    *,
    handler: str | None = None,
    align: str = "grid",
    overlap: str = "skip",
    catch_up: str = "one",
    attempts: int = 1,
    backoff: int = 1,
    start: int | None = None,
    gas_limit: int | None = None,
) -> int:
    """Have a handler of the running actor run every so many blocks, and return the height of the next run.

    The actor's ``handle_timer(payload)`` calls `dispatch`. The same call again changes nothing, unless the timer is a
    whole period overdue: the chain may have removed it, so it is scheduled again. Other terms replace those of before.

    Args:
        name: Name of the schedule, 1 to 64 bytes.
        blocks: Blocks from one slot to the next, 1 to 2,592,000: a timer lives no longer.
        handler: Handler that runs in each slot; None for the one that the schedule is named after.
        align: ``grid`` keeps to ``start`` + k·``blocks`` however late a fire is; ``drift`` counts from each fire.
        overlap: Slots that come while an earlier one is tried again: ``skip`` counts them, ``queue`` runs them later.
        catch_up: Several overdue slots: ``one`` run for all, ``all`` in turn, a fire each, or ``none``.
        attempts: How often a slot is tried, 1 to 16.
        backoff: Blocks from the first attempt to the second; twice as many to each one after it.
        start: Height from which the slots are counted, past or to come; None for this block.
        gas_limit: Cycles of a fire, 20,000 at least; None for the most that is allowed.

    Raises:
        ValueError: If a term is none of these, or ``drift``, which misses no slot, comes with ``overlap`` or
            ``catch_up``.
    """
    import pvm_host

    _check_terms(name, blocks, align, overlap, catch_up)
    _check_attempts(attempts, backoff, gas_limit)
    now, known = pvm_host.block_height(), recurring_timer(name)
    if start is not None and start > now + SPAN_MAX:
        raise ValueError(f"start is {start}, above {now + SPAN_MAX}: a timer lives no longer")
    terms = (blocks, align, overlap, catch_up, attempts, backoff, gas_limit)
    timer = RecurringTimer(name, handler or name, *terms, now if start is None else start)
    is_anchored = known is not None and (known.blocks, known.align) == (blocks, align)
    if known is None:
        pvm_host.set_state(WHOLE_SLOT + name.encode(), b"")
    else:
        _count_exhausted(known)
        if start is None and is_anchored:
            timer.start = known.start
        is_anchored = is_anchored and timer.start == known.start
        for field in ("slot", "due", "timer_id", "attempt", "is_paused", "last", "ok", "failed", "missed", "skipped"):
            setattr(timer, field, getattr(known, field))
        if timer == known and (known.is_paused or now <= known.due + blocks):
            return known.due
        if not is_anchored:
            _end_slots(known, now, "every() has set other terms")
            timer.failed, timer.skipped = known.failed, known.skipped
    if not is_anchored:
        timer.attempt = 1
        timer.slot = timer.due = timer.start + max((now - timer.start) // blocks + 1, 0) * blocks
    if not timer.is_paused:
        _arm(timer, timer.due)
    _keep(timer)
    return timer.due


def _check_terms(name: str, blocks: int, align: str, overlap: str, catch_up: str) -> None:
    size = len(name.encode())
    if not 1 <= size <= NAME_BYTES_MAX:
        raise ValueError(f"name {name!r} has {size} bytes, outside 1..={NAME_BYTES_MAX}")
    if not 1 <= blocks <= SPAN_MAX:
        raise ValueError(f"blocks is {blocks}, outside 1..={SPAN_MAX}: a timer lives no longer")
    for term, given in (("align", align), ("overlap", overlap), ("catch_up", catch_up)):
        if given not in CHOICES[term]:
            raise ValueError(f"{term} is {given!r}; it is one of {', '.join(CHOICES[term])}")
        if align == "drift" and given not in (align, CHOICES[term][0]):
            raise ValueError(f"{term} is {given!r}, and a schedule that drifts misses no slot; leave it out")


def _check_attempts(attempts: int, backoff: int, gas_limit: int | None) -> None:
    if not 1 <= attempts <= ATTEMPTS_MAX:
        raise ValueError(f"attempts is {attempts}, outside 1..={ATTEMPTS_MAX}")
    most = SPAN_MAX >> max(attempts - 2, 0)  # it doubles with each attempt after the second
    if not 1 <= backoff <= most:
        raise ValueError(f"backoff is {backoff}, outside 1..={most} with attempts={attempts}: a timer lives no longer")
    if gas_limit is not None and gas_limit < GAS_LIMIT_MIN:
        raise ValueError(f"gas_limit is {gas_limit}; a fire needs {GAS_LIMIT_MIN} cycles at least to record a failure")


def stop(name: str) -> RecurringTimer | None:
    """End a recurring timer and forget it; return what it came to, None if there is none."""
    import pvm_host

    timer = recurring_timer(name)
    if timer is not None:
        _count_exhausted(timer)
        why = "stop() has ended the schedule"
        _end_slots(timer, pvm_host.block_height(), why)
        _report(RUN_EVENT, "stopped", why, name=name, slot=timer.slot)
        _disarm(timer)
        pvm_host.delete_state(SCHEDULE_SLOT + name.encode())
        pvm_host.delete_state(WHOLE_SLOT + name.encode())
    return timer


def pause(name: str) -> None:
    """Let no slot of a recurring timer run until `resume`. `KeyError` if there is no such timer."""
    timer = _found(name)
    _disarm(timer)
    timer.is_paused = True
    _keep(timer)


def resume(name: str) -> int:
    """End a pause and return the height of the next run; slots that came meanwhile are counted as skipped.

    A slot that was to be tried again ends as failed. `KeyError` if there is no such timer.
    """
    import pvm_host

    timer = _found(name)
    if timer.is_paused:
        timer.is_paused = False
        _count_exhausted(timer)
        _end_slots(timer, pvm_host.block_height(), "the schedule was paused")
        _arm(timer, timer.slot)
        _keep(timer)
    return timer.due


def recurring_timer(name: str) -> RecurringTimer | None:
    """Return the running actor's recurring timer of a name: its terms, what comes next, and its counts; or None."""
    import pvm_host

    content = pvm_host.get_state(SCHEDULE_SLOT + name.encode())
    return None if content is None else RecurringTimer(**json.loads(content))


def _found(name: str) -> RecurringTimer:
    timer = recurring_timer(name)
    if timer is None:
        raise KeyError(f"there is no recurring timer {name!r}; every() makes one")
    return timer


def _keep(timer: RecurringTimer) -> None:
    import pvm_host

    pvm_host.set_state(SCHEDULE_SLOT + timer.name.encode(), json.dumps(vars(timer)).encode())


def _arm(timer: RecurringTimer, height: int) -> None:
    """Schedule the next fire, at a height or in the next block, in place of the one that waits."""
    import pvm_host

    _disarm(timer)
    timer.due = max(height, pvm_host.block_height() + 1)
    payload = _RUN_TAG + timer.name.encode()
    timer.timer_id = pvm_host.schedule_timer(timer.due, payload, gas_limit=timer.gas_limit).hex()


def _disarm(timer: RecurringTimer) -> None:
    import pvm_host

    if timer.timer_id:
        pvm_host.cancel_timer(bytes.fromhex(timer.timer_id))
        timer.timer_id = ""


def _passed(timer: RecurringTimer, now: int) -> int:
    """Return how many slots have come by now, from the next one on."""
    if now < timer.slot:
        return 0
    return (now - timer.slot) // timer.blocks + 1 if timer.align == "grid" else 1


def _advance(timer: RecurringTimer, now: int) -> None:
    """Go to the slot after the present one."""
    timer.slot = timer.blocks + (timer.slot if timer.align == "grid" else now)


def _end_slots(timer: RecurringTimer, now: int, why: str) -> None:
    """End the slots that have come by now: one that is tried again as failed, the others as skipped."""
    if timer.attempt > 1:
        facts = {"name": timer.name, "slot": timer.slot, "late": now - timer.slot, "attempt": timer.attempt - 1}
        _report(RUN_EVENT, "failed", why, **facts)
        timer.attempt, timer.failed = 1, timer.failed + 1
        _advance(timer, now)
    skipped = _skip(timer, now)
    if skipped:
        _report(RUN_EVENT, "skipped", why, **skipped)


def _skip(timer: RecurringTimer, now: int) -> dict[str, Any]:
    """Count the slots that have come by now as skipped; return what their event says, nothing without such a slot."""
    passed = _passed(timer, now)
    if not passed:
        return {}
    timer.skipped += passed
    timer.slot += (passed - 1) * timer.blocks
    facts = {"name": timer.name, "slot": timer.slot, "late": now - timer.slot, "skipped": passed}
    _advance(timer, now)
    return facts


def _count_exhausted(timer: RecurringTimer) -> None:
    """Count the last run as failed if it used up the cells of its fire: it ended as ``ok`` and could say no more."""
    import pvm_host

    whole = WHOLE_SLOT + timer.name.encode()
    if pvm_host.get_state(whole) is not None:
        return
    pvm_host.set_state(whole, b"")
    timer.ok, timer.failed = timer.ok - 1, timer.failed + 1
    _keep(timer)
    last = timer.last or 0
    _report(RUN_EVENT, "failed", "used up the cells of its fire", name=timer.name, slot=last)
    skipped = (timer.slot - last) // timer.blocks - 1 if timer.align == "grid" else 0
    if skipped:
        facts = {"name": timer.name, "slot": timer.slot - timer.blocks, "skipped": skipped}
        _report(RUN_EVENT, "skipped", _TRIED_AGAIN, **facts)


def dispatch(payload: bytes) -> bool:
    """Run what `every` or `retry` has scheduled; return whether the payload is theirs. `handle_timer` calls this.

    A handler that fails is recorded and, if it has attempts left, tried again; `dispatch` itself does not fail.

    Raises:
        PermissionError: If the call does not come from the actor's own timer.
    """
    import pvm_host

    for tag, run in ((_RUN_TAG, _run_slot), (_RETRY_TAG, _run_retry)):
        if payload.startswith(tag):
            context = pvm_host.context()
            if context["sender"] != context["actor_addr"]:
                raise PermissionError("only the actor's own timer runs what is scheduled")
            run(payload[len(tag) :])
            return True
    return False


def _run_slot(octets: bytes) -> None:
    import pvm_host

    timer = recurring_timer(octets.decode())
    if timer is None:
        why = "the slot with its record is gone"
        _report(RUN_EVENT, "stopped", why, name=octets.decode(), slot=pvm_host.block_height())
        return
    now = pvm_host.block_height()
    timer.timer_id = ""  # it fires
    _count_exhausted(timer)
    missed, is_overdue = _take_overdue(timer, now)
    facts = {"name": timer.name, "slot": timer.slot, "late": max(now - timer.slot, 0), "attempt": timer.attempt}
    facts["missed"] = missed
    if is_overdue:
        timer.slot += timer.blocks
        _arm(timer, timer.slot)
        _keep(timer)
        _report(RUN_EVENT, "missed", **facts)  # type: ignore[arg-type]  # none of them is `why`
        return
    again = replace(timer, attempt=timer.attempt + 1)
    timer.attempt, timer.last, timer.ok = 1, timer.slot, timer.ok + 1
    _advance(timer, now)
    skipped = _skip(timer, now) if again.attempt > 2 and timer.overlap == "skip" else {}
    _arm(timer, timer.slot)
    _keep(timer)
    why = _failure(timer.handler, json.dumps(facts).encode())
    if _OUT_OF_CELLS in why:
        pvm_host.delete_state(WHOLE_SLOT + octets)
    elif why and again.attempt <= timer.attempts:
        again.timer_id = timer.timer_id
        _arm(again, now + (timer.backoff << again.attempt - 2))
        _keep(again)
        _report(RUN_EVENT, "retried", why, **facts)
    else:
        if why:
            timer.ok, timer.failed = timer.ok - 1, timer.failed + 1
            _keep(timer)
        if skipped:
            _report(RUN_EVENT, "skipped", _TRIED_AGAIN, **skipped)
        _report(RUN_EVENT, "failed" if why else "ok", why, **facts)


def _take_overdue(timer: RecurringTimer, now: int) -> tuple[int, bool]:
    """Count the slots that are overdue together; return how many do not run, and whether the last one does not."""
    overdue = _passed(timer, now) - 1
    if overdue < 1 or timer.attempt > 1 or timer.catch_up == "all":
        return 0, False
    is_overdue = timer.catch_up == "none"
    missed = overdue + is_overdue
    timer.slot += overdue * timer.blocks
    timer.missed += missed
    return missed, is_overdue


def retry(
    handler: str,
    payload: bytes = b"",
    *,
    attempts: int = 3,
    backoff: int = 1,
    height: int | None = None,
    gas_limit: int | None = None,
) -> bytes:
    """Have a handler of the running actor run once, and again while it fails; return the timer's id, 32 bytes.

    The actor's ``handle_timer(payload)`` calls `dispatch`. Each attempt is a fire, with a timer of its own.

    Args:
        handler: Handler that runs, in a frame of its own.
        payload: Its bytes.
        attempts: How often it is tried, 1 to 16.
        backoff: Blocks from the first attempt to the second; twice as many to each one after it.
        height: Height of the first attempt; None for the next block.
        gas_limit: Cycles of a fire, 20,000 at least; None for the most that is allowed.

    Raises:
        ValueError: If ``attempts``, ``backoff`` or ``gas_limit`` is out of range.
    """
    import pvm_host

    _check_attempts(attempts, backoff, gas_limit)
    terms = {"handler": handler, "attempt": 1, "attempts": attempts, "backoff": backoff, "gas_limit": gas_limit}
    return _schedule_attempt(terms, payload, pvm_host.block_height() + 1 if height is None else height)


def _schedule_attempt(terms: dict[str, Any], payload: bytes, height: int) -> bytes:
    import pvm_host

    octets = _RETRY_TAG + json.dumps(terms).encode() + b"\n" + payload
    identity: bytes = pvm_host.schedule_timer(height, octets, gas_limit=terms["gas_limit"])
    return identity


def _run_retry(octets: bytes) -> None:
    import pvm_host

    header, _, payload = octets.partition(b"\n")
    terms: dict[str, Any] = json.loads(header)
    attempt = terms["attempt"]
    facts = {"handler": terms["handler"], "attempt": attempt}
    why = _failure(terms["handler"], payload)
    if _OUT_OF_CELLS in why:
        # Nothing can be scheduled any more; the receipt of the fire says why.
        raise RuntimeError(why)
    if not why:
        _report(RETRY_EVENT, "ok", **facts)
    elif attempt < terms["attempts"]:
        terms["attempt"] = attempt + 1
        _schedule_attempt(terms, payload, pvm_host.block_height() + (terms["backoff"] << attempt - 1))
        _report(RETRY_EVENT, "retried", why, **facts)
    else:
        _report(RETRY_EVENT, "failed", why, **facts)


def _failure(handler: str, payload: bytes) -> str:
    """Run a handler of this actor in a frame of its own; return why it failed, empty if it did not."""
    import pvm_host

    cycles = max(pvm_host.gas_left() - _RESERVE, 0)
    try:
        pvm_host.call_actor(pvm_host.self_address(), handler, payload, cycles, 0)
    except pvm_host.HostError as error:
        text = str(error)
        return text.partition(" failed: ")[2] or text
    return ""


def _report(event: str, outcome: str, why: str = "", **facts: Any) -> None:
    """Emit an event in canonical CBOR. The SDK's encoder takes any value, and a quarter of what a run costs."""
    import pvm_host

    facts["outcome"] = outcome
    if why:
        facts["why"] = why[:_WHY_MAX]
    data = bytes([_MAP + len(facts)])
    for field in sorted(facts, key=lambda field: (len(field), field)):
        value = facts[field]
        text = field.encode()
        data += _head(_TEXT, len(text)) + text
        if isinstance(value, int):
            data += _head(_INTEGER, value)
        else:
            text = value.encode()
            data += _head(_TEXT, len(text)) + text
    pvm_host.emit_event(event, data)


def _head(kind: int, number: int) -> bytes:
    """Return the head of an item of canonical CBOR: its kind, and a length or integer from 0. Source: RFC 8949 §3."""
    if number < 24:
        return bytes([kind + number])
    power = 0
    while number >> (8 << power):
        power += 1
    return bytes([kind + 24 + power]) + number.to_bytes(1 << power, "big")
