"""Calls between actors: who is seen as sender, who pays, how deep it goes, and what a failure leaves."""

import pytest

from tests.integration.helpers import (
    BASEFEE,
    FUNDS,
    answers,
    assert_refused_call,
    deploy_puppet,
    perform,
    schedule,
    script,
    step,
)
from trailboss.testing import ActorHandle, LocalChain, RevertedError

TELLS = """
import json


def who(payload):
    pvm_host.set_state(b"sender", pvm_host.context()["sender"])
    return pvm_host.context()["sender"]


def through(payload):
    target = bytes.fromhex(payload.decode())
    return pvm_host.call_actor(target, "who", b"", 50_000, 0)


def dive(payload):
    depth = int(payload)
    if depth == 0:
        return b"bottom"
    return pvm_host.call_actor(pvm_host.self_address(), "dive", str(depth - 1).encode(), 4_000_000, 0)
"""


def call(target: ActorHandle, *steps: list[object], cycles: int = 200_000) -> list[object]:
    """Return the step that makes another puppet take steps."""
    return step("call_actor", bytes(target.address), "perform", script(*steps), cycles, 0)


def test_callee_sees_the_calling_actor_and_a_self_call_keeps_the_sender(chain: LocalChain) -> None:
    """The immediate caller, unless an actor calls itself."""
    one, two = (chain.deploy(TELLS, sender=chain.accounts[0]) for _ in range(2))
    account = chain.accounts[3]
    assert one.call("who", sender=account).return_value == account.address
    assert one.call("through", two.address.hex().encode(), sender=account).return_value == one.address
    assert one.call("through", one.address.hex().encode(), sender=account).return_value == account.address
    assert two.storage[b"sender"] == one.address


def test_call_is_refused_when_it_would_be_the_33rd_within_one_another(chain: LocalChain) -> None:
    """Thirty-two nested calls are allowed; the refusal names depth and limit."""
    actor = chain.deploy(TELLS, sender=chain.accounts[0])
    assert actor.call("dive", b"32", sender=chain.accounts[0]).return_value == b"bottom"
    refused = actor.call("dive", b"33", sender=chain.accounts[0])
    assert_refused_call(refused, 1210, "pvm_error", "call depth 33 is over the limit of 32")


def test_call_is_refused_when_there_is_nobody_to_call(chain: LocalChain) -> None:
    """Not found is a code of its own, a missing handler is the callee's failure."""
    actor, other = deploy_puppet(chain), deploy_puppet(chain)
    nobody = step("call_actor", bytes(chain.accounts[5].address), "x", b"", 50_000, 0)
    nothing = step("call_actor", bytes(other.address), "x", b"", 50_000, 0)
    first, second = answers(perform(actor, step("attempt", nobody), step("attempt", nothing)))
    assert first == [3, "not_found"]
    assert second[1] == "pvm_error"
    assert_refused_call(perform(actor, nobody), 1203, "not_found", "E1220 actor_not_found")
    assert_refused_call(perform(actor, nothing), 1210, "pvm_error", "E1223 handler_not_found")


@pytest.mark.spec("E-01", "F-60")
def test_callees_cells_are_the_callers_when_it_succeeds_and_when_it_fails(chain: LocalChain) -> None:
    """What was used is charged to the transaction, kept or rolled back."""
    actor, other = deploy_puppet(chain), deploy_puppet(chain)
    writes = step("set_state", b"k", b"v" * 499)
    for inner in ([writes], [writes, step("raise", "no")]):
        outer = step("attempt", call(other, *inner))
        receipt = perform(actor, outer)
        assert receipt.ok
        assert receipt.cells_used == len(b"perform") + len(script(outer)) + 500
        assert receipt.fee_paid == (receipt.cycles_used + receipt.cells_used) * BASEFEE
    assert other.storage == {b"k": b"v" * 499}


NESTED = """
from cowboy_sdk.call import call


def go(payload):
    target, handler = payload[:20], payload[20:].decode()
    pvm_host.call_actor(target, handler, b"", 200_000, 0)


def passes_on(payload):
    go(bytes.fromhex(pvm_host.get_state(b"next").decode()) + b"fails")


def sdk(payload):
    call(payload, "fails", b"")


def translates(payload):
    try:
        go(payload + b"fails")
    except pvm_host.HostError as error:
        raise LookupError("no answer") from error


def set_next(payload):
    pvm_host.set_state(b"next", payload.hex().encode())


def fails(payload):
    raise KeyError("nothing")


def loops(payload):
    while True:
        pass
"""


def test_receipt_names_the_callees_actor_handler_and_line_when_a_nested_call_fails(chain: LocalChain) -> None:
    """Through as many calls as there are, and through what callers and the SDK make of the failure."""
    first, second, third = (chain.deploy(NESTED, sender=chain.accounts[0]) for _ in range(3))
    second.call("set_next", bytes(third.address), sender=chain.accounts[0], check=True)
    fails = [f"in fails of {second.address}:", 'line 30, in fails: raise KeyError("nothing")']
    host_call = 'line 7, in go: pvm_host.call_actor(target, handler, b"", 200_000, 0)'
    again = 'line 11, in passes_on: go(bytes.fromhex(pvm_host.get_state(b"next").decode()) + b"fails")'
    last = [f"in fails of {third.address}:", fails[1]]
    cases: dict[tuple[str, bytes], list[str]] = {
        ("go", b"fails"): [host_call, *fails],
        ("go", b"passes_on"): [host_call, f"in passes_on of {second.address}:", again, host_call, *last],
        ("sdk", b""): ['line 15, in sdk: call(payload, "fails", b"")', *fails],
        ("translates", b""): ['line 22, in translates: raise LookupError("no answer") from error', *fails],
        ("go", b"missing"): [host_call, f"in missing of {second.address}:"],
        ("go", b"loops"): [host_call, f"in loops of {second.address}:", "line 35, in loops: pass"],
    }
    for (handler, name), lines in cases.items():
        receipt = first.call(handler, bytes(second.address) + name, sender=chain.accounts[0])
        assert receipt.error is not None
        assert str(receipt.error.context["traceback"]).splitlines() == lines
        assert "callee_traceback" not in receipt.error.context
    with pytest.raises(RevertedError, match="in fails of 0x"):
        first.call("go", bytes(second.address) + b"fails", sender=chain.accounts[0], check=True)


GREEDY = """
def grab(payload):
    pvm_host.set_state(b"k", bytes(5_000))


def go(payload):
    target, _, after = payload.partition(b" ")
    try:
        pvm_host.call_actor(bytes.fromhex(target.decode()), "grab", b"", 50_000, 0)
    except pvm_host.HostError as error:
        caught = error.name
    if after:
        pvm_host.set_state(b"k", b"v")
    return caught
"""


@pytest.mark.spec("F-33", "E-02")
def test_callee_out_of_cells_fails_alone_when_its_caller_catches_it(chain: LocalChain) -> None:
    """It can use no more cells than its caller has left, and then its caller has none either."""
    actor, other = (chain.deploy(GREEDY, sender=chain.accounts[0]) for _ in range(2))
    target = other.address.hex().encode()
    alone = actor.call("go", target, sender=chain.accounts[0], cells_limit=3_000)
    assert (alone.return_value, alone.cells_used) == (b"pvm_error", 3_000)
    assert dict(other.storage) == {}
    more = actor.call("go", target + b" more", sender=chain.accounts[0], cells_limit=3_000)
    assert more.status == "reverted"
    assert more.error is not None
    assert more.error.slug == "out_of_cells"
    assert dict(actor.storage) == {}


@pytest.mark.spec("F-31", "F-58")
def test_events_come_in_the_order_of_the_calls_when_frames_are_nested(chain: LocalChain) -> None:
    """Those of a failed frame are missing, the others stand where they were emitted."""
    actor, other = deploy_puppet(chain), deploy_puppet(chain)
    receipt = perform(
        actor,
        step("emit_event", "one", b"\x01"),
        call(other, step("emit_event", "two", b"\x02"), step("schedule_timer", 100, b"")),
        step("attempt", call(other, step("emit_event", "lost", b"\x09"), step("raise", "no"))),
        step("schedule_timer", 200, b""),
        step("emit_event", "three", b"\x03"),
    )
    assert [(event.name, event.emitter) for event in receipt.events] == [
        ("one", actor.address),
        ("two", other.address),
        ("timer.scheduled", other.address),
        ("timer.scheduled", actor.address),
        ("three", actor.address),
    ]


@pytest.mark.spec("F-58")
@pytest.mark.parametrize("name", ["timer.fired", "TimerExpired", "timer.cancelled_by_governance", "actor.deployed"])
def test_actor_cannot_speak_for_the_protocol_when_it_emits_events(chain: LocalChain, name: str) -> None:
    """The topics of the chain's own events are refused, so that a timer's life cannot be forged."""
    actor = deploy_puppet(chain)
    timer_id = schedule(actor, 100)
    refused = perform(actor, step("emit_event", name, b"\xa1" + b"\x68timer_id" + b"\x58\x20" + timer_id))
    assert_refused_call(refused, 1202, "invalid_input", name)
    assert [event.name for event in chain.events() if event.timer_id == timer_id] == ["timer.scheduled"]


def test_slots_are_scanned_and_deleted_in_order_when_a_frame_has_written_and_rolled_back(chain: LocalChain) -> None:
    """A scan sees committed slots and the frame's own, ascending, without those deleted; its bytes are cells."""
    source = """
def fill(payload):
    for name in (b"k3", b"k1", b"other", b"k2"):
        pvm_host.set_state(name, b"old")


def look(payload):
    pvm_host.delete_state(b"k2")
    pvm_host.delete_state(b"never there")
    pvm_host.set_state(b"k0", b"new")
    rows = pvm_host.scan_state_prefix(b"k", 3)
    return b",".join(name + b"=" + content for name, content in rows)


def owner(payload):
    return pvm_host.actor_owner()
"""
    actor = chain.deploy(source, sender=chain.accounts[6])
    actor.call("fill", sender=chain.accounts[0], check=True)
    receipt = actor.call("look", sender=chain.accounts[0], check=True)
    assert receipt.return_value == b"k0=new,k1=old,k3=old"
    assert receipt.cells_used == len("look") + len(b"k0new") + len(b"k0newk1oldk3old")
    assert sorted(actor.storage) == [b"k0", b"k1", b"k3", b"other"]
    assert actor.call("owner", sender=chain.accounts[0]).return_value == chain.accounts[6].address


def test_money_moves_with_the_call_and_back_with_its_failure(chain: LocalChain) -> None:
    """A transfer in a failed frame has not happened."""
    actor, other = deploy_puppet(chain), deploy_puppet(chain)
    gives = step("transfer_balance", bytes(chain.accounts[9].address), 10)
    before = chain.balance(chain.accounts[9])
    answers(perform(actor, call(other, gives), step("attempt", call(other, gives, step("raise", "no")))))
    assert chain.balance(chain.accounts[9]) == before + 10
    assert (actor.balance, other.balance) == (FUNDS, FUNDS - 10)
