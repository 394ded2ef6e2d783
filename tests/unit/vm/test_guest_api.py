"""Host calls as guests make them: arguments, prices, refusals."""

import pytest

from tests.golden.world import ACTOR, OWNER
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.vm.guest_api import HOST_CALLS, UNSUPPORTED, host_code

WIDE = 2**70


def ask(world, expression, **call):
    """Evaluate an expression in a guest; return the outcome and what it cost beyond reading the expression."""
    return world.call(f"def go(p):\n    return {expression}\n", "go", **call)


def told(world, expression):
    """Return type and message of the exception that an expression raises in a guest."""
    context = ask(world, expression)[0].error.context
    return context["exception_type"], context["exception_message"]


ANSWERS = [
    ("pvm_host.current_block()", 100),
    ("pvm_host.block_height()", 100),
    ("pvm_host.self_address()", ACTOR),
    ("pvm_host.actor_owner()", OWNER),
    ("pvm_host.context()['chain_id']", 1),
    ("pvm_host.runtime_config()['continuation_mode']", "fsm"),
    ("pvm_host.keccak256(b'').hex()[:8]", "c5d24601"),
    ("len(pvm_host.randomness(b'dice'))", 32),
    ("pvm_host.verify_signature(2, bytes(32), b'', bytes(64))", False),
    ("pvm_host.get_state(b'missing')", None),
    ("pvm_host.set_state(b'a', bytearray(b'1')) or pvm_host.get_state(memoryview(b'a'))", b"1"),
    ("pvm_host.set_state(key=b'a', value=b'1') or pvm_host.delete_state(b'a') or pvm_host.get_state(b'a')", None),
    ("pvm_host.set_state(b'a1', b'x') or pvm_host.scan_state_prefix(b'a', 5)[0][0]", b"a1"),
    ("pvm_host.emit_event('n', b'1')['emit_id']", 1),
    ("pvm_host.emit_event('n', b'1', bytes(32))['sync_outcomes']", []),
    ("pvm_host.emit_event('n', b'1', None)['deferred_subs']", []),
    ("pvm_host.set_reserved_state(b'__INITIALIZED__', b'1') or pvm_host.get_state(b'__INITIALIZED__')", b"1"),
    ("pvm_host.delete_reserved_state(b'__INITIALIZED__')", None),
    ("pvm_host.send_message(bytes(20), b'hi')", None),
    ("pvm_host.transfer_balance(bytes(20), 5)", None),
    ("pvm_host.schedule_timer(101, b'x')[-1]", 1),
    ("pvm_host.extend_timer(bytes(32), 200)", None),
    ("pvm_host.cancel_timer(bytes(32))", None),
    ("pvm_host.set_gas_bidding_agent(bytes(20)) or pvm_host.set_gas_bidding_agent(agent=None)", None),
    ("pvm_host.timer_lane()['basefee_lane_timer']", 1_000),
    ("pvm_host.timer_lane()['priority_tier_multipliers']['fast']", 15_000),
    ("pvm_host.timer_lane() is pvm_host.timer_lane()", False),
    ("pvm_host.charge_gas(10)", None),
    ("pvm_host.gas_left() > 10**11", True),
]


@pytest.mark.parametrize(("expression", "answer"), ANSWERS)
def test_host_call_answers_a_plain_value(world, expression, answer):
    """Each call, as the public table has it."""
    outcome, _ = ask(world, f"({expression}) == {answer!r}")

    assert outcome.error is None
    assert outcome.return_value == b"\xf5"


PRICES = [
    ("get_state(b'a')", "state_read", 1),
    ("set_state(b'a', b'1')", "state_write", 1),
    ("delete_state(b'a')", "state_delete", 1),
    ("schedule_timer(101, b'')", "timer_schedule", 1),
    ("extend_timer(b'', 101)", "timer_extend", 1),
    ("cancel_timer(b'')", "timer_cancel", 1),
    ("cancel_timer(bytes(20), b'')", "timer_cancel", 1),
    ("set_timeout(101, b'', bytes(20))", "timer_schedule", 1),
    ("set_timeout(bytes(20), 101, b'')", "timer_schedule", 1),
    ("set_state_watch(bytes(20), [], b'')", "timer_schedule", 1),
    ("update_timer(bytes(20), b'')", "timer_extend", 1),
    ("send_message(bytes(20), b'')", "message_send", 1),
    ("transfer_balance(bytes(20), 1)", "transfer_balance", 1),
    ("emit_event('n', b'')", "event_emit", 1),
    ("keccak256(b'')", "keccak_word", 1),
    ("keccak256(bytes(32))", "keccak_word", 1),
    ("keccak256(bytes(33))", "keccak_word", 2),
    ("verify_signature(2, bytes(32), b'', bytes(64))", "signature_check", 1),
    ("randomness(b'')", "randomness", 1),
    ("context()", "context_read", 1),
    ("gas_left()", "context_read", 1),
    ("set_gas_bidding_agent(None)", "state_write", 1),
    ("timer_lane()", "context_read", 1),
]


@pytest.mark.spec("F-60")
@pytest.mark.parametrize(("expression", "price", "times"), PRICES)
def test_host_call_costs_its_price(world, expression, price, times):
    """What a call costs beyond the same expression with a function of the guest's own that does nothing."""
    name = expression.partition("(")[0]
    nothing = (
        f"class free:\n    {name} = staticmethod(lambda *a: None)\ndef go(p):\n    {{}}.{expression}\n    return b''\n"
    )
    _, free = world.call(nothing.format("free"), "go")
    _, paid = world.call(nothing.format("pvm_host"), "go")
    source = world.params.source
    entered = source.function_entry + source.constant

    assert paid.cycles_used - free.cycles_used == getattr(world.params.costs, price) * times - entered


def test_scan_costs_by_the_rows_asked_for_up_to_the_limit(world):
    """Rows beyond the limit are neither given nor paid."""
    costs, most = world.params.costs, world.params.limits.scan_rows_max
    few, many, more = (ask(world, f"pvm_host.scan_state_prefix(b'a', {rows})")[1] for rows in (0, most, most + 1))

    assert many.cycles_used - few.cycles_used == costs.state_scan_row * most
    assert more.cycles_used == many.cycles_used


@pytest.mark.spec("F-10", "F-11")
def test_schedule_timer_ex_takes_both_public_forms(world):
    """Six positional arguments are the SDK's, with no bytes and 0 for the default; keywords are the seed's."""
    calls = [
        "101, b'x', b'', 0, 0, 0",
        "101, b'x', bytes(20), 5, 6, 700",
        "101, b'x'",
        "101, b'x', None, None, None",
        "height=101, payload=b'x', fee_payer=bytes(20), gas_limit=5, expires_at=700",
        "101, b'x', gas_limit=0, expires_at=0",
    ]
    for arguments in calls:
        assert ask(world, f"pvm_host.schedule_timer_ex({arguments}) and 1")[0].error is None

    shown = [(each.fee_payer, each.gas_limit, each.access_limit, each.expires_at) for each in world.timers]
    nothing = (None, None, None, None)
    assert shown == [
        nothing,
        (bytes(20), 5, 6, 700),
        nothing,
        nothing,
        (bytes(20), 5, None, 700),
        (None, 0, None, 0),
    ]


OFFERS = [
    ("schedule_timer(101, b'x')", (None, None, None, False)),
    ("schedule_timer(101, b'x', bytes(20), 5, 700, 40, 2)", (5, 40, 2, False)),
    ("schedule_timer(101, b'x', max_priority_fee_per_cycle=0)", (None, None, 0, False)),
    (
        "schedule_timer(payload=b'x', height=101, max_fee_per_cycle=2**127 - 1, gas_limit=5)",
        (5, 2**127 - 1, None, False),
    ),
    ("schedule_timer(101, b'x', None, None, None, None, None, bid=7)", (None, None, None, True)),
    ("schedule_timer(101, b'x', bid=None)", (None, None, None, True)),
    ("schedule_timer_ex(101, b'x', b'', 5, 0, 0, max_fee_per_cycle=40)", (5, 40, None, False)),
    ("schedule_timer_ex(101, b'x', b'', 0, 0, 0, bid=b'any')", (None, None, None, True)),
    ("schedule_timer_ex(101, b'x', gas_limit=5, max_priority_fee_per_cycle=2)", (5, None, 2, False)),
    ("schedule_timer_ex(101, b'x', None, 5, None, bid=None)", (5, None, None, True)),
]


@pytest.mark.spec("L-14", "L-18")
@pytest.mark.parametrize(("call", "asked"), OFFERS)
def test_schedule_timer_takes_the_fees_of_the_lane(world, call, asked):
    """By position where the seed has a position for them, else by name; a bid counts as given whatever it is."""
    assert ask(world, f"pvm_host.{call} and 1")[0].error is None

    (request,) = world.timers
    fees = (request.max_fee_per_cycle, request.max_priority_fee_per_cycle)
    assert (request.gas_limit, *fees, request.has_bid) == asked


@pytest.mark.parametrize("name", ["max_fee_per_cycle", "max_priority_fee_per_cycle"])
@pytest.mark.parametrize("call", ["schedule_timer", "schedule_timer_ex"])
@pytest.mark.parametrize("value", [-1, 2**127])
def test_fee_is_refused_when_it_is_outside_its_range(world, call, name, value):
    """A price has 127 bits, so that no product of it leaves its width."""
    outcome, _ = ask(world, f"pvm_host.{call}(101, b'x', {name}={value})")

    assert (outcome.error.code, outcome.error.slug) == (1202, "invalid_input")
    assert outcome.error.what == f"{call}(): {name} is {value}, outside 0..={2**127 - 1}"
    assert world.timers == []


def test_agent_is_refused_in_a_read_only_frame(world):
    """Asking for prices is reading; choosing who gives them is not."""
    outcome, _ = ask(world, "pvm_host.timer_lane() and pvm_host.set_gas_bidding_agent(None)", read_only=True)

    assert outcome.error.code == Rejection(RejectionReason.FORBIDDEN, "").error().code
    assert world.agents == []


_TIMER = "height, payload, fee_payer, gas_limit, expires_at"
_OFFER = "max_fee_per_cycle, max_priority_fee_per_cycle"

FAULTS = [
    (
        "pvm_host.schedule_timer(101, b'', None, None, None, None, None, 5)",
        "TypeError",
        f"schedule_timer({_TIMER}, {_OFFER}, *, gas_bidding_agent, bid) takes 7 arguments, got 8",
    ),
    (
        "pvm_host.schedule_timer_ex(101, b'', None, None, None, None, 5)",
        "TypeError",
        f"schedule_timer_ex({_TIMER}, access_limit, *, {_OFFER}, gas_bidding_agent, bid) takes 6 arguments, got 7",
    ),
    (
        "pvm_host.schedule_timer_ex(101, b'', b'', 0, 0, 0, gas_limit=5)",
        "TypeError",
        f"schedule_timer_ex({_TIMER}, access_limit, *, {_OFFER}, gas_bidding_agent, bid) got gas_limit twice",
    ),
    (
        "pvm_host.schedule_timer(101, b'', access_limit=5)",
        "TypeError",
        f"schedule_timer({_TIMER}, {_OFFER}, *, gas_bidding_agent, bid) has no argument 'access_limit'",
    ),
    (
        "pvm_host.schedule_timer(101, bid=5)",
        "TypeError",
        f"schedule_timer({_TIMER}, {_OFFER}, *, gas_bidding_agent, bid) needs payload",
    ),
    (
        "pvm_host.schedule_timer(101, b'', max_fee_per_cycle=True)",
        "TypeError",
        "schedule_timer(): max_fee_per_cycle must be an integer, got True",
    ),
    (
        "pvm_host.set_gas_bidding_agent('me')",
        "TypeError",
        "set_gas_bidding_agent(): agent must be bytes, got 'me'",
    ),
    (
        "pvm_host.set_gas_bidding_agent(b'me')",
        "HostError",
        "set_gas_bidding_agent(): agent must be 20 bytes, got 2 bytes",
    ),
    ("pvm_host.set_state(b'a')", "TypeError", "set_state(key, value) needs value"),
    ("pvm_host.get_state(b'a', b'b')", "TypeError", "get_state(key) takes 1 arguments, got 2"),
    ("pvm_host.get_state(slot=b'a')", "TypeError", "get_state(key) has no argument 'slot'"),
    ("pvm_host.get_state(b'a', key=b'a')", "TypeError", "get_state(key) got key twice"),
    ("pvm_host.get_state('a')", "TypeError", "get_state(): key must be bytes, got 'a'"),
    ("pvm_host.set_state(b'a', [1])", "TypeError", "set_state(): value must be bytes, got an object of type list"),
    ("pvm_host.get_state(10**400)", "TypeError", "get_state(): key must be bytes, got an integer of 1329 bits"),
    ("pvm_host.emit_event(b'n', b'')", "TypeError", "emit_event(): name must be a str, got b'n'"),
    ("pvm_host.schedule_timer('1', b'')", "TypeError", "schedule_timer(): height must be an integer, got '1'"),
    ("pvm_host.schedule_timer(True, b'')", "TypeError", "schedule_timer(): height must be an integer, got True"),
    (
        "pvm_host.schedule_timer(-1, b'')",
        "HostError",
        "schedule_timer(): height is -1, outside 0..=18446744073709551615",
    ),
    (
        "pvm_host.charge_gas(-5)",
        "HostError",
        "charge_gas(): amount is -5, outside 0..=18446744073709551615",
    ),
    (
        f"pvm_host.transfer_balance(bytes(19), {WIDE})",
        "HostError",
        "transfer_balance(): to must be 20 bytes, got 19 bytes",
    ),
    (
        "pvm_host.schedule_timer_ex(101, b'', b'1', 0, 0, 0)",
        "HostError",
        "schedule_timer_ex(): fee_payer must be 20 bytes, got 1 bytes",
    ),
    (
        "pvm_host.schedule_timer_ex(101, b'', access_limit=-1)",
        "HostError",
        "schedule_timer_ex(): access_limit is -1, outside 0..=18446744073709551615",
    ),
    (
        "pvm_host.verify_signature(1, bytes(32), b'', bytes(64))",
        "HostError",
        "verify_signature(): algorithm is 1, outside 2..=2",
    ),
    (
        "pvm_host.set_state(b'__INITIALIZED__', b'')",
        "ValueError",
        "set_state(): key b'__INITIALIZED__' is reserved for the SDK",
    ),
    (
        "pvm_host.delete_state(b'cowboy.offchain.image.v1')",
        "ValueError",
        "delete_state(): key b'cowboy.offchain.image.v1' is reserved for the SDK",
    ),
    (
        "pvm_host.set_reserved_state(b'a', b'')",
        "ValueError",
        "set_reserved_state(): key must be b'__INITIALIZED__', got b'a'",
    ),
    ("pvm_host.emit_event('\\ud800', b'')", "HostError", "emit_event(): name must be UTF-8 text, got '\\ud800'"),
]


@pytest.mark.parametrize(("expression", "kind", "message"), FAULTS)
def test_host_call_refuses_its_arguments_naming_value_and_rule(world, expression, kind, message):
    """A wrong call is a TypeError or ValueError, a wrong value a HostError; nothing has happened."""
    assert told(world, expression) == (kind, message)
    assert (world.slots, world.timers, world.events, world.transfers) == ({}, [], [], [])


@pytest.mark.spec("F-30")
def test_refused_call_can_be_caught_and_leaves_with_its_own_code(world):
    """Decision: D-06."""
    source = """
def caught(p):
    try:
        pvm_host.schedule_timer(99, b"")
    except pvm_host.HostError as error:
        return [error.code, error.name, str(error), isinstance(error, RuntimeError)]

def left(p):
    pvm_host.schedule_timer(99, b"")
"""
    caught, left = world.call(source, "caught")[0], world.call(source, "left")[0]

    assert caught.return_value.startswith(b"\x84\x02\x6dinvalid_input")
    assert (left.error.code, left.error.slug, left.error.what) == (1202, "invalid_input", "height 99 is not above 100")
    assert left.error.context == {
        "exception_type": "HostError",
        "exception_message": "height 99 is not above 100",
        "traceback": 'line 9, in left: pvm_host.schedule_timer(99, b"")',
    }


def test_error_is_the_guests_own_when_it_only_looks_like_a_refusal(world):
    """A HostError that the guest makes up carries no refusal."""
    outcome, _ = world.call("def go(p):\n    raise pvm_host.HostError('mine', 5, 'forbidden')\n", "go")

    assert (outcome.error.code, outcome.error.what) == (1210, "HostError: mine")


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_call_refuses_by_name_when_the_seeds_do_not_need_it(world, name):
    """Each of them exists, and says that it is not implemented."""
    outcome, _ = ask(world, f"pvm_host.{name}(1, 2, three=3)")

    assert (outcome.error.code, outcome.error.slug) == (1209, "unsupported")
    assert outcome.error.what == f"pvm_host.{name} is not implemented here"


@pytest.mark.spec("L-21")
def test_change_is_forbidden_when_the_frame_only_reads(world):
    """The host refuses it; the guest sees code 5."""
    outcome, _ = ask(world, "pvm_host.set_state(b'a', b'1')", read_only=True)

    assert (outcome.error.code, world.slots) == (1205, {})


def test_arguments_are_taken_by_their_real_type_when_they_lie(world):
    """A subclass with methods of its own is read by the methods of the plain type, and runs nothing."""
    source = """
class Lying:
    __class__ = bytes

class Octets(bytes):
    def __bytes__(self):
        raise ValueError
    def __buffer__(self, flags):
        raise ValueError

class Number(int):
    def __index__(self):
        raise ValueError
    def __repr__(self):
        raise ValueError

def honest(p):
    pvm_host.set_state(Octets(b"a"), Octets(b"1"))
    return pvm_host.schedule_timer(Number(105), b"")[-1]

def lying(p):
    pvm_host.get_state(Lying())

def wide(p):
    pvm_host.schedule_timer(Number(-1), b"")
"""
    assert world.call(source, "honest")[0].return_value == b"\x01"
    assert world.slots == {(ACTOR, b"a"): b"1"}
    assert type(world.timers[0].height) is int
    lying = world.call(source, "lying")[0].error.context
    assert lying["exception_message"] == "get_state(): key must be bytes, got an object of type Lying"
    assert world.call(source, "wide")[0].error.code == 1202


def test_view_that_was_released_is_no_bytes(world):
    """A view without a buffer is refused like any other thing that is no bytes."""
    source = "def go(p):\n    view = memoryview(p)\n    view.release()\n    pvm_host.get_state(view)\n"

    assert world.call(source, "go", b"1")[0].error.context["exception_type"] == "TypeError"


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (RejectionReason.OUT_OF_CYCLES, 1),
        (RejectionReason.INVALID_INPUT, 2),
        (RejectionReason.OVERFLOW, 2),
        (RejectionReason.NOT_FOUND, 3),
        (RejectionReason.ACTOR_NOT_FOUND, 3),
        (RejectionReason.FORBIDDEN, 5),
        (RejectionReason.UNAUTHORIZED_TIMER, 5),
        (RejectionReason.CALL_NOT_PERMITTED, 5),
        (RejectionReason.TIMER_LIMIT, 1501),
        (RejectionReason.PVM_ERROR, 1210),
        (RejectionReason.UNSUPPORTED, 1209),
    ],
)
def test_host_code_is_the_public_number_when_one_fits(reason, code):
    """Guests of the public host test for 1 to 8; other reasons keep their public error code."""
    assert host_code(reason) == code


def test_every_call_of_the_public_table_is_there():
    """The SDK finds each name it may ask for."""
    assert len(HOST_CALLS) == 32 + len(UNSUPPORTED)
    assert issubclass(Rejection, Exception)


def test_nested_call_answers_none_when_the_callee_has_no_output(world):
    """The SDK tells no output from an empty encoded value."""
    world.sources[bytes(20)] = "def quiet(p):\n    pass\ndef loud(p):\n    return p + b'!'\n"

    assert ask(world, "pvm_host.call_actor(bytes(20), 'quiet', b'', 10**6) is None")[0].return_value == b"\xf5"
    assert ask(world, "pvm_host.call_actor(bytes(20), 'loud', b'hi', 10**6, 0)")[0].return_value == b"hi!"
    assert ask(world, "pvm_host.call_actor(bytes(19) + b'9', 'x', b'', 1)")[0].error.code == 1203
