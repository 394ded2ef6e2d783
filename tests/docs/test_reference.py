"""The reference pages say what the code does: they are written from it, and what they add by hand is compared here."""

from functools import cached_property
from inspect import getattr_static
from types import FunctionType, SimpleNamespace

import pytest

from tests.integration import auctions, boxes
from tests.integration.helpers import answers, perform, step
from tests.integration.test_runner import RAW, raw_job
from tools.reference import PAGES, ROOT, SESSIONS, event_names, parameters, readme
from tools.reference_text import CALLS, EVENTS
from tools.sessions import with_sessions
from trailboss.metering.meter import Meter
from trailboss.model.transactions import (
    CancelTimer,
    ExtendTimer,
    SetGovParam,
    UpdateBasefeeConfig,
    UpdateLaneFeeMultipliers,
    UpdateTimerConfig,
    UpgradeActor,
)
from trailboss.params import load_params
from trailboss.testing import LocalChain
from trailboss.vm.engine import Frame
from trailboss.vm.guest_api import HOST_CALLS, UNSUPPORTED, CallSite

CBY = 10**9

BUSY = """
import pvm_host

def schedule(payload):
    now = pvm_host.block_height()
    live = [pvm_host.schedule_timer_ex(now + 1, b"", gas_limit=50_000) for _ in range(2)]
    late = pvm_host.schedule_timer_ex(now + 2, b"", gas_limit=50_000, expires_at=now + 1)
    far = pvm_host.schedule_timer_ex(now + 500, b"", gas_limit=50_000)
    pvm_host.cancel_timer(pvm_host.schedule_timer(now + 3, b""))
    pvm_host.extend_timer(far, now + 1_000)
    pvm_host.send_message(pvm_host.self_address(), b"hello")
    return far

def prepare(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + 1, b"", bid=1)
    pvm_host.set_gas_bidding_agent(pvm_host.self_address())

def defer(payload):
    pvm_host.create_deferred_tx("handle_message", b"")

def offer(payload):
    now = pvm_host.block_height()
    pvm_host.schedule_timer(now + 1, b"")
    pvm_host.schedule_timer(now + 2, b"", max_priority_fee_per_cycle=10**12)

def handle_timer(payload):
    pass

def handle_message(payload):
    pass
"""


@pytest.mark.parametrize("name", PAGES)
def test_page_equals_what_the_code_says(name: str) -> None:
    """``python -m tools.reference`` would change nothing."""
    assert (ROOT / f"docs/reference/{name}.md").read_text(encoding="utf-8") == PAGES[name]()


def test_plugin_page_has_every_call_and_every_option(pytestconfig: pytest.Config) -> None:
    """Wherever a call of `LocalChain` comes from, and whoever registers an option with pytest."""
    page = PAGES["pytest-plugin"]()
    kinds = FunctionType | property | cached_property
    names = [name for name in dir(LocalChain) if not name.startswith("_")]
    calls = [name for name in names if isinstance(getattr_static(LocalChain, name), kinds)]
    assert "deploy" in calls
    assert [name for name in calls if page.count(f"\n### {name}\n") != 1] == []
    options = [f"--{name.replace('_', '-')}" for name in vars(pytestconfig.option) if name.startswith("trailboss")]
    assert "--trailboss-vm" in options
    assert [name for name in options if f"| `{name}" not in page] == []


@pytest.mark.slow
def test_readme_equals_what_the_demo_prints() -> None:
    """``python -m tools.reference`` would change nothing there either."""
    assert (ROOT / "README.md").read_text(encoding="utf-8") == readme()


@pytest.mark.parametrize("name", SESSIONS)
def test_page_equals_what_its_session_prints(name: str) -> None:
    """Typing its commands gives what the page shows."""
    page = (ROOT / name).read_text(encoding="utf-8")
    assert with_sessions(page) == page


def test_session_is_refused_when_a_command_fails_unannounced() -> None:
    """A page shows an error only where it means to."""
    with pytest.raises(ValueError, match="there is no chain at chain"):
        with_sessions("```console\n$ trailboss status\n```\n")
    shown = with_sessions("```console\n$ trailboss status  # too early\n```\n")
    assert "there is no chain at chain" in shown


NOBODY = bytes(19) + b"\x77"
ASKS = """
def ask(payload):
    return pvm_host.call_actor(payload, "ask", b"", 20_000)
"""


def test_events_page_names_every_event() -> None:
    """No event of the protocol is missing, and none is made up."""
    assert sorted(EVENTS) == sorted(event_names())


def test_events_page_has_the_fields_that_events_have_on_a_chain() -> None:
    """Chains on which every event happens show the fields and the place that the page gives."""
    seen: dict[str, str] = {}
    found: dict[str, set[str]] = {}
    # A lane for one fire a block, so that the second of two due timers waits.
    with LocalChain(params={"timers.lane_cycles_per_block": 60_000, "timers.max_cycles_per_fire": 60_000}) as chain:
        busy = chain.deploy(BUSY, sender=chain.accounts[0], value=100 * CBY)
        far = busy.call("schedule", b"", sender=chain.accounts[0], check=True).return_value
        chain.mine(5)
        for instruction in (
            ExtendTimer(far, 900),
            CancelTimer(far),
            UpgradeActor(busy.address, BUSY.encode()),
            UpdateTimerConfig(1_000, 50_000, 550_000, 10, 5_000_000),
            UpdateBasefeeConfig(8, 8, 10_000, 10**24, 10_000_000, 500_000, 0, 0),
            UpdateLaneFeeMultipliers(10_000, 10_000, 10_000, 10_000),
            SetGovParam(b"system:cip1:lane_timer_cycles", (50_000).to_bytes(8, "big")),
        ):
            chain.system(instruction, check=True)
        chain.hold(chain.schedule(chain.height + 100).timer_id)
        chain.set_balance(chain.accounts[1], chain.balance(chain.accounts[1]))
        chain.start_runner()
        asking = chain.deploy(RAW, sender=chain.accounts[0], value=100 * CBY)
        asking.call("go", raw_job(), sender=chain.accounts[0], check=True)
        busy.call("defer", b"", sender=chain.accounts[2], check=True)
        chain.set_balance(chain.accounts[2], 0)
        poor = chain.deploy(BUSY, sender=chain.accounts[1])
        poor.call("schedule", b"", sender=chain.accounts[1], check=True)
        chain.mine(5)
        # The actor is its own gas bidding agent, and defines no get_gas_bid.
        busy.call("prepare", b"", sender=chain.accounts[0], check=True)
        activation = (chain.height + 4).to_bytes(8, "big")
        chain.system(SetGovParam(b"system:cip1:activation_height", activation), check=True)
        chain.mine(5)
        busy.call("offer", b"", sender=chain.accounts[0], check=True)
        chain.mine(5)
        _take_events(chain, seen, found)
    with LocalChain() as chain:
        asks = chain.deploy(ASKS, sender=chain.accounts[0])
        chain.set_storage(asks, b"key", b"value")
        chain.mock_call(chain.set_code(NOBODY, ASKS), "ask", returns=5)
        asks.call("ask", NOBODY, sender=chain.accounts[0], check=True)
        chain.clear_mocks()
        _take_events(chain, seen, found)
    with auctions.open_auction(auction__delays_max=1) as chain:
        late = auctions.bidder(chain, "1000000 0", value=CBY)
        auctions.arm(late, "a", height=8)
        chain.advance_to(10)
        chain.system(SetGovParam(b"system:auction:delay_action", (2).to_bytes(8, "big")), check=True)
        chain.mine()
        _take_events(chain, seen, found, but=OWN)
    with boxes.open_box(timers__max_cycles_per_fire=boxes.GAS, timers__lane_cycles_per_block=boxes.GAS) as chain:
        chain.system(SetGovParam(b"system:globalbox:watch_keys_max", (3).to_bytes(8, "big")), check=True)
        box, poor = boxes.deploy_box(chain), boxes.deploy_box(chain, value=CBY)
        timer_id = boxes.set_timeout(box, 12)
        answers(perform(box, step("update_timer", bytes(box.address), timer_id, b"later")))
        watching = boxes.watch(poor, boxes.key(poor, b"a"))
        chain.advance_to(11)
        # The entry of the watch waits behind the timer's, and its owner cancels it meanwhile.
        boxes.put(poor, b"a", b"1", sender=chain.accounts[0])
        answers(perform(poor, step("cancel_timer", watching)))
        chain.mine(2)
        _take_events(chain, seen, found, but=OWN)

    assert {name: (seen[name], sorted(fields)) for name, fields in found.items()} == {
        name: (entry.place, sorted(entry.fields)) for name, entry in EVENTS.items()
    }


OWN = frozenset({"note"})
"""Events of the actors themselves."""


def _take_events(
    chain: LocalChain, seen: dict[str, str], found: dict[str, set[str]], but: frozenset[str] = frozenset()
) -> None:
    """Note where each event of a chain stands, and all fields that it has."""
    for height in range(chain.height + 1):
        block = chain.block(height)
        in_receipts = [event.name for receipt in block.receipts for event in receipt.events]
        for name in in_receipts + [event.name for event in block.events]:
            seen[name] = "receipt" if name in in_receipts else "block"
    for event in chain.events():
        if event.name not in but:
            found.setdefault(event.name, set()).update(event.data)


def test_calls_page_names_every_host_call() -> None:
    """What is not on the page is listed there as not implemented."""
    assert sorted([*CALLS, *UNSUPPORTED]) == sorted(HOST_CALLS)


ARGUMENTS = {
    "amount": 1,
    "domain": b"d",
    "data": b"d",
    "algorithm": 2,
    "public_key": bytes(32),
    "message": b"m",
    "signature": bytes(64),
    "key": b"k",
    "value": b"v",
    "prefix": b"p",
    "limit": 1,
    "height": 9,
    "payload": b"",
    "fee_payer": None,
    "gas_limit": None,
    "expires_at": None,
    "access_limit": None,
    "timer_id": bytes(32),
    "new_expires_at": 9,
    "name": "n",
    "schema": None,
    "max_fee_per_cycle": None,
    "max_priority_fee_per_cycle": None,
    "gas_bidding_agent": None,
    "bid": 1,
    "handler": "h",
    "agent": None,
    "target": bytes(20),
    "method": "m",
    "cycles_limit": 1,
    "to": bytes(20),
    "due_height": 9,
    "watch_keys": [bytes(20)],
    "bid_fp": 1,
    "expiry_height": 9,
    "client_nonce": b"n",
    "code": b"c",
    "manifest": None,
    "routes": None,
    "route_sponsorship": None,
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_page_has_the_price_that_a_call_charges(name: str) -> None:
    """The host is mute here, so what the meter shows is the fixed price."""
    silent = (
        "read_slot",
        "write_slot",
        "delete_slot",
        "extend_timer",
        "cancel_timer",
        "emit_event",
        "send_message",
        "defer_call",
        "transfer",
        "set_agent",
        "upgrade",
    )
    host = SimpleNamespace(
        **{call: lambda *_: None for call in silent},
        context=dict,
        height=lambda: 1,
        scan_slots=lambda *_: [],
        has_call=lambda _: True,
        schedule_timer=lambda *_: bytes(32),
        market_call=lambda *_: bytes(32),
        call_actor=lambda *_: b"",
        randomness=lambda _: bytes(32),
        timer_lane=dict,
    )
    params, meter = load_params(), Meter(10**6, 10**6)
    frame = Frame("", bytes(32), bytes(20), bytes(20), "handler", b"")
    given = dict(ARGUMENTS)
    if name.endswith("reserved_state"):
        given["key"] = b"__INITIALIZED__"

    HOST_CALLS[name](
        CallSite(host, meter, params, frame), (), {each: given[each] for each in parameters(name) if each != "*"}
    )

    price = sum(getattr(params.costs, each) for each in CALLS[name].prices)
    assert meter.cycles_used == (price or given["amount"])
