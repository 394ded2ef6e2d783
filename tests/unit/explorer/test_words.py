"""Words, numbers, queries and colours of the explorer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.explorer.standin import StandIn, look, words
from trailboss.explorer import cells, links
from trailboss.explorer.address_labels import Names, fixed_names
from trailboss.explorer.failures import source_lines, traceback_lines
from trailboss.explorer.links import Query, parse_id
from trailboss.explorer.pages.calendar import scale_of
from trailboss.explorer.text import blocks_words, octet_words, share_words, shortened, visible
from trailboss.primitives.errors import Rejection
from trailboss.primitives.units import U64_MAX
from trailboss.testing import LocalChain
from trailboss.views.accounts import label_of
from trailboss.views.labels import LabelBook


@given(st.text())
def test_text_is_printable_and_short_whatever_it_was(text: str) -> None:
    """Nothing is left that a browser would obey or hide; printable text that is short stays as it is."""
    shown = visible(text, 50)
    assert shown.isprintable()
    assert len(shown) <= 50 * len(repr("\U0010ffff"))
    assert shown == text or not text.isprintable() or len(text) > 50


@given(st.binary(max_size=200))
def test_bytes_are_told_in_printable_words(octets: bytes) -> None:
    """Bytes are text if they are, else digits, and their length if they are cut."""
    shown = octet_words(octets)
    assert shown.isprintable()
    assert ("bytes)" in shown) == (len(octets) > 64)


@given(st.integers(min_value=0, max_value=10**12))
def test_levels_ascend_and_cover_every_count(greatest: int) -> None:
    """No count lies beyond the scale, nothing has a colour but what is counted, and the most is the strongest."""
    scale = scale_of(greatest)
    steps, colours, labels = zip(*scale, strict=True)
    assert list(steps) == sorted(set(steps))
    assert list(colours) == sorted(set(colours))
    assert (steps[0], colours[0], labels[0]) == (0, 0, "0")
    assert len(scale) <= 7
    if greatest:
        assert steps[1] == 1
        assert steps[-1] <= greatest
        assert colours[-1] == 6


def test_sentence_has_links_for_the_ids_in_it(lane: StandIn) -> None:
    """Timers, transactions and addresses lead to their pages, other hashes to the search, and the words stay."""
    timer, address = "ab" * 32, str(lane.scene.chain.accounts[2].address)
    said = f"scheduled by the fire of timer 0x{timer} at 0x{'cd' * 32}, paid by {address}, not 0x{'ef' * 21}"
    found = cells.sentence(said, look(lane).names)
    assert words(found) == (
        "scheduled by the fire of timer 0xabababab…ababab at 0xcdcdcdcd…cdcdcd, paid by account 2, not 0x" + "ef" * 21
    )
    assert [cell.href for cell in found if cell.href] == [
        links.timer(bytes.fromhex(timer)),
        links.search(f"0x{'cd' * 32}"),
        links.account(lane.scene.chain.accounts[2].address),
    ]
    assert not any(cell.copy for cell in found)


def test_money_has_its_base_units_beside() -> None:
    """An amount is exact on hover, however short it is shown."""
    assert cells.money(1_500_000_000)[0].note == "1,500,000,000 base units"
    short = cells.short_money(1_234_567_891)[0]
    assert (short.text, short.note) == ("1.2345 CBY", "1.234567891 CBY, 1,234,567,891 base units")


def test_label_is_never_shown_without_digits_of_the_address(lane: StandIn) -> None:
    """A class may be called what it likes: only accounts of the house have a name alone."""
    names, actor = look(lane).names, lane.scene.actors["ledger"].address
    assert names.get(actor) == f"Ledger…{actor.hex()[-4:]}"
    assert names.get(lane.scene.chain.accounts[0].address) == "account 0"
    assert names.get(bytes(19) + b"\x09") == "basefee actor"
    assert names.get(b"\x77" * 20) == ""
    assert names.named("ACCOUNT 0") == [bytes(lane.scene.chain.accounts[0].address)]
    assert label_of(b"class A" + b"b" * 300 + b": ...") == "A" + "b" * 22 + "…"


@pytest.mark.parametrize(
    ("text", "number", "complains"),
    [("12", 12, False), ("1,200", 1_200, False), ("", 7, False), ("-1", 7, True), ("²", 7, True), ("9" * 30, 7, True)],
)
def test_query_reads_a_number_or_complains(text: str, number: int, complains: bool) -> None:
    """Text that is no whole number gives the default and a complaint."""
    query = Query.of("/", {"n": text})
    assert query.number("n", 7) == number
    assert bool(query.complaints) == complains


def test_query_keeps_what_it_has_when_one_thing_changes() -> None:
    """The address of another page of a list keeps the filters, and says nothing that goes without saying."""
    query = Query.of("/explorer/timers", {"state": "due", "page": "3", "actor": ""})
    assert query.but(page=4) == "/explorer/timers?state=due&page=4"
    assert query.but(page="") == "/explorer/timers?state=due"
    assert len(Query.of("/", {f"n{number}": "x" for number in range(100)}).parameters) <= 16


@pytest.mark.parametrize("text", ["", "0x", "ab", "0x" + "ab" * 33, "zz" * 32, "0x" + " ab" * 32, "ab" * 31 + "a"])
def test_id_is_refused_when_it_is_none(text: str) -> None:
    """An id in a path has the digits of an id."""
    with pytest.raises(Rejection, match="hexadecimal digits"):
        parse_id(text, (32,))
    assert parse_id("0X" + "AB" * 32, (32, 20)) == b"\xab" * 32


def test_traceback_names_places_whatever_the_source_says() -> None:
    """A line of source may hold what looks like another line of a traceback."""
    assert traceback_lines(["line 3, in a: x = 'line 9, in b: c'", "nonsense", "line x, in a: b"])[0].source == (
        "x = 'line 9, in b: c'"
    )
    assert source_lines(b"a\tb\r\n\xff\x1b\x0cc") == ["a   b", "\ufffd\\x1b\\x0cc"]


def test_words_for_places_in_time() -> None:
    """Heights and shares as people say them."""
    assert (words(cells.height(U64_MAX)), words(cells.height(7))) == ("never", "7")
    assert (blocks_words(2), blocks_words(-1)) == ("in 2 blocks", "1 block ago")
    assert (share_words(1, 0), share_words(999, 1_000)) == ("·", "99 %")
    assert shortened("0x1234") == "0x1234"


def test_owners_label_goes_before_other_names() -> None:
    """In links, in the search, and of accounts that have a fixed name."""
    with LocalChain() as local:
        actor = local.deploy("class Clock:\n    def tick(self): ...\n", sender=local.accounts[0])
        account = local.accounts[3].address
        chosen = LabelBook({bytes(actor.address): "alarm", bytes(account): "Carol", b"\x07" * 32: "beat"})
        names = Names(local.chain, fixed_names(local.chain), {}, chosen)
        assert [names.get(actor.address), names.short(actor.address), names.get(account)] == ["alarm", "alarm", "Carol"]
        assert [names.named("ALARM"), names.named("carol"), names.named("beat")] == [[actor.address], [account], []]
        assert account in names.accounts()
        assert Names(local.chain, {}, {}).get(actor.address) == f"Clock…{actor.address.hex()[-4:]}"
