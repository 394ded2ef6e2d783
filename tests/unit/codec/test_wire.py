"""The wire codec: pinned bytes, and a refusal with offset and rule for everything else."""

from typing import get_args

import pytest
from msgspec.structs import replace

from trailboss.codec.instructions import (
    CancelTimer,
    ClearMocks,
    DeployActor,
    ExecuteActor,
    ExtendTimer,
    Instruction,
    MoveTimer,
    OwnerDraw,
    ReplyJob,
    RouteInstall,
    SetBalance,
    SetCode,
    SetGovParam,
    SetMock,
    SetRunner,
    SetStorage,
    Transaction,
    Transfer,
    UpdateTimerConfig,
)
from trailboss.codec.layout import ACTOR, DEVELOPMENT_NAMES, SYSTEM, SYSTEM_NAMES, UNNUMBERED_SYSTEM_NAMES
from trailboss.codec.wire import (
    decode_submission,
    decode_transaction,
    encode_submission,
    encode_transaction,
    signing_hash,
)
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.keccak import keccak256
from trailboss.primitives.octets import Address, Hash32

SENDER = Address.parse("0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1")
RECEIVER = Address.parse("0x0000000000000000000000000000000000001111")
PLAIN = Transaction(
    chain_id=42,
    nonce=0,
    instruction=Transfer(RECEIVER, 5),
    cycles_limit=50_000,
    cells_limit=50_000,
    access_limit=512,
    max_fee_per_cycle=1,
    max_fee_per_cell=1,
    max_fee_per_access=1,
    sender=SENDER,
    signature=b"\x11" * 32 + b"\x22" * 32 + b"\x01",
)
PLAIN_BYTES = bytes.fromhex(
    "02 2a 00 00 01 0000000000000000000000000000000000001111 0000000000000005 d08603 d08603 8004 01 01 01 00 00 00"
    "1a642f0e3c3af545e7acbd38b07251b3990914f1 00 00 00 00 00 00" + "11" * 32 + "22" * 32 + "01 00"
)
FULL = replace(
    PLAIN,
    instruction=DeployActor(
        code=b"\x01\x02\x03",
        salt=b"\x09",
        init_handler="hé",
        init_payload=b"",
        manifest=b"\x01",
        shard=0xFFFF,
        routes=RouteInstall(b"\x07", b"\x04"),
        owner_draw=5,
    ),
    access_list=((RECEIVER, (Hash32(b"\x01" * 32),)), (SENDER, ())),
    metadata=b"\x01\x02\x03",
    origin_tx_hash=Hash32(b"\x05" * 32),
    origin_remaining_cycles=300,
    origin_remaining_cells=0,
    origin_remaining_access=2**64 - 1,
    additional_signers=((RECEIVER, b"\x33" * 65),),
)


def with_instruction(fields: str) -> bytes:
    """Return the plain transaction's bytes with another instruction in them."""
    return PLAIN_BYTES[:3] + bytes.fromhex(fields) + PLAIN_BYTES[33:]


def refusal_of(encoded: bytes) -> Rejection:
    """Return the refusal of wire bytes."""
    with pytest.raises(Rejection) as caught:
        decode_transaction(encoded)
    return caught.value


def check_malformed(encoded: bytes, offset: int, rule: str) -> None:
    """Expect bytes to be refused at an offset for a rule."""
    refusal = refusal_of(encoded)
    assert refusal.reason is RejectionReason.INVALID_DATA
    assert refusal.what == f"malformed bytes at offset {offset}: {rule}"
    assert refusal.context == {"offset": offset}


def test_encode_gives_the_pinned_bytes_of_a_transfer() -> None:
    """Each field stands where the public codec puts it."""
    assert encode_transaction(PLAIN) == PLAIN_BYTES
    assert decode_transaction(PLAIN_BYTES) == PLAIN


def test_encode_gives_the_pinned_bytes_when_every_option_is_present() -> None:
    """Options, lists and all fields of a deployment, in the public codec's order."""
    deploy = "01 00 03 010203 01 09 01 03 68c3a9 01 00 01 01 01 01 ffff 01 01 07 01 01 04 02 0000000000000005"
    lists = "01 02" + RECEIVER.hex() + "01" + "01" * 32 + SENDER.hex() + "00"
    origin = "03 010203 01" + "05" * 32 + "01 000000000000012c 01 0000000000000000 01 ffffffffffffffff"
    expected = (
        with_instruction(deploy)[:-72]
        + bytes.fromhex(lists + origin)
        + PLAIN_BYTES[-66:-1]
        + b"\x01"
        + RECEIVER
        + b"\x33" * 65
    )
    assert encode_transaction(FULL) == expected
    assert decode_transaction(expected) == FULL


def test_decoded_fields_are_addresses_and_hashes() -> None:
    """Decoding gives the records' own types, not plain bytes."""
    decoded = decode_transaction(encode_transaction(FULL))
    assert type(decoded.sender) is Address
    assert type(decoded.origin_tx_hash) is Hash32
    assert decoded.access_list is not None
    assert type(decoded.access_list[0][0]) is Address
    assert type(decoded.access_list[0][1][0]) is Hash32


@pytest.mark.parametrize(
    ("instruction", "fields"),
    [
        (CancelTimer(b"\x07" * 32), "00 30 20" + "07" * 32),
        (UpdateTimerConfig(1, 2, 3, 4, 5), "00 31" + "00000000000000".join(["", "01", "02", "03 00000004", "05"])),
        (ExtendTimer(b"\x07", 258), "00 32 01 07 0000000000000102"),
        (SetGovParam(b"ab", b""), "00 72 02 6162 00"),
        (SetBalance(RECEIVER, 258), "00 f0" + RECEIVER.hex() + "00" * 14 + "0102"),
        (MoveTimer(b"\x07", 258), "00 f1 01 07 0000000000000102"),
        (SetRunner(258), "00 f8 00000102"),
        (ReplyJob(258, b"\x07"), "00 f9 0000000000000102 01 07"),
        (SetStorage(RECEIVER, b"k", None), "00 f2" + RECEIVER.hex() + "01 6b 00"),
        (SetCode(RECEIVER, b"x"), "00 f3" + RECEIVER.hex() + "01 78 00"),
        (SetMock(RECEIVER, "p", None, b"5", times=2), "00 f4" + RECEIVER.hex() + "01 70 00 01 35 00 01 00000002"),
        (SetMock(RECEIVER, "p", b"", b"", "no"), "00 f4" + RECEIVER.hex() + "01 70 01 00 00 01 02 6e6f 00"),
        (ClearMocks(), "00 f5"),
        (ExecuteActor(RECEIVER, "tick", b"\x01"), "01 01" + RECEIVER.hex() + "04 7469636b 01 01"),
        (DeployActor(b"x", b"", owner_draw=OwnerDraw.OFF), "01 00 01 78 00 00 00 00 00 00 01"),
    ],
)
def test_instruction_has_its_pinned_bytes(instruction: Instruction, fields: str) -> None:
    """Opcodes and widths of the governance and actor instructions."""
    encoded = with_instruction(fields)
    assert encode_transaction(replace(PLAIN, instruction=instruction)) == encoded
    assert decode_transaction(encoded).instruction == instruction


def test_every_instruction_record_has_its_form_under_its_public_name_and_number() -> None:
    """The table covers exactly the records, each under the public codec's number for its name, or a free one."""
    forms = {**{form.record: None for form in SYSTEM.values()}, **{form.record: None for form in ACTOR.values()}}
    assert sorted(forms, key=str) == sorted(get_args(Instruction), key=str)
    for opcode, form in SYSTEM.items():
        assert form.record.__name__ == (SYSTEM_NAMES | DEVELOPMENT_NAMES)[opcode]
    assert [form.record.__name__ for form in ACTOR.values()] == ["DeployActor", "ExecuteActor"]
    assert len(SYSTEM_NAMES) == len(set(SYSTEM_NAMES.values())) == 203
    assert not set(UNNUMBERED_SYSTEM_NAMES) & set(SYSTEM_NAMES.values())
    assert not DEVELOPMENT_NAMES.keys() & SYSTEM_NAMES.keys()
    assert not set(DEVELOPMENT_NAMES.values()) & {*SYSTEM_NAMES.values(), *UNNUMBERED_SYSTEM_NAMES}


def test_signing_preimage_has_all_signatures_zero() -> None:
    """Signers sign the wire bytes with 65 zero bytes in place of each signature; the hash is their Keccak-256."""
    signature, second = FULL.signature, FULL.additional_signers[0][1]
    expected = encode_transaction(FULL).replace(signature, bytes(65)).replace(second, bytes(65))
    assert signing_hash(FULL) == keccak256(expected)


def test_signing_preimage_of_one_signer_has_its_signature_zero_too() -> None:
    """It is made of the wire bytes that the transaction keeps; a copy with other fields keeps none of them."""
    signed = replace(PLAIN, signature=FULL.signature)
    expected = encode_transaction(signed).replace(FULL.signature, bytes(65))
    assert signing_hash(signed) == keccak256(expected)
    assert signing_hash(replace(signed, nonce=signed.nonce + 1)) != signing_hash(signed)


@pytest.mark.parametrize("transaction", [PLAIN, FULL], ids=["plain", "full"])
def test_decode_refuses_when_truncated_at_any_offset(transaction: Transaction) -> None:
    """Every proper prefix is refused, at an offset within it."""
    encoded = encode_transaction(transaction)
    for length in range(len(encoded)):
        refusal = refusal_of(encoded[:length])
        assert refusal.reason is RejectionReason.INVALID_DATA
        offset = refusal.context["offset"]
        assert isinstance(offset, int)
        assert offset <= length


def test_decode_refuses_when_bytes_trail() -> None:
    """Nothing may follow the last field."""
    check_malformed(PLAIN_BYTES + b"\x00\x00", len(PLAIN_BYTES), "2 trailing bytes")


@pytest.mark.parametrize("version", [0, 1, 3, 255])
def test_decode_refuses_when_version_is_unknown(version: int) -> None:
    """Only version 2 is read."""
    rule = f"a transaction starts with version 2, not {version}"
    check_malformed(bytes([version]) + PLAIN_BYTES[1:], 0, rule)


@pytest.mark.parametrize(
    ("varint", "rule"),
    [
        ("80 00", "a varint is longer than its value needs"),
        ("aa 80 00", "a varint is longer than its value needs"),
        ("ff ff ff ff ff ff ff ff ff 02", "a varint exceeds 64 bits"),
        ("80 80 80 80 80 80 80 80 80 80 01", "a varint exceeds 64 bits"),
    ],
)
def test_decode_refuses_when_a_varint_is_not_minimal_or_too_wide(varint: str, rule: str) -> None:
    """A number has one encoding, and no more bits than its field."""
    check_malformed(b"\x02" + bytes.fromhex(varint) + PLAIN_BYTES[2:], 1, rule)


def test_decode_refuses_when_a_128_bit_varint_overflows() -> None:
    """The fee per access has 128 bits and no more."""
    at = PLAIN_BYTES.index(bytes.fromhex("8004 0101")) + 4
    too_wide = b"\xff" * 18 + b"\x04"
    check_malformed(PLAIN_BYTES[:at] + too_wide + PLAIN_BYTES[at + 1 :], at, "a varint exceeds 128 bits")


@pytest.mark.parametrize("option", [2, 255])
def test_decode_refuses_when_an_option_byte_is_neither_0_nor_1(option: int) -> None:
    """An option is absent or present."""
    at = len(PLAIN_BYTES) - 72
    changed = PLAIN_BYTES[:at] + bytes([option]) + PLAIN_BYTES[at + 1 :]
    check_malformed(changed, at, f"an option starts with 0 or 1, not {option}")


def test_decode_refuses_when_text_is_not_utf8() -> None:
    """A handler's name is UTF-8, and the refusal points at the wrong byte."""
    fields = "01 01" + RECEIVER.hex() + "03 61ff62 00"
    check_malformed(with_instruction(fields), 27, "text is not valid UTF-8")


def test_decode_refuses_when_owner_draw_is_unknown() -> None:
    """There are three rules of drawing."""
    check_malformed(with_instruction("01 00 00 00 00 00 00 00 00 03"), 12, "owner_draw starts with 0, 1 or 2, not 3")


def test_decode_refuses_when_salt_is_longer_than_32_bytes() -> None:
    """A salt has at most 32 bytes."""
    check_malformed(with_instruction("01 00 00 21" + "00" * 33), 6, "a length of 33 exceeds 32")


def test_decode_refuses_before_allocating_when_a_length_or_count_exceeds_the_rest() -> None:
    """Four gigabytes announced in five bytes are refused for what they announce."""
    at = len(PLAIN_BYTES) - 71
    changed = PLAIN_BYTES[:at] + bytes.fromhex("ffffffff0f") + PLAIN_BYTES[at + 1 :]
    check_malformed(changed, at, "a length of 4294967295 exceeds the 70 bytes left")
    changed = PLAIN_BYTES[:-1] + bytes.fromhex("ffffffff0f")
    check_malformed(changed, len(PLAIN_BYTES) - 1, "a count of 4294967295 exceeds what the 0 bytes left can hold")
    changed = PLAIN_BYTES[:at] + bytes.fromhex("ffffffff1f") + PLAIN_BYTES[at + 1 :]
    check_malformed(changed, at, "a varint exceeds 32 bits")


SUPPORTED = (
    "CreateAccount, Transfer, FundActor, UpgradeActor, UpdateBasefeeConfig, CancelTimer, UpdateTimerConfig, "
    "ExtendTimer, UpdateLaneFeeMultipliers, SetGovParam, SetBalance, MoveTimer, SetStorage, SetCode, SetMock, "
    "ClearMocks, SetRunner, ReplyJob, DeployActor, ExecuteActor"
)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ("00 0b", "instruction System.TokenTransfer (11) is not supported"),
        ("00 2d", "instruction System.SubmitProposal (45) is not supported"),
        ("00 19", "instruction System 25 is not supported"),
        ("00 ff", "instruction System 255 is not supported"),
        ("01 02", "instruction Actor 2 is not supported"),
        ("02 05", "instruction Custom 5 is not supported"),
        ("03 00", "instruction Library.PublishLibrary (0) is not supported"),
        ("03 01", "instruction Library.RemoveLibrary (1) is not supported"),
        ("04 00", "instruction family 4 is not one of the public protocol's"),
    ],
)
def test_decode_refuses_by_name_when_an_instruction_is_not_supported(fields: str, named: str) -> None:
    """The refusal says which instruction it was, and which are executed."""
    refusal = refusal_of(with_instruction(fields))
    assert refusal.reason is RejectionReason.UNSUPPORTED_INSTRUCTION
    assert refusal.reason.code == 1212
    assert refusal.what == f"{named}; supported are {SUPPORTED}"


def test_decode_refuses_every_unsupported_number() -> None:
    """No number slips through: each of the 256 is supported or refused as unsupported."""
    for opcode in set(range(256)) - set(SYSTEM):
        refusal = refusal_of(with_instruction(f"00 {opcode:02x}"))
        assert refusal.reason is RejectionReason.UNSUPPORTED_INSTRUCTION
        assert SYSTEM_NAMES.get(opcode, "System") in refusal.what


@pytest.mark.parametrize(
    ("change", "reason", "what"),
    [
        ({"nonce": 2**64}, RejectionReason.OVERFLOW, f"nonce is {2**64}, outside 0..={2**64 - 1}"),
        ({"chain_id": -1}, RejectionReason.OVERFLOW, f"chain_id is -1, outside 0..={2**64 - 1}"),
        ({"max_fee_per_access": 2**128}, RejectionReason.OVERFLOW, None),
        ({"nonce": True}, RejectionReason.INVALID_DATA, "nonce must be an integer, got True"),
        (
            {"instruction": Transfer(RECEIVER, 2**64)},
            RejectionReason.OVERFLOW,
            f"Transfer.amount is {2**64}, outside 0..={2**64 - 1}",
        ),
        ({"instruction": UpdateTimerConfig(1, 1, 1, 2**32, 1)}, RejectionReason.OVERFLOW, None),
        ({"instruction": DeployActor(b"", b"", shard=2**16)}, RejectionReason.OVERFLOW, None),
        (
            {"instruction": DeployActor(b"", bytes(33))},
            RejectionReason.INVALID_DATA,
            "DeployActor.salt has 33 bytes, above 32",
        ),
        (
            {"instruction": ExecuteActor(RECEIVER, "\ud800", b"")},
            RejectionReason.INVALID_DATA,
            "ExecuteActor.handler must be text without lone surrogates, got '\\ud800'",
        ),
        (
            {"instruction": ExecuteActor(RECEIVER, b"tick", b"")},
            RejectionReason.INVALID_DATA,
            "ExecuteActor.handler must be text, got a value of bytes",
        ),
        (
            {"instruction": DeployActor(b"", b"", routes=b"")},
            RejectionReason.INVALID_DATA,
            "DeployActor.routes must be a RouteInstall, got a value of bytes",
        ),
        (
            {"instruction": "Transfer"},
            RejectionReason.INVALID_DATA,
            "instruction must be an instruction, got 'Transfer'",
        ),
        ({"sender": bytes(19)}, RejectionReason.INVALID_DATA, "sender must be 20 bytes, got 19 bytes"),
        ({"sender": str(SENDER)}, RejectionReason.INVALID_DATA, "sender must be 20 bytes, got str"),
        ({"signature": bytes(64)}, RejectionReason.INVALID_DATA, "signature must be 65 bytes, got 64 bytes"),
        ({"metadata": "x"}, RejectionReason.INVALID_DATA, "metadata must be bytes, got 'x'"),
        ({"access_list": []}, RejectionReason.INVALID_DATA, "access_list must be a tuple, got a value of list"),
        (
            {"access_list": ((SENDER,),)},
            RejectionReason.INVALID_DATA,
            "access_list[0] must be a pair, got a value of tuple",
        ),
    ],
)
def test_encode_refuses_when_a_field_does_not_fit(
    change: dict[str, object], reason: RejectionReason, what: str | None
) -> None:
    """A record that the wire cannot carry is refused by field, never truncated."""
    with pytest.raises(Rejection) as caught:
        encode_transaction(replace(PLAIN, **change))
    assert caught.value.reason is reason
    assert what is None or caught.value.what == what


def test_submission_carries_transactions_in_order() -> None:
    """A submission is its kind, a count and the transactions; the empty one is one too."""
    encoded = encode_submission([PLAIN, FULL, PLAIN])
    assert encoded[:2] == b"\x01\x03"
    assert decode_submission(encoded) == [PLAIN, FULL, PLAIN]
    assert decode_submission(encode_submission([])) == []


@pytest.mark.parametrize(
    ("encoded", "what"),
    [
        (b"", "malformed bytes at offset 0: a byte is needed, none is left"),
        (b"\x00\x00", "malformed bytes at offset 0: a submission of transactions starts with 1, not 0"),
        (b"\x01", "malformed bytes at offset 1: the bytes end inside a varint"),
        (b"\x01\x80\x00", "malformed bytes at offset 1: a varint is longer than its value needs"),
        (
            b"\x01\xff\xff\xff\xff\x0f",
            "malformed bytes at offset 1: a count of 4294967295 exceeds what the 0 bytes left can hold",
        ),
        (b"\x01\x00\x00", "malformed bytes at offset 2: 1 trailing bytes"),
        (b"\x01\x01\x07", "malformed bytes at offset 2: a transaction starts with version 2, not 7"),
    ],
)
def test_decode_submission_refuses_when_malformed(encoded: bytes, what: str) -> None:
    """The envelope has one encoding too."""
    with pytest.raises(Rejection) as caught:
        decode_submission(encoded)
    assert (caught.value.reason, caught.value.what) == (RejectionReason.INVALID_DATA, what)
