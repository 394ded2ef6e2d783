"""What people type is read exactly, or refused with what to type instead."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailboss.cli import values
from trailboss.cli.errors import Mistake
from trailboss.codec.canonical import decode_canonical
from trailboss.primitives.units import format_cby

CBY = 10**9


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("0", 0),
        ("1", 1),
        ("1_000_000", 1_000_000),
        ("1cby", CBY),
        ("1.5cby", CBY + CBY // 2),
        ("1.5 CBY", CBY + CBY // 2),
        ("1_000.000000001cby", 1_000 * CBY + 1),
        ("0.1cby", CBY // 10),
        (f"{2**70}cby", 2**70 * CBY),
    ],
)
def test_amount_is_exact_when_it_has_a_form_that_is_accepted(text: str, units: int) -> None:
    """Digits alone are base units; the unit cby makes them CBY, with up to nine decimals."""
    assert values.parse_amount(text) == units


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e9", "cby", ".5cby", "1.cby", "1,5cby", "0x10", "ten", "٣", "1 2"])
def test_amount_is_refused_when_it_has_another_form(text: str) -> None:
    """The message repeats what was typed and says both forms."""
    with pytest.raises(Mistake) as caught:
        values.parse_amount(text)
    assert str(caught.value) == (
        f"{text!r} is not an amount (write base units as a whole number, as 1500000000, or CBY with the unit, "
        "as 1.5cby)"
    )


def test_amount_is_refused_when_it_is_finer_than_a_base_unit() -> None:
    """Nothing is rounded."""
    with pytest.raises(Mistake, match="has 10 decimals"):
        values.parse_amount("0.0000000001cby")


@given(st.integers(min_value=0, max_value=2**130))
def test_amount_comes_back_when_it_is_formatted_and_read(amount: int) -> None:
    """No unit is lost on the way to people and back."""
    shown = format_cby(amount)
    assert values.parse_amount(shown.replace(",", "") + "cby") == amount


def test_payload_is_text_hexadecimal_or_a_file(tmp_path: Path) -> None:
    """The beginning of what is typed decides."""
    file = tmp_path / "payload"
    file.write_bytes(b"\x00\xff0x")
    assert values.parse_payload("") == b""
    assert values.parse_payload("héllo") == "héllo".encode()
    assert values.parse_payload("0xfF00") == b"\xff\x00"
    assert values.parse_payload("0x") == b""
    assert values.parse_payload(f"@{file}") == b"\x00\xff0x"


def test_payload_is_cbor_when_it_is_json_and_cbor_is_asked_for() -> None:
    """SDK handlers decode CBOR; JSON is what can be typed."""
    encoded = values.parse_payload('{"blocks": 5, "who": ["a", null, true]}', as_cbor=True)
    assert decode_canonical(encoded) == {"blocks": 5, "who": ["a", None, True]}


@pytest.mark.parametrize(
    ("text", "as_cbor", "what"),
    [
        ("0xf", False, "payload '0xf' is not hexadecimal"),
        ("0xzz", False, "payload '0xzz' is not hexadecimal"),
        ("@nowhere", False, "cannot read the payload nowhere: No such file or directory"),
        ("{", True, "the payload is no JSON that CBOR can carry"),
        ("[" * 100_000, True, "the payload is no JSON that CBOR can carry"),
    ],
)
def test_payload_is_refused_when_it_cannot_be_read(text: str, as_cbor: bool, what: str) -> None:
    """Digits that are none, a file that is not there, JSON that is none."""
    with pytest.raises(Mistake) as caught:
        values.parse_payload(text, as_cbor=as_cbor)
    assert caught.value.what.startswith(what)


def test_private_key_is_never_repeated_when_it_is_wrong() -> None:
    """A message may end up in a log."""
    with pytest.raises(Mistake) as caught:
        values.parse_private_key("5ec4e7" * 10)
    assert "5ec4e7" not in str(caught.value)


def test_private_key_is_read_with_and_without_its_prefix() -> None:
    """Both forms are in use."""
    assert values.parse_private_key("0x" + "01" * 32) == values.parse_private_key(" " + "01" * 32) == b"\x01" * 32


def test_overrides_are_paths_and_integers() -> None:
    """Whether a path exists is the loader's to say."""
    assert values.parse_overrides(["a.b=1_000", "c.d=-2"]) == {"a.b": 1_000, "c.d": -2}


@pytest.mark.parametrize("item", ["a.b", "a.b=", "=1", "a.b=1.5", "a.b=x", ""])
def test_override_is_refused_when_it_is_not_path_and_integer(item: str) -> None:
    """The message repeats it."""
    with pytest.raises(Mistake) as caught:
        values.parse_overrides([item])
    assert caught.value.what == f"--param {item!r} is not path=integer"


def test_override_is_refused_when_it_is_given_twice() -> None:
    """Which of the two was meant, nobody knows."""
    with pytest.raises(Mistake, match=r"--param names a\.b twice"):
        values.parse_overrides(["a.b=1", "a.b=1"])


def test_wrong_value_is_cut_when_it_is_long() -> None:
    """A message stays readable."""
    with pytest.raises(Mistake) as caught:
        values.parse_amount("x" * 10_000)
    assert len(caught.value.what) < 100


@pytest.mark.parametrize(
    ("text", "unit", "parts"),
    [("7", 1, 7), ("1_000", 10_000, 1_000), ("1.5", 10_000, 15_000), ("0.0001", 10_000, 1), ("2.0", 10**9, 2 * 10**9)],
)
def test_number_is_exact_when_it_is_whole_or_a_decimal_of_a_unit(text: str, unit: int, parts: int) -> None:
    """Digits alone are parts; a point makes them multiples of the unit."""
    assert values.parse_number("weight", text, unit) == parts


@pytest.mark.parametrize(
    ("text", "unit", "what"),
    [
        ("-1", 1, "is not a number"),
        ("1.5", 1, "is not a number"),
        ("1.", 10, "is not a number"),
        ("0.01", 10, "fine"),
        ("9" * 5_000, 1, "is not a number"),
    ],
)
def test_number_is_refused_when_it_has_another_form(text: str, unit: int, what: str) -> None:
    """Nothing is rounded."""
    with pytest.raises(Mistake, match=what):
        values.parse_number("weight", text, unit)


@pytest.mark.parametrize(
    ("text", "whole", "numerator", "denominator"),
    [("0", 0, 0, 1), ("250", 250, 0, 1), ("1_000", 1_000, 0, 1), ("2.5", 2, 1, 2), ("0.001", 0, 1, 1_000)],
)
def test_bid_is_exact_to_its_last_bit(text: str, whole: int, numerator: int, denominator: int) -> None:
    """Base units per cycle, in fixed point of 96 bits, rounded down."""
    assert values.parse_bid(text) == ((whole * denominator + numerator) << 96) // denominator


@pytest.mark.parametrize("text", ["-1", "-0.5", "4294967296"])
def test_bid_is_refused_with_the_rule_when_it_is_out_of_range(text: str) -> None:
    """It is a number, so the bounds are what is missing."""
    with pytest.raises(Mistake, match=r"is out of range \(bid from 0 to below 2\*\*32 base units per cycle\)"):
        values.parse_bid(text)


@pytest.mark.parametrize("text", ["", "-", "--1", "1e3", "0x10", "1.", ".5", "two", "9" * 100])
def test_bid_is_refused_when_it_is_no_number_that_fits(text: str) -> None:
    """It says what can be typed instead."""
    with pytest.raises(Mistake, match="bid"):
        values.parse_bid(text)
