"""A payload of 1 MiB fits a transaction of the default chain, built by the actor or brought by the transaction."""

import pytest

from tests.integration.helpers import INDEX_CELLS
from trailboss.fees import BasefeeRule, next_basefee
from trailboss.params import load_params
from trailboss.primitives.units import Price
from trailboss.testing import LocalChain

PAYLOAD_MAX = 1_048_576
SCHEDULES = """
def build(payload):
    return pvm_host.schedule_timer(pvm_host.block_height() + 2, bytes(int(payload)))


def bring(payload):
    return pvm_host.schedule_timer(pvm_host.block_height() + 2, payload)


def handle_timer(payload):
    pvm_host.set_state(b"size", b"%d" % len(payload))
"""


@pytest.mark.spec("F-02", "F-60")
@pytest.mark.parametrize(
    ("handler", "payload", "carried"),
    [("build", b"%d" % PAYLOAD_MAX, 7), ("bring", bytes(PAYLOAD_MAX), PAYLOAD_MAX)],
)
def test_longest_payload_is_scheduled_and_delivered_when_the_preset_is_the_default(
    chain: LocalChain, handler: str, payload: bytes, carried: int
) -> None:
    """The actor that builds it uses a mebibyte of cells and a bit, the transaction that brings it twice that."""
    actor = chain.deploy(SCHEDULES, sender=chain.accounts[0], value=100 * 10**9)
    most = load_params("mainnet").limits.block_cells_max
    receipt = actor.call(handler, payload, sender=chain.accounts[0], cells_limit=most)
    assert receipt.ok, receipt.error
    assert receipt.cells_used == len(handler) + carried + PAYLOAD_MAX + INDEX_CELLS
    chain.mine(2)
    assert actor.storage[b"size"] == b"%d" % PAYLOAD_MAX


@pytest.mark.spec("E-03")
def test_basefee_of_cells_rises_by_an_eighth_when_a_block_uses_more_than_twice_the_target() -> None:
    """A full block of 2,200,000 cells moves the fee as one of 1,000,000 does, and by no more."""
    params = load_params("mainnet")
    fees, most = params.fees, params.limits.block_cells_max
    market = BasefeeRule(fees.cells_target, fees.alpha, fees.max_change_denominator, fees.min_basefee, fees.max_basefee)
    assert most > 2 * fees.cells_target
    assert next_basefee(Price(80_000), most, market) == next_basefee(Price(80_000), 1_000_000, market) == 90_000
