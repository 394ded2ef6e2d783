"""Actors that replace their own code: what changes, when, at what price, and what is refused. Decision: D-119."""

import pytest

from trailboss.codec.canonical import encode_canonical
from trailboss.model.actors import encode_manifest
from trailboss.testing import ActorHandle, ChainWarning, LocalChain

CBY = 10**9
OLD = """
import pvm_host


def init(payload):
    pvm_host.set_state(b"kept", b"by the first")
    pvm_host.schedule_timer(pvm_host.block_height() + 5, b"")


def handle_timer(payload):
    pvm_host.emit_event("fired", version(b""))


def version(payload):
    return b"old"


def upgrade(payload):
    pvm_host.upgrade_self(payload)
    own, nested = version(b""), pvm_host.call_actor(pvm_host.self_address(), "version", b"", 100_000)
    return own + b" and then " + nested


def upgrade_and_fail(payload):
    pvm_host.upgrade_self(payload)
    raise ValueError("too late")


def guarded(payload):
    try:
        pvm_host.upgrade_self(payload)
    except pvm_host.HostError as error:
        return [error.code, error.name, str(error)]


def fits_with(payload):
    pvm_host.upgrade_self(payload, ENTITLEMENTS)


def has_routes(payload):
    pvm_host.upgrade_self(payload, None, b"routes")
"""
OLD = OLD.replace("ENTITLEMENTS", repr(encode_manifest(["timer.schedule"])))
NEW = OLD.replace('b"old"', 'b"new"').encode()
pytestmark = pytest.mark.filterwarnings("ignore::trailboss.testing.ChainWarning")


@pytest.fixture
def actor(chain: LocalChain) -> ActorHandle:
    return chain.deploy(OLD, sender=chain.accounts[0], value=1_000 * CBY)


def test_upgrade_takes_effect_in_the_next_frame_and_leaves_timers_and_storage(
    chain: LocalChain, actor: ActorHandle
) -> None:
    """The running frame goes on with the old code; a nested call, later calls and the waiting fire get the new one."""
    (waiting,) = actor.timers()

    receipt = actor.call("upgrade", NEW, sender=chain.accounts[0], check=True)

    assert receipt.return_value == b"old and then new"
    assert [event.name for event in receipt.events] == ["actor.upgraded"]
    assert receipt.events[0].data == {"actor": actor.address, "code_hash": chain.chain.account(actor.address).code_hash}
    assert actor.timers() == [waiting]
    chain.advance_to(10)
    assert [event.data for event in chain.events("fired")] == [b"new"]
    assert actor.storage == {b"kept": b"by the first"}
    chain.check_invariants()


def test_upgrade_costs_what_a_deployment_costs_for_its_size(chain: LocalChain, actor: ActorHandle) -> None:
    """100,000 cycles, 80 for each byte, and a cell for each byte of code and manifest."""
    used = {}
    for code in (NEW, NEW + b"#" * 100):
        receipt = actor.call("fits_with", code, sender=chain.accounts[0], check=True)
        used[len(code)] = receipt.cycles_used, receipt.cells_used
    (cycles, cells), (more_cycles, more_cells) = used.values()

    assert cycles > 100_000 + 80 * len(NEW)
    assert more_cycles - cycles == 80 * 100
    # The payload of the call is a cell a byte as well.
    assert more_cells - cells == 2 * 100
    assert cells == 2 * len(NEW) + len("fits_with") + len(encode_manifest(["timer.schedule"]) or b"")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (b"import os\n", [1101, "non_deterministic_code", "line 1, column 1: import of os"]),
        (b"x = 1\ny = \n", [2, "invalid_data", "line 2, column 5: not Python 3.11"]),
        (b"\xff", [2, "invalid_data", "source is not UTF-8 at byte 0"]),
        (b"", [2, "invalid_data", "source has 0 bytes, outside 1..=131072"]),
    ],
)
def test_bad_source_is_refused_with_its_line_and_changes_nothing(
    chain: LocalChain, actor: ActorHandle, code: bytes, words: list[object]
) -> None:
    """As a deployment refuses it; an actor can catch that."""
    before = chain.chain.account(actor.address)

    receipt = actor.call("guarded", code, sender=chain.accounts[0], check=True)

    assert encode_canonical(words[:2])[1:] in receipt.return_value
    assert str(words[2]).encode() in receipt.return_value
    assert chain.chain.account(actor.address).code_hash == before.code_hash
    assert actor.call("version", b"", sender=chain.accounts[0], check=True).return_value == b"old"


def test_refusal_that_is_not_caught_keeps_its_code(chain: LocalChain, actor: ActorHandle) -> None:
    """The receipt of the call has E1101."""
    receipt = actor.call("upgrade", b"import time\n", sender=chain.accounts[0])

    assert receipt.error is not None
    assert receipt.error.code == 1101


def test_upgrade_is_taken_back_when_its_execution_reverts(chain: LocalChain, actor: ActorHandle) -> None:
    """The code is state like any other."""
    receipt = actor.call("upgrade_and_fail", NEW, sender=chain.accounts[0])

    assert receipt.status == "reverted"
    assert actor.call("version", b"", sender=chain.accounts[0], check=True).return_value == b"old"
    chain.check_invariants()


def test_upgrade_is_refused_in_a_read_only_frame_and_with_routes(chain: LocalChain, actor: ActorHandle) -> None:
    """There are no gateways, and a view changes nothing."""
    seen = actor.view("upgrade", NEW)
    routed = actor.call("has_routes", NEW, sender=chain.accounts[0])

    assert seen.error is not None
    assert "upgrade_self in a read-only frame" in seen.error.what
    assert routed.error is not None
    assert "routes must be None: gateway routes are not implemented here" in routed.error.what


def test_upgrade_needs_the_entitlement_where_it_is_enforced() -> None:
    """Elsewhere its absence is a warning."""
    with LocalChain(preset="public") as chain:
        one, other = (
            chain.deploy(OLD, sender=chain.accounts[0], value=1_000 * CBY, entitlements=given)
            for given in (["timer.schedule"], ["timer.schedule", "sys.upgrade"])
        )
        refused = one.call("upgrade", NEW, sender=chain.accounts[0])
        assert refused.error is not None
        assert refused.error.code == 1207
        assert "upgrades itself without the entitlement sys.upgrade" in refused.error.what
        assert other.call("upgrade", NEW, sender=chain.accounts[0], check=True).printed == ()
    with LocalChain() as chain:
        actor = chain.deploy(OLD, sender=chain.accounts[0], value=1_000 * CBY)
        with pytest.warns(ChainWarning, match="upgrades itself without the entitlement sys.upgrade"):
            actor.call("upgrade", NEW, sender=chain.accounts[0], check=True)
