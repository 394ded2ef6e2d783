"""The calls of the auction and of Globalbox as guests make them: forms, arguments, refusals."""

import pytest

from trailboss.model import calls
from trailboss.model.calls import AuctionRequest, GlobalboxRequest, GlobalboxUpdate

TARGET, KEY = b"\x11" * 20, b"\x11" * 20 + b"price"
WHO = "bytes([17]) * 20"
U64, U128 = 2**64 - 1, 2**128 - 1


def ask(world, expression, **call):
    """Evaluate an expression in a guest and return the outcome."""
    return world.call(f"def go(p):\n    return {expression}\n", "go", **call)[0]


AUCTION = [
    ("101, b'x', bytes(20)", AuctionRequest(101, b"x", bytes(20))),
    ("101, b'x', bytes(20), None", AuctionRequest(101, b"x", bytes(20))),
    ("101, b'x', bytes(20), 7", AuctionRequest(101, b"x", bytes(20), 7)),
    ("gas_limit=7, gba=bytes(20), payload=b'x', height=101", AuctionRequest(101, b"x", bytes(20), 7)),
    ("101, bytearray(b'x'), gba=bytes(20)", AuctionRequest(101, b"x", bytes(20))),
]


@pytest.mark.spec("A-01")
@pytest.mark.parametrize(("arguments", "expected"), AUCTION)
def test_set_timeout_is_the_auctions_when_a_height_comes_first(world, arguments, expected):
    """Or when a name says so that Globalbox does not have."""
    assert ask(world, f"pvm_host.set_timeout({arguments})").return_value == (1).to_bytes(32, "big")
    assert world.timers == [expected]


GLOBALBOX = [
    (f"{WHO}, 101, b'x'", GlobalboxRequest(TARGET, b"x", 101)),
    (f"{WHO}, 101, b'x', None, 0, None, b''", GlobalboxRequest(TARGET, b"x", 101)),
    (
        f"{WHO}, 101, b'x', 7, 2**128 - 1, 300, b'n'",
        GlobalboxRequest(TARGET, b"x", 101, None, 7, U128, 300, b"n"),
    ),
    (
        f"payload=b'x', due_height=101, target={WHO}, bid_fp=5, client_nonce=b'n'",
        GlobalboxRequest(TARGET, b"x", 101, bid=5, client_nonce=b"n"),
    ),
]


@pytest.mark.parametrize(("arguments", "expected"), GLOBALBOX)
def test_set_timeout_is_globalboxs_when_an_actor_comes_first(world, arguments, expected):
    """What is left out, or None, is the protocol's default."""
    assert ask(world, f"pvm_host.set_timeout({arguments})").return_value == (1).to_bytes(32, "big")
    assert world.timers == [expected]


FORMS = [
    ("5.0, b'', {WHO}, 9", "height must be an integer, got 5.0", "height must be an integer, got 5.0"),
    ("'5', b'', {WHO}, 9", "height must be an integer, got '5'", "due_height must be an integer, got b''"),
    ("None, b'', {WHO}", "height must be an integer, got None", "due_height must be an integer, got b''"),
    ("{WHO}, b'', {WHO}", "height must be an integer, got", "due_height must be an integer, got b''"),
    ("7, 101, b''", "payload must be bytes, got 101", "target must be bytes, got 7"),
    ("{WHO}, 101, 'x'", "payload must be bytes, got 'x'", "payload must be bytes, got 'x'"),
    ("", "set_timeout(height, payload, gba, gas_limit) needs height", "client_nonce) needs target"),
    ("None, due_height=5, payload=b''", "target must be bytes, got None", "target must be bytes, got None"),
    ("height=None, payload=b'', gba=b''", "height must be an integer, got None", "height must be an integer, got None"),
]


@pytest.mark.parametrize(("arguments", "auction", "globalbox"), FORMS)
def test_set_timeout_speaks_of_the_chains_form_when_the_arguments_fit_neither(world, arguments, auction, globalbox):
    """A number first and none after it is the auction's, none first and one after it is Globalbox's."""
    for missing, what in ((calls.SET_TIMEOUT_GLOBALBOX, auction), (calls.SET_TIMEOUT_AUCTION, globalbox)):
        world.missing_calls = frozenset({missing})
        error = ask(world, f"pvm_host.set_timeout({arguments.format(WHO=WHO)})").error
        assert what in error.context["exception_message"]
    assert world.timers == []


def test_bounds_of_globalbox_are_the_chains_affair(world):
    """Numbers of either sign are handed on, so that a refusal can tell the rule."""
    ask(world, f"pvm_host.set_timeout({WHO}, -1, b'', -2, -3, -4)")
    ask(world, f"pvm_host.update_timer({WHO}, b'id', None, -2, -3)")

    assert world.timers == [GlobalboxRequest(TARGET, b"", -1, None, -2, -3, -4)]
    assert world.updates == [GlobalboxUpdate(TARGET, b"id", None, -2, -3)]


@pytest.mark.parametrize("keys", ["[p]", "(p,)", "[bytearray(p)]"])
def test_set_state_watch_takes_a_list_of_keys(world, keys):
    """In any form that bytes and lists come in; order and number are the chain's affair."""
    source = f"def go(p):\n    return pvm_host.set_state_watch({WHO}, {keys}, b'x', 7, 5, 300, b'n')\n"
    outcome, _ = world.call(source, "go", KEY)

    assert outcome.error is None
    assert world.timers == [GlobalboxRequest(TARGET, b"x", None, (KEY,), 7, 5, 300, b"n")]


@pytest.mark.spec("G-06")
def test_update_timer_hands_on_what_is_to_change(world):
    """None stays as it is."""
    assert ask(world, f"pvm_host.update_timer({WHO}, b'id', b'x', 7, 5)").return_value == b"\xf5"
    assert ask(world, f"pvm_host.update_timer({WHO}, b'id', bid_fp=0)").return_value == b"\xf5"

    assert world.updates == [
        GlobalboxUpdate(TARGET, b"id", b"x", 7, 5),
        GlobalboxUpdate(TARGET, b"id", None, None, 0),
    ]


@pytest.mark.spec("G-07")
def test_cancel_timer_answers_when_the_target_is_named(world):
    """With the id alone it answers nothing, as it does under every mechanism."""
    for arguments in ("b'id'", "timer_id=b'id'"):
        assert ask(world, f"pvm_host.cancel_timer({arguments}) is None").return_value == b"\xf5"
    for arguments in (f"{WHO}, b'id'", f"timer_id=b'id', target={WHO}"):
        assert ask(world, f"pvm_host.cancel_timer({arguments}) is False").return_value == b"\xf5"


REFUSALS = [
    (f"set_timeout({WHO}, 1.5, b'')", "ERR_UNSUPPORTED_TIMER_TYPE", "due_height is 1.5, a float, and must be a block"),
    (
        f"set_timeout({WHO}, 10**12, b'')",
        "ERR_UNSUPPORTED_TIMER_TYPE",
        "due_height is 1000000000000, which reads as a time in milliseconds, and must be a block height",
    ),
    (f"set_timeout({WHO}, 2**80, b'')", "ERR_UNSUPPORTED_TIMER_TYPE", "which reads as a time in milliseconds"),
    (
        f"set_state_watch({WHO}, [], b'', expiry_height=1.7e12)",
        "ERR_UNSUPPORTED_TIMER_TYPE",
        "expiry_height is 1700000000000.0, a float",
    ),
    (f"set_timeout({WHO}, -(2**128), b'')", "ERR_INVALID_PARAM", "which has more than 128 bits"),
    (f"set_timeout({WHO}, 101, b'', 2**9999)", "ERR_INVALID_PARAM", "gas_limit is an integer of 10000 bits, which has"),
    (f"set_timeout({WHO}, 101, b'', 7, 2**128)", "ERR_INVALID_PARAM", "which has more than 128 bits"),
    ("set_timeout(b'me', 101, b'')", "ERR_INVALID_PARAM", "target must be 20 bytes, got 2 bytes"),
    (f"update_timer({WHO}, b'', gas_limit=2**128)", "ERR_INVALID_PARAM", "which has more than 128 bits"),
    ("update_timer(b'', b'id')", "ERR_INVALID_PARAM", "target must be 20 bytes"),
    ("cancel_timer(b'', b'id')", "ERR_INVALID_PARAM", "target must be 20 bytes"),
    ("set_timeout(-1, b'', bytes(20))", "invalid_input", f"height is -1, outside 0..={U64}"),
    ("set_timeout(101, b'', b'me')", "invalid_input", "gba must be 20 bytes, got 2 bytes"),
    ("set_timeout(101, b'', bytes(20), -1)", "invalid_input", "gas_limit is -1"),
]


@pytest.mark.spec("G-04")
@pytest.mark.parametrize(("call", "slug", "what"), REFUSALS)
def test_call_is_refused_by_the_name_that_the_specification_gives(world, call, slug, what):
    """A HostError whose name is the code; nothing is set."""
    source = (
        f"def go(p):\n    try:\n        pvm_host.{call}\n"
        "    except pvm_host.HostError as error:\n        return [error.name, str(error)]\n"
    )
    outcome, _ = world.call(source, "go")

    assert slug.encode() in outcome.return_value
    assert what.encode() in outcome.return_value
    assert (world.timers, world.updates) == ([], [])


FAULTS = [
    ("set_timeout(101, b'')", "set_timeout(height, payload, gba, gas_limit) needs gba"),
    (
        f"set_timeout({WHO}, 101)",
        "set_timeout(target, due_height, payload, gas_limit, bid_fp, expiry_height, client_nonce) needs payload",
    ),
    ("set_timeout(height=1.5, payload=b'', gba=bytes(20))", "set_timeout(): height must be an integer, got 1.5"),
    ("set_timeout(True, b'', bytes(20))", "set_timeout(): height must be an integer, got True"),
    (f"set_timeout({WHO}, True, b'')", "set_timeout(): due_height must be an integer, got True"),
    (f"set_timeout({WHO}, '101', b'')", "set_timeout(): due_height must be an integer, got '101'"),
    ("set_timeout(None, 101, b'')", "set_timeout(): target must be bytes, got None"),
    (f"set_timeout({WHO}, 101, 'x')", "set_timeout(): payload must be bytes, got 'x'"),
    (f"set_timeout({WHO}, 101, b'', '7')", "set_timeout(): gas_limit must be an integer, got '7'"),
    (f"set_timeout({WHO}, 101, b'', client_nonce=7)", "set_timeout(): client_nonce must be bytes, got 7"),
    (f"set_state_watch({WHO}, b'key', b'')", "set_state_watch(): watch_keys must be a list, got b'key'"),
    (f"set_state_watch({WHO}, [1], b'')", "set_state_watch(): watch_keys must be bytes, got 1"),
    (f"update_timer({WHO}, b'id', 5)", "update_timer(): payload must be bytes, got 5"),
    (f"update_timer({WHO})", "update_timer(target, timer_id, payload, gas_limit, bid_fp) needs timer_id"),
    ("cancel_timer()", "cancel_timer(timer_id) needs timer_id"),
    (f"cancel_timer({WHO}, b'id', 1)", "cancel_timer(target, timer_id) takes 2 arguments, got 3"),
    ("cancel_timer(target=bytes(20))", "cancel_timer(timer_id) has no argument 'target'"),
]


@pytest.mark.parametrize(("call", "message"), FAULTS)
def test_call_is_a_type_error_when_an_argument_is_of_another_kind(world, call, message):
    """As with every host call; nothing is set."""
    context = ask(world, f"pvm_host.{call}").error.context

    assert (context["exception_type"], context["exception_message"]) == ("TypeError", message)
    assert (world.timers, world.updates) == ([], [])


def test_keys_are_read_without_the_guests_own_code(world):
    """The list decides, not the methods that a class of the guest's gives it."""
    source = f"""
class Keys(list):
    def __iter__(self):
        pvm_host.set_state(b"ran", b"1")
        return iter([])

class Pair(tuple):
    def __iter__(self):
        pvm_host.set_state(b"ran", b"1")
        return iter([])

def go(p):
    pvm_host.set_state_watch({WHO}, Keys([p]), b"")
    pvm_host.set_state_watch({WHO}, Pair([p]), b"")
"""
    outcome, _ = world.call(source, "go", KEY)

    assert outcome.error is None
    assert [timer.watch_keys for timer in world.timers] == [(KEY,), (KEY,)]
    assert world.slots == {}


@pytest.mark.parametrize(
    "call",
    [
        "set_timeout(101, b'', bytes(20))",
        f"set_timeout({WHO}, 101, b'')",
        f"set_state_watch({WHO}, [], b'')",
        f"update_timer({WHO}, b'id')",
        f"cancel_timer({WHO}, b'id')",
    ],
)
def test_call_is_refused_in_a_read_only_frame(world, call):
    """Each of them would change something."""
    assert ask(world, f"pvm_host.{call}", read_only=True).error.slug == "forbidden"
    assert (world.timers, world.updates) == ([], [])
