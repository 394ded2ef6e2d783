"""What the preset public refuses and the specification allows. Decision: D-114."""

import pytest

from trailboss.testing import ActorHandle, ExtendTimer, LocalChain, Receipt

CBY = 10**9
CEILING = 2_592_000
SOURCE = """
def by(payload):
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 9, b"", payload, 0, 0, 0)


def arm(payload):
    return pvm_host.schedule_timer(pvm_host.block_height() + 9, b"")


def longer(payload):
    pvm_host.extend_timer(payload[8:], pvm_host.block_height() + int.from_bytes(payload[:8], "big"))


def defer(payload):
    for _ in range(payload[0]):
        pvm_host.create_deferred_tx("nothing", b"")


def nothing(payload):
    pass
"""


def started(preset: str) -> tuple[LocalChain, ActorHandle]:
    chain = LocalChain(preset=preset)
    source, sender = SOURCE, chain.accounts[0]
    return chain, chain.deploy(source, sender=sender, value=1_000 * CBY, entitlements=["timer.schedule"])


def refusal(receipt: Receipt) -> str:
    assert receipt.error is not None
    assert (receipt.status, receipt.error.slug) == ("reverted", "invalid_input")
    return receipt.error.what


@pytest.mark.parametrize("preset", ["mainnet", "public"])
def test_sender_pays_for_a_timer_unless_the_chain_is_public(preset: str) -> None:
    """The actor may name itself on both."""
    chain, actor = started(preset)
    sender = chain.accounts[0]
    with chain:
        receipt = actor.call("by", sender.address, sender=sender)
        assert receipt.ok == (preset == "mainnet")
        if not receipt.ok:
            assert refusal(receipt) == (
                f"fee_payer {sender.address} is refused: on this chain it must be the actor {actor.address}, "
                "as on a public one"
            )
        actor.call("by", bytes(actor.address), sender=sender, check=True)
        actor.call("by", b"", sender=sender, check=True)


@pytest.mark.parametrize(("preset", "band"), [("mainnet", 0x0F), ("public", 0xFF)])
def test_band_of_system_actors_is_wider_on_a_public_chain(preset: str, band: int) -> None:
    """Its last address is refused as one of them, the next as a stranger."""
    chain, actor = started(preset)
    with chain:
        for number in (band, band + 1):
            what = refusal(actor.call("by", number.to_bytes(20, "big"), sender=chain.accounts[0]))
            assert (f"system actors 0x01..=0x{band:02X} pay for nobody" in what) == (number == band)


@pytest.mark.parametrize("preset", ["mainnet", "public"])
def test_extension_above_the_ceiling_is_refused_on_a_public_chain(preset: str) -> None:
    """Elsewhere it takes the ceiling, and so does governance's everywhere; the ceiling itself is fine."""
    chain, actor = started(preset)
    sender = chain.accounts[0]
    with chain:
        timer = actor.call("arm", sender=sender, check=True).return_value
        actor.call("longer", CEILING.to_bytes(8, "big") + timer, sender=sender, check=True)
        receipt = actor.call("longer", (CEILING + 1).to_bytes(8, "big") + timer, sender=sender)
        present = chain.height
        if preset == "public":
            assert refusal(receipt) == (
                f"new_expires_at is {present + CEILING + 1}, outside {present + 1}..={present + CEILING}"
            )
        else:
            assert receipt.ok
            assert actor.timers()[0].expires_at == present + CEILING
        chain.system(ExtendTimer(timer, 2**63), check=True)
        assert actor.timers()[0].expires_at == chain.height + CEILING


@pytest.mark.parametrize("preset", ["mainnet", "public"])
def test_64_deferred_transactions_of_an_actor_wait_on_a_public_chain(preset: str) -> None:
    """One more is refused by name; elsewhere as many wait as messages do."""
    chain, actor = started(preset)
    with chain:
        actor.call("defer", bytes([64]), sender=chain.accounts[0], check=True)
        chain.mine(16)
        full = actor.call("defer", bytes([65]), sender=chain.accounts[0])
        assert full.ok == (preset == "mainnet")
        if full.error is not None:
            assert (full.error.slug, full.error.context["limit"]) == ("mailbox_full", 64)
