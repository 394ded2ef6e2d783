"""What a timer's record says of its fees, and that an older record is not mistaken for one of today."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trailboss.codec.canonical import pack
from trailboss.model.actors import Account, decode_account, encode_account
from trailboss.model.timers import ASK_AGENT, NO_FEES, RECORD_VERSION, Timer, decode_timer, encode_timer, freeze_fees
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.units import U128_MAX

TIMER = Timer(
    version=RECORD_VERSION,
    actor=b"\x01" * 20,
    height=50,
    timer_id=bytes(32),
    sequence=3,
    handler="handle_timer",
    payload=b"p",
    fee_payer=b"\x02" * 20,
    gas_limit=10,
    access_limit=0,
    expires_at=60,
    schedule_block=7,
)
FEE = st.integers(0, U128_MAX)


@pytest.mark.spec("L-14")
@given(FEE, FEE)
def test_frozen_fees_come_back_when_a_timer_has_them(max_fee: int, priority: int) -> None:
    """Both, whole, and through the record."""
    timer = replace(TIMER, fees=freeze_fees(max_fee, priority))
    assert timer.frozen_fees() == (max_fee, priority)
    assert decode_timer(encode_timer(timer)) == timer


@pytest.mark.spec("L-14", "L-20")
def test_timer_has_no_frozen_fees_when_others_will_give_them() -> None:
    """The default agent of each block, or its actor's own: neither can be mistaken for two fees."""
    assert TIMER.fees == NO_FEES
    for fees in (NO_FEES, ASK_AGENT):
        timer = replace(TIMER, fees=fees)
        assert timer.frozen_fees() is None
        assert decode_timer(encode_timer(timer)) == timer
    assert freeze_fees(0, 0) not in (NO_FEES, ASK_AGENT)


@pytest.mark.parametrize("version", [0, 1, 2, 4])
def test_record_is_refused_when_it_is_of_another_version(version: int) -> None:
    """The record has changed with the timer lane; what it was before, or may be some day, is refused by name."""
    with pytest.raises(Rejection) as caught:
        decode_timer(pack([version, *range(13)]))
    assert caught.value.reason is RejectionReason.INVALID_DATA
    assert caught.value.what == f"timer record has codec version {version}; this chain reads version 3"


def test_account_comes_back_with_its_agent_and_its_recent_fires() -> None:
    """Beside what it had before; a fresh one has neither."""
    account = Account(balance=bytes(15) + b"\x07", nonce=3, agent=b"\x09" * 20, recent_fires=1_000)
    assert decode_account(encode_account(account)) == account
    assert (Account().agent, Account().recent_fires) == (b"", 0)
