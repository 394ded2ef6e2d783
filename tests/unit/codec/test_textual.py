"""The JSON shape: what it looks like, and a refusal with the field's path for everything else."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from trailboss.codec.instructions import DeployActor, OwnerDraw, RouteInstall, Transaction, Transfer, UpgradeActor
from trailboss.codec.textual import from_json, to_json, to_text
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32

SENDER = Address.parse("0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1")
RECEIVER = Address.parse("0x0000000000000000000000000000000000001111")
TRANSACTION = Transaction(
    chain_id=42,
    nonce=7,
    instruction=Transfer(RECEIVER, 5),
    cycles_limit=50_000,
    cells_limit=50_001,
    max_fee_per_cycle=1,
    max_fee_per_cell=2,
    access_limit=512,
    max_fee_per_access=2**128 - 1,
    sender=SENDER,
)
DOCUMENT: dict[str, Any] = {
    "chain_id": 42,
    "nonce": 7,
    "instruction": {"System": {"Transfer": {"to": "0x0000000000000000000000000000000000001111", "amount": 5}}},
    "cycles_limit": 50000,
    "cells_limit": 50001,
    "access_limit": 512,
    "max_fee_per_cycle": 1,
    "max_fee_per_cell": 2,
    "max_fee_per_access": "340282366920938463463374607431768211455",
    "max_priority_fee_per_cycle": 0,
    "max_priority_fee_per_cell": 0,
    "max_priority_fee_per_access": "0",
    "from": "0x1a642f0E3c3aF545E7AcBD38b07251B3990914F1",
    "access_list": None,
    "signature": {"r": [0] * 32, "s": [0] * 32, "v": 0},
    "additional_signers": [],
    "origin_tx_hash": None,
    "origin_remaining_cycles": None,
    "origin_remaining_cells": None,
    "origin_remaining_access": None,
    "metadata": [],
}


def refusal_of(document: Any) -> Rejection:
    """Return the refusal of a JSON transaction."""
    with pytest.raises(Rejection) as caught:
        from_json(document)
    return caught.value


def with_instruction(instruction: Any) -> dict[str, Any]:
    """Return the document with another instruction."""
    return DOCUMENT | {"instruction": instruction}


def test_to_json_gives_the_public_shape_in_order() -> None:
    """Members, their order and their types are the public codec's."""
    assert to_json(TRANSACTION) == DOCUMENT
    assert list(to_json(TRANSACTION)) == list(DOCUMENT)
    assert to_text(TRANSACTION) == json.dumps(DOCUMENT, separators=(",", ":"))


def test_from_json_reads_object_text_and_bytes() -> None:
    """All three forms of one document give one record."""
    text = to_text(TRANSACTION)
    assert from_json(DOCUMENT) == from_json(text) == from_json(text.encode()) == TRANSACTION


def test_from_json_takes_defaults_when_optional_members_are_absent() -> None:
    """What the public codec lets one leave out may be left out here."""
    optional = [name for name in DOCUMENT if name.startswith(("max_priority", "origin_", "access_list", "metadata"))]
    assert from_json({name: value for name, value in DOCUMENT.items() if name not in optional}) == TRANSACTION


@pytest.mark.parametrize(
    "name",
    sorted(
        {"chain_id", "nonce", "instruction", "cycles_limit", "cells_limit", "access_limit", "from", "signature"}
        | {"max_fee_per_cycle", "max_fee_per_cell", "max_fee_per_access", "additional_signers"}
    ),
)
def test_from_json_refuses_when_a_required_member_is_absent(name: str) -> None:
    """The public codec demands these, and so do we."""
    refusal = refusal_of({member: value for member, value in DOCUMENT.items() if member != name})
    assert (refusal.reason, refusal.what) == (
        RejectionReason.INVALID_DATA,
        f"transaction lacks its field {name!r}",
    )
    assert refusal.context == {"field": f"transaction.{name}"}


def test_optional_fields_of_an_instruction_are_left_out_when_default() -> None:
    """A plain deployment shows code and salt alone; a full one shows everything."""
    plain = replace(TRANSACTION, instruction=DeployActor(b"\x01", b""))
    assert to_json(plain)["instruction"] == {"Actor": {"DeployActor": {"code": [1], "salt": []}}}
    full = DeployActor(b"\x01", b"\x02", "init", b"", b"\x03", 4, RouteInstall(b"\x05"), OwnerDraw.OFF)
    shown = to_json(replace(TRANSACTION, instruction=full))["instruction"]
    assert shown == {
        "Actor": {
            "DeployActor": {
                "code": [1],
                "salt": [2],
                "init_handler": "init",
                "init_payload": [],
                "manifest": [3],
                "shard": 4,
                "routes": {"table": [5]},
                "owner_draw": "Off",
            }
        }
    }
    for instruction in (full, replace(full, owner_draw=9), UpgradeActor(SENDER, b"", b"", RouteInstall(b"", b""))):
        transaction = replace(TRANSACTION, instruction=instruction)
        assert from_json(to_json(transaction)) == transaction


@pytest.mark.parametrize(
    ("change", "field", "what"),
    [
        ({"nonc": 1}, "transaction.nonc", "transaction has no field 'nonc'"),
        ({"nonce": "1"}, "nonce", "nonce must be an integer, got '1'"),
        ({"nonce": True}, "nonce", "nonce must be an integer, got True"),
        ({"nonce": 1.0}, "nonce", "nonce must be an integer, got 1.0"),
        ({"nonce": None}, "nonce", "nonce must be an integer, got None"),
        (
            {"max_fee_per_access": 1},
            "max_fee_per_access",
            "max_fee_per_access must be a decimal string of an unsigned 128-bit integer, got a value of int",
        ),
        *(
            (
                {"max_fee_per_access": text},
                "max_fee_per_access",
                f"max_fee_per_access must be a decimal string without sign or leading zeros, got {text!r}",
            )
            for text in ("", "01", "00", "+1", "-0", " 1", "1_0", "٣", "0x1")
        ),
        ({"metadata": "00"}, "metadata", "metadata must be a list of bytes, got '00'"),
        ({"metadata": [True]}, "metadata[0]", "metadata[0] must be an integer, got True"),
        (
            {"origin_tx_hash": [0] * 31},
            "origin_tx_hash",
            "origin_tx_hash must be a list of 32 bytes, got a value of list",
        ),
        ({"access_list": {}}, "access_list", "access_list must be a list, got a value of dict"),
        ({"access_list": [[]]}, "access_list[0]", "access_list[0] must be a list of two, got a value of list"),
        ({"from": 5}, "from", "from must be the text of an address, got a value of int"),
        ({"from": "0X" + "00" * 20}, "from", None),
        ({"from": "0x00"}, "from", "from: Address must be 40 hexadecimal digits, got '0x00'"),
        ({"from": "0x1A642f0E3c3aF545E7AcBD38b07251B3990914F1"}, "from", None),
        ({"signature": None}, "signature", "signature must be an object, got None"),
        ({"signature": {"r": [0] * 32, "s": [0] * 32}}, "signature.v", "signature lacks its field 'v'"),
        ({"signature": {"r": [0], "s": [0] * 32, "v": 0}}, "signature.r", None),
        ({"instruction": "Transfer"}, "instruction", "instruction must be an object of one member, got 'Transfer'"),
    ],
)
def test_from_json_refuses_with_the_path_when_a_member_is_wrong(
    change: dict[str, Any], field: str, what: str | None
) -> None:
    """Unknown, missing and mistyped members are refused by name."""
    refusal = refusal_of(DOCUMENT | change)
    assert refusal.reason is RejectionReason.INVALID_DATA
    assert refusal.context["field"] == field
    assert what is None or refusal.what == what


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"nonce": 2**64}, f"nonce is {2**64}, outside 0..={2**64 - 1}"),
        ({"nonce": -1}, f"nonce is -1, outside 0..={2**64 - 1}"),
        ({"metadata": [0, 256]}, "metadata[1] is 256, outside 0..=255"),
        ({"max_fee_per_access": str(2**128)}, f"max_fee_per_access is {2**128}, outside 0..={2**128 - 1}"),
        ({"signature": {"r": [0] * 32, "s": [0] * 32, "v": 256}}, "signature.v is 256, outside 0..=255"),
        (
            with_instruction({"System": {"Transfer": {"to": str(SENDER), "amount": 2**64}}}),
            f"instruction.System.Transfer.amount is {2**64}, outside 0..={2**64 - 1}",
        ),
    ],
)
def test_from_json_refuses_when_a_number_is_too_wide(change: dict[str, Any], what: str) -> None:
    """Numbers have the widths of the wire."""
    refusal = refusal_of(DOCUMENT | change)
    assert (refusal.reason, refusal.what) == (RejectionReason.OVERFLOW, what)


@pytest.mark.parametrize(
    ("instruction", "named"),
    [
        ({"System": {"TokenTransfer": {}}}, "instruction System.TokenTransfer (11) is not supported"),
        ({"System": {"RouteInvocation": {}}}, "instruction System.RouteInvocation is not supported"),
        ({"System": {"Nope": {}}}, "instruction System.Nope is not one of the public protocol's"),
        ({"System": {"DeployActor": {}}}, "instruction System.DeployActor is not one of the public protocol's"),
        ({"Library": {"PublishLibrary": {}}}, "instruction Library.PublishLibrary (0) is not supported"),
        ({"Custom": {"module": 1, "action": 2, "data": []}}, "instruction Custom is not supported"),
        ({"Nope": {}}, "instruction family Nope is not one of the public protocol's"),
    ],
)
def test_from_json_refuses_by_name_when_an_instruction_is_not_supported(instruction: Any, named: str) -> None:
    """The refusal says which instruction it was."""
    refusal = refusal_of(with_instruction(instruction))
    assert refusal.reason is RejectionReason.UNSUPPORTED_INSTRUCTION
    assert refusal.what.startswith(f"{named}; supported are CreateAccount, Transfer, ")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"to": str(SENDER)}, "instruction.System.Transfer lacks its field 'amount'"),
        ({"to": str(SENDER), "amount": 1, "memo": 2}, "instruction.System.Transfer has no field 'memo'"),
        ([str(SENDER), 1], "instruction.System.Transfer must be an object, got a value of list"),
    ],
)
def test_from_json_refuses_when_an_instructions_fields_are_wrong(fields: Any, what: str) -> None:
    """Fields of an instruction are as strict as those of the transaction."""
    assert refusal_of(with_instruction({"System": {"Transfer": fields}})).what == what


@pytest.mark.parametrize(
    ("handler", "what"),
    [
        (5, "instruction.Actor.DeployActor.init_handler must be text, got a value of int"),
        ("\ud800", "instruction.Actor.DeployActor.init_handler must be text without lone surrogates, got '\\ud800'"),
    ],
)
def test_from_json_refuses_when_a_handlers_name_is_no_text(handler: Any, what: str) -> None:
    """A name is text that UTF-8 can carry."""
    fields = {"code": [], "salt": [], "init_handler": handler}
    assert refusal_of(with_instruction({"Actor": {"DeployActor": fields}})).what == what


@pytest.mark.parametrize("draw", ["off", None, 5, {"Capped": "5"}, {"Capped": 2**64}, {"Off": None}, {}])
def test_from_json_refuses_when_owner_draw_is_wrong(draw: Any) -> None:
    """It is "Default", "Off" or an object with a cap."""
    fields = {"code": [], "salt": [], "owner_draw": draw}
    assert (
        "instruction.Actor.DeployActor.owner_draw"
        in refusal_of(with_instruction({"Actor": {"DeployActor": fields}})).what
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "the transaction is not JSON: Expecting property name enclosed in double quotes"),
        ("", "the transaction is not JSON: Expecting value"),
        (b"\xff", "the transaction is not JSON: "),
        ("[" * 100_000, "the transaction is not JSON: it is nested too deep"),
        ('{"nonce": 1, "nonce": 1}', "the member 'nonce' occurs twice"),
        ('{"nonce": NaN}', "the transaction is not JSON: it contains NaN"),
        ('{"nonce": ' + "9" * 5000 + "}", "the transaction is not JSON: a number has thousands of digits"),
        ("[]", "transaction must be an object, got a value of list"),
        ("null", "transaction must be an object, got None"),
    ],
)
def test_from_json_refuses_when_text_is_not_a_json_object(text: str | bytes, what: str) -> None:
    """Whatever is wrong with the text, the answer is a refusal."""
    refusal = refusal_of(text)
    assert refusal.reason is RejectionReason.INVALID_DATA
    assert refusal.what.startswith(what)


def test_from_json_reads_the_records_own_types() -> None:
    """Addresses and hashes come back as such."""
    transaction = from_json(DOCUMENT | {"origin_tx_hash": [1] * 32})
    assert type(transaction.sender) is Address
    assert type(transaction.origin_tx_hash) is Hash32
