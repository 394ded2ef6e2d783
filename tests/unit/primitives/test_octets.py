"""Addresses and hashes: width, text forms, checksums."""

import pytest

from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address, Hash32, system_address

CHECKSUMMED = "0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1"


def test_address_prints_the_checksummed_form_when_parsed_from_lower_case() -> None:
    """The text form is EIP-55, whatever case came in."""
    assert str(Address.parse(CHECKSUMMED.lower())) == CHECKSUMMED


def test_address_is_refused_when_one_letter_breaks_the_checksum() -> None:
    """Mixed case carries a checksum, and a wrong one names the right form."""
    with pytest.raises(Rejection) as refusal:
        Address.parse(CHECKSUMMED.replace("F1", "f1"))
    assert refusal.value.what == f"{CHECKSUMMED.replace('F1', 'f1')} fails its EIP-55 checksum; expected {CHECKSUMMED}"


@pytest.mark.parametrize("text", ["", "0x", "0x12", "g" * 40, "0x" + "0" * 41])
def test_address_is_refused_when_the_text_is_no_twenty_bytes(text: str) -> None:
    """Text of another length or alphabet names the rule."""
    with pytest.raises(Rejection, match="Address must be 40 hexadecimal digits"):
        Address.parse(text)


@pytest.mark.parametrize("size", [0, 19, 21, 32])
def test_address_is_refused_when_bytes_have_another_width(size: int) -> None:
    """Bytes of another width name both widths."""
    with pytest.raises(Rejection, match=f"Address must be 20 bytes, got {size} bytes"):
        Address(bytes(size))


def test_address_equals_its_plain_bytes_when_used_as_a_key() -> None:
    """State keys are plain bytes, so an address must hash like them."""
    assert {bytes(range(20)): 1}[Address(bytes(range(20)))] == 1


def test_system_address_ends_with_its_number_when_printed() -> None:
    """System actors are numbers in an address."""
    assert system_address(9).hex() == "00" * 19 + "09"


def test_hash_prints_with_prefix_when_shown() -> None:
    """Hashes have no checksum."""
    assert str(Hash32(bytes(32))) == "0x" + "00" * 32
