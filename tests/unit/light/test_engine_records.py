"""What the engine hashes and signs is what a real engine hashed and signed."""

import json
from pathlib import Path

import pytest

from tests.model.committee import Committee
from trailboss.crypto.digest import sha256
from trailboss.light import protobuf
from trailboss.light.commits import in_engine_order, validators_hash, verify_signed_header
from trailboss.light.engine_records import read_signed_header, signed_header_document
from trailboss.light.engine_values import NO_TIME, Number, Time
from trailboss.model.validators import Validator
from trailboss.primitives.errors import ProofError
from trailboss.primitives.octets import ZERO_ADDRESS

VECTORS = json.loads((Path(__file__).parents[2] / "vectors/engine_commits.json").read_text(encoding="utf-8"))
VALIDATORS = [
    Validator(bytes.fromhex(each["public_key"][2:]), each["power"], ZERO_ADDRESS) for each in VECTORS["validators"]
]
COMMITS = VECTORS["commits"]


def named(document) -> str:
    commit = document["signed_header"]["commit"]
    return f"height {commit['height']}, round {commit['round']}"


def test_vectors_are_of_a_whole_network() -> None:
    """The engine, later rounds, missing votes, unequal and equal powers, and the first block are in them."""
    assert VECTORS["engine"] == "CometBFT 0.38.25"
    commits = [each["signed_header"]["commit"] for each in COMMITS]
    assert {each["round"] for each in commits} == {0, 1}
    assert {vote["block_id_flag"] for each in commits for vote in each["signatures"]} == {1, 2}
    assert [each.power for each in in_engine_order(VALIDATORS)] == [30, 20, 20, 10]
    assert commits[0]["height"] == "1"


@pytest.mark.parametrize("document", COMMITS, ids=named)
def test_recorded_commit_is_verified(document) -> None:
    """Header hash, hash of the validators and signatures are those of the engine."""
    signed = read_signed_header(document)
    stated = document["signed_header"]
    assert signed.header.digest().hex().upper() == stated["commit"]["block_id"]["hash"]
    assert validators_hash(VALIDATORS).hex().upper() == stated["header"]["validators_hash"]
    support = verify_signed_header(signed, VALIDATORS, VECTORS["chain_id"])
    assert support.signers == sum(vote["block_id_flag"] == 2 for vote in stated["commit"]["signatures"])
    assert support.power == {4: 80, 3: 60}[support.signers]
    assert signed_header_document(signed) == stated


def test_header_states_the_hash_of_the_one_before() -> None:
    """The recorded headers of heights 1, 2 and 3 are a chain."""
    first, second, third = (read_signed_header(each).header for each in COMMITS[:3])
    assert (first.height, second.height, third.height) == (1, 2, 3)
    assert second.last_block_id.hash == first.digest()
    assert third.last_block_id.hash == second.digest()


def every_text(document, path=()):
    """Yield the path of every text and number of a document."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        if isinstance(value, dict | list):
            yield from every_text(value, (*path, key))
        else:
            yield (*path, key)


def changed(value):
    if isinstance(value, int):
        return value + 1
    if not value:
        return "00" if value == "" else "AA=="
    if value.isdecimal():
        return str(int(value) + 1)
    at = next(place for place, character in enumerate(value) if character.isalnum())
    return value[:at] + ("1" if value[at] != "1" else "2") + value[at + 1 :]


@pytest.mark.parametrize("document", [COMMITS[0], COMMITS[4]], ids=named)
def test_recorded_commit_is_refused_when_anything_in_it_is_changed(document) -> None:
    """No member of the engine's own document can differ: header, votes, times, addresses, parts."""
    paths = list(every_text(document["signed_header"]))
    assert len(paths) > 30
    for path in paths:
        forged = json.loads(json.dumps(document))
        place = forged["signed_header"]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = changed(place[path[-1]])
        assert forged != document
        with pytest.raises(ProofError):
            verify_signed_header(read_signed_header(forged), VALIDATORS, VECTORS["chain_id"])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("header", "height"), 1, "expected a text"),
        (("header", "height"), "01", "not the one text"),
        (("header", "height"), "-1", "is not an unsigned number of 64 bits"),
        (("header", "height"), str(2**64), "is not an unsigned number of 64 bits"),
        (("header", "height"), str(2**63), "a height has 63 bits"),
        (("header", "chain_id"), "\ud800", "none of the engine's"),
        (("header", "app_hash"), "ab", "not the one text"),
        (("header", "app_hash"), "A", "none of the engine's"),
        (("header", "time"), "2026-02-30T00:00:00Z", "none of the engine's"),
        (("header", "time"), "2026-02-03T24:00:00Z", "is not a time of a day"),
        (("header", "time"), "2026-02-03T23:00:00.10Z", "not the one text"),
        (("header", "time"), "2026-02-03 23:00:00Z", "is not a time as"),
        (("header", "other"), "", "unknown field"),
        (("commit", "round"), -1, ">= 0"),
        (("commit", "round"), 2**31, "<= 2147483647"),
        (("commit", "signatures", 0, "block_id_flag"), 0, ">= 1"),
        (("commit", "signatures", 0, "signature"), "A===", "none of the engine's"),
        (("commit", "signatures"), "", "Expected `array`, got `str`"),
        (("commit", "signatures"), None, "Expected `array`, got `null`"),
    ],
)
def test_read_names_what_is_wrong_when_the_document_is_another(path, value, message) -> None:
    """Whatever is not exactly what the engine writes is no signed header."""
    document = json.loads(json.dumps(COMMITS[0]))
    place = document["signed_header"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ProofError, match=message):
        read_signed_header(document)


@pytest.mark.parametrize("document", [None, [], {}, {"signed_header": None}, {"signed_header": []}, "x"])
def test_read_refuses_what_has_no_signed_header(document) -> None:
    """An error of the engine's RPC is refused like anything else."""
    with pytest.raises(ProofError, match="the signed header is none of the engine's"):
        read_signed_header(document)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("2026-08-04T12:34:56.7Z", 1_785_846_896_700_000_000),
        ("0001-01-01T00:00:00Z", -62_135_596_800 * 10**9),
        ("1969-12-31T23:59:59.25Z", -750_000_000),
    ],
)
def test_time_is_read_and_written(text, nanoseconds) -> None:
    """Times before 1970 and of every precision come back as they were."""
    assert Time.parse(text) == nanoseconds
    assert Time(nanoseconds).text() == text


def test_protobuf_encodes_as_its_specification_shows() -> None:
    """Numbers of one and more bytes, negative ones, empty fields that are left out, and messages that are not."""
    assert protobuf.number_field(1, 150).hex() == "089601"
    assert protobuf.number_field(1, -1).hex() == "08" + "ff" * 9 + "01"
    assert protobuf.fixed_field(2, -2).hex() == "11feffffffffffffff"
    assert protobuf.octets_field(2, b"testing").hex() == "120774657374696e67"
    assert protobuf.number_field(1, 0) + protobuf.fixed_field(1, 0) + protobuf.octets_field(1, b"") == b""
    assert protobuf.message_field(2, b"").hex() == "1200"
    assert NO_TIME.message().hex() == "088092b8c398feffffff01"
    assert Number.parse("18446744073709551615") == 2**64 - 1


def test_committee_signs_as_the_engine_does() -> None:
    """The validators of the other tests order and hash themselves like the recorded ones."""
    committee = Committee((10, 30, 20, 20))
    assert [each.power for each in committee.ordered] == [30, 20, 20, 10]
    assert committee.ordered[1].identity < committee.ordered[2].identity
    assert committee.ordered[0].identity == sha256(committee.ordered[0].public_key)[:20]
