"""State entries in words: every kind of key, and of two records only what differs."""

import msgspec
import pytest

from trailboss.chain.key_names import key_words, octet_words, value_words
from trailboss.crypto.digest import keccak256
from trailboss.governance.markets import GLOBALBOX_KEY
from trailboss.governance.parameters import Change, encode_change
from trailboss.governance.rules import BASEFEES_KEY, DEPLOYERS_KEY, ECONOMY_KEY, SCHEDULER_KEY
from trailboss.model.actors import Account, encode_account
from trailboss.model.configs import (
    Basefees,
    Economy,
    LaneMultipliers,
    Message,
    SchedulerTotals,
    amount_octets,
    encode_record,
)
from trailboss.model.globalbox import EndedTimer, GlobalboxState, MailboxEntry, TimerStatus, encode_entry
from trailboss.model.terms import AuctionTerms, Trigger
from trailboss.model.timers import RECORD_VERSION, Timer, encode_timer
from trailboss.primitives.octets import Address, Hash32, system_address
from trailboss.primitives.units import Cells, Cycles, Height
from trailboss.state import keys
from trailboss.state.slots import encode_slot

ONE, TWO = Address(b"\x01" * 20), Address(b"\x02" * 20)
ACTOR = system_address(9)
TIMER = Timer(
    RECORD_VERSION, ONE, Height(7), b"\x05" * 32, 3, "tick", b"hello", TWO, Cycles(9), 0, Height(99), Height(2)
)


def multipliers(name: bytes, user: int) -> tuple[bytes, bytes]:
    return keys.storage_key(ACTOR, name), encode_slot(name, encode_record(LaneMultipliers(user, 1, 2, 3)))


def slot(actor: bytes, name: bytes, value: bytes) -> tuple[bytes, bytes]:
    return keys.storage_key(actor, name), encode_slot(name, value)


CODE = b"def go(payload):\n    pass\n"
LIMIT = b"system:limits:block_cells_max"
QUOTA = b"system:globalbox:max_fires_per_block"
PAID = (amount_octets(50), amount_octets(5), amount_octets(3), Cells(40))
ENDED = (b"\x05" * 32, bytes(ONE), bytes(TWO), Trigger.HEIGHT)
CASES = {
    "account": (
        (keys.account_key(ONE), encode_account(Account(balance=amount_octets(2**80), nonce=1))),
        (keys.account_key(ONE), encode_account(Account(balance=amount_octets(5), nonce=1, owner=TWO))),
        f"account {ONE}",
        (f"balance {2**80}, owner 0x", f"balance 5, owner {TWO}"),
    ),
    "slot": (
        slot(ONE, b"name", b"text"),
        slot(ONE, b"name", b"\x00\xff"),
        f"slot 'name' of actor {ONE}",
        ("'text'", "0x00ff"),
    ),
    "governed record": (
        multipliers(b"system:lane_fee_multipliers", 10),
        multipliers(b"system:lane_fee_multipliers", 20),
        f"slot 'system:lane_fee_multipliers' of actor {ACTOR}",
        ("user 10", "user 20"),
    ),
    "governed number": (
        slot(ACTOR, LIMIT, (500).to_bytes(8, "big")),
        slot(ACTOR, LIMIT, (501).to_bytes(8, "big")),
        f"slot 'system:limits:block_cells_max' of actor {ACTOR}",
        ("500", "501"),
    ),
    "number that only looks governed": (
        slot(ONE, LIMIT, b"12345678"),
        slot(ONE, LIMIT, b""),
        f"slot 'system:limits:block_cells_max' of actor {ONE}",
        ("'12345678'", "0x"),
    ),
    "timer": (
        (keys.timer_key(7, TIMER.timer_id), encode_timer(TIMER)),
        (
            keys.timer_key(7, TIMER.timer_id),
            encode_timer(msgspec.structs.replace(TIMER, fee_payer=ONE, payload=b"x" * 50, handler="tock")),
        ),
        f"timer {Hash32(TIMER.timer_id)} due at height 7",
        (
            f"handler 'tick', payload 'hello', fee_payer {TWO}",
            f"handler 'tock', payload '{'x' * 40}'… (50 bytes), fee_payer {ONE}",
        ),
    ),
    "message": (
        (keys.mailbox_key(3), encode_record(Message(ONE, TWO, b"a", 5))),
        (keys.mailbox_key(3), encode_record(Message(TWO, TWO, b"a", 5))),
        "message 3 of the mailbox",
        (f"sender {ONE}", f"sender {TWO}"),
    ),
    "timer with terms": (
        (keys.timer_key(7, TIMER.timer_id), encode_timer(msgspec.structs.replace(TIMER, terms=AuctionTerms(ONE, 3)))),
        (keys.timer_key(7, TIMER.timer_id), encode_timer(msgspec.structs.replace(TIMER, terms=AuctionTerms(ONE, 4)))),
        f"timer {Hash32(TIMER.timer_id)} due at height 7",
        (
            f"terms (agent {ONE}, asked_at 3, is_late False)",
            f"terms (agent {ONE}, asked_at 4, is_late False)",
        ),
    ),
    "delivery": (
        (keys.fire_key(5), encode_entry(MailboxEntry(b"\x07" * 32, 5, TIMER, 0, 7, (), 7, *PAID))),
        (
            keys.fire_key(5),
            encode_entry(MailboxEntry(b"\x07" * 32, 5, TIMER, 0, 7, (), 7, amount_octets(60), *PAID[1:])),
        ),
        "delivery 5 in the mailbox of Globalbox",
        ("reserved 50", "reserved 60"),
    ),
    "ended timer": (
        (keys.ended_key(6), encode_record(EndedTimer(*ENDED, TimerStatus.COMPLETED, 1, 7, 7))),
        (keys.ended_key(6), encode_record(EndedTimer(*ENDED, TimerStatus.CANCELLED, 1, 7, 7))),
        "ended timer 6",
        ("status 'COMPLETED'", "status 'CANCELLED'"),
    ),
    "globalbox": (
        (GLOBALBOX_KEY, encode_record(GlobalboxState(queued=1))),
        (GLOBALBOX_KEY, encode_record(GlobalboxState(queued=2))),
        "running numbers of Globalbox",
        ("queued 1", "queued 2"),
    ),
    "number that changes with an epoch": (
        slot(ACTOR, QUOTA, encode_change(Change(1, 2, 300))),
        slot(ACTOR, QUOTA, encode_change(Change(1, 3, 300))),
        f"slot 'system:globalbox:max_fires_per_block' of actor {ACTOR}",
        ("after 2", "after 3"),
    ),
    "basefees": (
        (BASEFEES_KEY, encode_record(Basefees(amount_octets(1), amount_octets(2)))),
        (BASEFEES_KEY, encode_record(Basefees(amount_octets(1), amount_octets(3)))),
        "basefees of the next block",
        ("cell 2", "cell 3"),
    ),
    "economy": (
        (ECONOMY_KEY, encode_record(Economy(amount_octets(9), amount_octets(1)))),
        (ECONOMY_KEY, encode_record(Economy(amount_octets(8), amount_octets(1)))),
        "supply and burn",
        ("supply 9", "supply 8"),
    ),
    "totals": (
        (SCHEDULER_KEY, encode_record(SchedulerTotals(5, 1))),
        (SCHEDULER_KEY, encode_record(SchedulerTotals(5, 2))),
        "timer totals",
        ("fired 1", "fired 2"),
    ),
    "deployers": (
        (DEPLOYERS_KEY, ONE + TWO),
        (DEPLOYERS_KEY, bytes(ONE)),
        "system deployers",
        (f"{ONE} {TWO}", str(ONE)),
    ),
    "unknown": (
        (keys.config_key(b"other"), b"\x01"),
        (keys.config_key(b"other"), b"\x02"),
        f"configuration 0x{keys.config_key(b'other')[1:].hex()}",
        ("0x01", "0x02"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_entry_is_told_by_what_differs_when_both_have_it(case: str) -> None:
    """Addresses, amounts, text and other bytes each in their own way."""
    (key, left), (other, right), name, words = CASES[case]
    assert key == other
    assert key_words(key, left) == key_words(key, right) == name
    assert value_words(key, left, right) == words


@pytest.mark.parametrize("case", CASES)
def test_entry_is_told_whole_when_only_one_has_it(case: str) -> None:
    """The other side is absent; all fields of the one are there."""
    (key, left), _, _, (words, _) = CASES[case]
    whole, absent = value_words(key, left, None)
    assert absent == value_words(key, None, left)[0] == "absent"
    assert words.split(", ")[0] in whole


def test_code_is_told_by_its_hash() -> None:
    """The key holds a hash of the hash; the source tells which."""
    key = keys.code_key(keccak256(CODE))
    assert key_words(key, CODE) == f"code 0x{keccak256(CODE).hex()}"
    assert value_words(key, CODE, None) == ("0x" + CODE.hex(), "absent")


@pytest.mark.parametrize(
    ("octets", "words"),
    [(b"", "0x"), (b"it's", '"it\'s"'), ("Grüße".encode(), "'Grüße'"), (b"\xc3", "0xc3"), (b"a\nb", "0x610a62")],
)
def test_bytes_are_text_only_when_they_can_be_printed(octets: bytes, words: str) -> None:
    """Anything else is hexadecimal."""
    assert octet_words(octets) == words
