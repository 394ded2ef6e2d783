"""Actors that schedule without the entitlement of it: refused where that is enforced, else warned. Decision: D-91."""

import warnings

import pytest

from trailboss.codec.canonical import encode_canonical
from trailboss.mechanisms.registry import MECHANISMS
from trailboss.model.actors import declares, encode_manifest
from trailboss.model.transactions import DeployActor, UpgradeActor
from trailboss.params.loader import SUBJECTS
from trailboss.testing import ActorHandle, ChainWarning, LocalChain

CBY = 10**9
CALLS = {
    "fifo": ["pvm_host.schedule_timer(NOW + 9, b'')", "pvm_host.schedule_timer_ex(NOW + 9, b'', b'', 0, 0, 0)"],
    "lane": ["pvm_host.schedule_timer(NOW + 9, b'')"],
    "auction": ["pvm_host.set_timeout(NOW + 9, b'', ME, None)"],
    "globalbox": [
        "pvm_host.set_timeout(ME, NOW + 9, b'', None)",
        "pvm_host.set_state_watch(ME, [ME + b'k'], b'', None)",
    ],
}
CASES = [(mechanism, call) for mechanism in sorted(MECHANISMS) for call in CALLS[mechanism]]
WORDS = (
    "it schedules a timer without the entitlement timer.schedule, which a public chain refuses; deploy it with that "
    "entitlement"
)


def source(call: str) -> str:
    return f"""
def go(payload):
    NOW, ME = pvm_host.block_height(), pvm_host.self_address()
    {call}


def tries(payload):
    try:
        go(payload)
    except pvm_host.HostError as error:
        return [error.code, error.name]
"""


def deploy(chain: LocalChain, call: str, *entitlements: str) -> ActorHandle:
    return chain.deploy(source(call), sender=chain.accounts[0], value=1_000 * CBY, entitlements=entitlements)


@pytest.mark.parametrize(("mechanism", "call"), CASES)
def test_scheduling_is_refused_on_a_public_chain_without_the_entitlement(mechanism: str, call: str) -> None:
    """With the public host's code, by name, and with what to do; with the entitlement it goes well."""
    with LocalChain(mechanism=mechanism, preset="public") as chain:
        actor = deploy(chain, call, "econ.transfer")
        receipt = actor.call("go", sender=chain.accounts[0])
        assert receipt.error is not None
        assert (receipt.error.code, receipt.error.slug) == (1207, "missing_entitlement")
        assert receipt.error.what == f"{actor.address} schedules a timer without the entitlement timer.schedule"
        assert "--entitlement" in receipt.error.fix
        told = actor.call("tries", sender=chain.accounts[0], check=True)
        assert told.return_value == encode_canonical([7, "missing_entitlement"])
        assert actor.timers() == []
        entitled = deploy(chain, call, "timer.schedule", "econ.transfer")
        assert entitled.call("go", sender=chain.accounts[0], check=True).printed == ()
        assert len(entitled.timers()) == 1


@pytest.mark.parametrize(("mechanism", "call"), CASES)
def test_first_timer_is_warned_of_elsewhere(mechanism: str, call: str) -> None:
    """Once for an actor, beside the receipt, and to the test as a Python warning."""
    with LocalChain(mechanism=mechanism) as chain:
        actor = deploy(chain, call)
        with pytest.warns(ChainWarning, match=WORDS):
            receipt = actor.call("go", sender=chain.accounts[0], check=True)
        [line] = receipt.printed
        assert (line.actor, line.handler, line.text, line.is_warning) == (actor.address, "go", WORDS, True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert actor.call("go", sender=chain.accounts[0], check=True).printed == ()
            deploy(chain, call, "timer.schedule").call("go", sender=chain.accounts[0], check=True)


def test_public_preset_has_mainnets_numbers_but_for_what_it_enforces() -> None:
    """So what runs in its tests runs the same there."""
    with LocalChain(preset="public") as public, LocalChain() as mainnet:
        differing = []
        for subject in SUBJECTS:
            ours, theirs = (getattr(chain.chain.params, subject) for chain in (public, mainnet))
            differing += [(subject, name) for name in ours.__slots__ if getattr(ours, name) != getattr(theirs, name)]
        assert sorted(differing) == [
            ("governance", "reserved_band_max"),
            ("limits", "deferred_pending_max"),
            ("limits", "messages_delivered_max"),
            ("timers", "extension_must_fit"),
            ("timers", "payer_is_actor"),
            ("timers", "schedule_needs_entitlement"),
        ]


def test_manifest_of_an_upgrade_takes_the_place_of_the_first() -> None:
    """An upgrade without one leaves it."""
    with LocalChain(preset="public") as chain:
        actor = deploy(chain, CALLS["fifo"][0], "timer.schedule")
        code = source(CALLS["fifo"][0]).encode() + b"\n"
        chain.system(UpgradeActor(actor.address, code), check=True)
        actor.call("go", sender=chain.accounts[0], check=True)
        chain.system(UpgradeActor(actor.address, code, encode_manifest(["econ.transfer"])), check=True)
        assert actor.call("go", sender=chain.accounts[0]).error is not None
        chain.check_invariants()


def test_manifest_costs_a_cell_a_byte_and_code_without_one_what_it_cost() -> None:
    """Its bytes are kept in the state."""
    with LocalChain() as chain:
        code = b"def go(payload):\n    pass\n"
        cells = [
            chain.send(DeployActor(code, salt, manifest=manifest), sender=chain.accounts[0], check=True).cells_used
            for salt, manifest in ((b"1", None), (b"2", b"x" * 100))
        ]
        assert cells == [len(code), len(code) + 100]


MANIFESTS = [
    (encode_manifest(["timer.schedule"]), True),
    (encode_canonical({"entitlements": [{"id": "timer.schedule", "params": {}}]}), True),
    (encode_canonical({"timer.schedule": None}), True),
    (encode_canonical("timer.schedule"), True),
    (encode_canonical(["timer.schedules", b"timer.schedule", 5]), False),
    (b"timer.schedule", False),
    (b"", False),
]


@pytest.mark.parametrize(("manifest", "is_declared"), MANIFESTS)
def test_entitlement_is_declared_by_its_id_wherever_that_stands(manifest: bytes, is_declared: bool) -> None:
    """The public structure is not published."""
    assert declares(manifest, "timer.schedule") is is_declared
    assert encode_manifest([]) is None
