"""Every step at which a proof fails, by its message; what a proof says in words."""

from hashlib import sha256

import pytest
from msgspec import msgpack
from msgspec.structs import replace

from tests.model.states import State, make_state, timer_record
from trailboss.codec.canonical import pack
from trailboss.model.actors import Account
from trailboss.model.terms import GlobalboxTerms, Trigger
from trailboss.model.timers import RECORD_VERSION, Timer, encode_timer
from trailboss.primitives.errors import InvariantError, ProofError, Rejection
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.state import keys
from trailboss.state.proofs.nodes import ShownInterior, ShownPage
from trailboss.state.proofs.proof import Proof
from trailboss.state.proofs.prover import prove
from trailboss.state.proofs.subjects import AccountSubject, SlotSubject, StorageSubject, TimersSubject, TimerSubject

ADDRESS = Address(b"\x11" * 20)
OTHER = Address(b"\x22" * 20)
MANY = [bytes([number]) * 20 for number in range(33)]
SUBJECT = AccountSubject(ADDRESS)
OTHERS = (bytes(32),) * 4
VALUE_DIGEST = sha256(b"value").digest()
DIGEST = b"\x01" * 32


def page(*addresses: bytes) -> ShownPage:
    return ShownPage(b"".join(address + VALUE_DIGEST for address in addresses))


def interior(
    count: int = 40, prefix_length: int = 1, prefix: bytes = b"\x20", present: int = 0b11, digests: bytes = DIGEST * 2
) -> ShownInterior:
    """Return a node beside the subject, so that all of its children are left out; valid unless told otherwise."""
    return ShownInterior(count, prefix_length, prefix, present, digests)


def above(*children: ShownPage | ShownInterior, **fields: object) -> tuple[ShownPage | ShownInterior, ...]:
    """Return a root node with a child under nibble 1, where the subject is, one left out, and what is shown below."""
    return (replace(interior(1000, 0, b"", 0b110, DIGEST), **fields), *children)


def test_nodes_of_these_tests_are_sound_when_nothing_is_wrong_with_them() -> None:
    """What the cases below change stands up to the form of the tree, and fails only for the root."""
    for nodes in (
        (interior(),),
        above(page(ADDRESS)),
        above(interior(prefix=b"\x12", prefix_length=2)),
        (page(ADDRESS),),
    ):
        with pytest.raises(ProofError, match="the proof leads to the state root"):
            Proof(1, SUBJECT, OTHERS, nodes, ()).verify(bytes(32))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ((ShownPage(b""),), "node 0: a page of 0 bytes is not 1..=32 entries of 52 bytes"),
        ((ShownPage(bytes(53)),), "node 0: a page of 53 bytes is not 1..=32 entries of 52 bytes"),
        ((page(*MANY),), "node 0: a page of 1716 bytes is not 1..=32 entries of 52 bytes"),
        ((page(OTHER, b"\1" * 20),), "node 0: the keys of a page do not ascend"),
        ((page(b"\1" * 20, b"\1" * 20),), "node 0: the keys of a page do not ascend"),
        ((page(ADDRESS), page(ADDRESS)), "1 of the subtrees shown have no parent"),
        ((interior(prefix_length=40),), "node 0: a prefix of 40 nibbles leaves none of a key of 20 bytes"),
        ((interior(prefix_length=-1),), "node 0: a prefix of -1 nibbles leaves none of a key of 20 bytes"),
        ((interior(prefix=b"\x21"),), "node 0: the prefix 21 is not 1 nibbles"),
        ((interior(prefix=b"\x20\x00"),), "node 0: the prefix 2000 is not 1 nibbles"),
        ((interior(count=32),), "node 0: an interior node of 32 keys is not above 32, within 64 bits"),
        ((interior(count=2**64),), f"node 0: an interior node of {2**64} keys is not above 32, within 64 bits"),
        ((interior(present=0b10, digests=DIGEST),), "node 0: the bits 0x2 are not those of 2..=16 children"),
        ((interior(present=2**16 + 1),), "node 0: the bits 0x10001 are not those of 2..=16 children"),
        ((interior(present=-1),), "node 0: the bits -0x1 are not those of 2..=16 children"),
        (above(), "node 0: 1 of its children must be shown, 0 are"),
        (above(page(ADDRESS), digests=b""), "node 0: 1 of its children are left out, the digests have 0 bytes"),
        ((interior(digests=DIGEST * 3),), "node 0: 2 of its children are left out, the digests have 96 bytes"),
        ((interior(digests=DIGEST + bytes(32)),), "node 0: the child under nibble 1 has the digest of nothing"),
        (above(page(OTHER)), f"node 0: the child under nibble 1 holds keys that begin with {OTHER.hex()}"),
        (above(page(ADDRESS, OTHER)), f"node 0: the child under nibble 1 holds keys that begin with {OTHER.hex()}"),
        (above(interior()), "node 0: the child under nibble 1 holds keys that begin with 20"),
        (
            above(interior(prefix_length=0, prefix=b"", present=0b101)),
            "node 0: the child under nibble 1 shares 0 nibbles, its parent 0",
        ),
        (
            above(interior(prefix_length=2, prefix=b"\x12"), count=40),
            "node 0: 40 keys cannot lie below 1 children left out and 40 keys shown",
        ),
    ],
)  # fmt: skip
def test_verify_names_node_and_rule_when_the_tree_has_another_form(nodes, message) -> None:
    """Whoever made the root, a tree that is not canonical proves nothing."""
    with pytest.raises(ProofError) as refused:
        Proof(1, SUBJECT, OTHERS, nodes, ()).verify(bytes(32))
    assert str(refused.value) == message


def test_verify_wants_the_exact_count_when_no_child_is_left_out() -> None:
    """The keys below are those of the pages, one by one."""
    pages = [page(*(bytes([first]) + bytes([n]) * 19 for n in range(20))) for first in (0x10, 0x20)]
    for count, message in (
        (40, "the proof leads"),
        (41, "node 0: 41 keys cannot lie below 0 children left out and 40"),
    ):
        nodes = (interior(count, 0, b"", 0b110, b""), *pages)
        namespaced = [ShownPage(pad(each.entries)) for each in pages]
        with pytest.raises(ProofError, match=message):
            Proof(1, TimersSubject(0, U64_MAX), OTHERS, (nodes[0], *namespaced), ()).verify(bytes(32))


def pad(entries: bytes) -> bytes:
    """Widen the keys of accounts to those of timers."""
    pieces = [entries[at : at + 52] for at in range(0, len(entries), 52)]
    return b"".join(piece[:20] + bytes(20) + piece[20:] for piece in pieces)


def small() -> State:
    """Return a state with a little of everything."""
    plain, actor = Account(balance=(5000).to_bytes(16, "big"), nonce=3), Account(code_hash=bytes(32), timer_count=1)
    return make_state(
        {
            keys.account_key(ADDRESS): pack(plain),
            keys.account_key(bytes(20)): pack(actor),
            keys.storage_key(ADDRESS, b"a"): pack((b"a", b"\x01")),
            keys.storage_key(ADDRESS, b"b"): pack((b"b", b"")),
            keys.storage_key(bytes(20), b"c"): pack((b"c", b"")),
            **{
                keys.timer_key(height, bytes([n]) * 32): timer_record(height, bytes([n]) * 32, 9 - n)
                for n, height in enumerate((7, 1000, 1005, 1005, U64_MAX))
            },
        }
    )


@pytest.mark.spec("Q-09")
@pytest.mark.parametrize(
    ("subject", "sentence"),
    [
        (SUBJECT, f"account {ADDRESS} has 5,000 base units, nonce 3"),
        (AccountSubject(bytes(20)), f"actor {Address(bytes(20))} has 0 base units, nonce 0 and 1 live timer"),
        (AccountSubject(OTHER), f"no account {OTHER} exists"),
        (SlotSubject(ADDRESS, b"a"), f"slot 0x61 of actor {ADDRESS} holds 0x01"),
        (SlotSubject(ADDRESS, b"c"), f"actor {ADDRESS} has no slot 0x63"),
        (StorageSubject(ADDRESS), f"actor {ADDRESS} has 2 slots, and no others"),
        (StorageSubject(bytes(20)), f"actor {Address(bytes(20))} has 1 slot, and no other"),
        (StorageSubject(OTHER), f"actor {OTHER} has no slots"),
        (TimerSubject(7, bytes(32)), f"timer {Hash32(bytes(32))} of actor {Address(bytes(20))} is due at height 7"),
        (TimerSubject(1000, bytes(32)), f"no timer {Hash32(bytes(32))} is due at height 1,000"),
        (TimersSubject(1000, 1010), "3 timers are due in 1,000..=1,010, and no others"),
        (TimersSubject(7, 7), "1 timer is due at height 7, and no other"),
        (TimersSubject(8, 999), "no timer is due in 8..=999"),
    ],
)  # fmt: skip
def test_statement_is_one_plain_sentence_when_a_proof_holds(subject, sentence) -> None:
    """What is there, what is not, and that there is no more of it."""
    state = small()
    assert str(state.prove(subject).verify(state.root)) == sentence


@pytest.mark.spec("Q-09")
@pytest.mark.parametrize(
    ("subject", "sentence"),
    [
        (TimerSubject(91, b"\x02" * 32), "watches the state up to height 90"),
        (TimersSubject(80, 91), "1 timer is due in 80..=91, 1 state watch ends there, and no others"),
        (TimersSubject(91, 91), "no timer is due at height 91, 1 state watch ends there, and no others"),
        (TimersSubject(91, 95), "no timer is due in 91..=95, 2 state watches end there, and no others"),
    ],
)
def test_statement_tells_state_watches_from_timers_that_are_due(subject, sentence) -> None:
    """A watch stands in the calendar one block after its expiry; that is no height at which it fires."""

    def record(height: int, number: int, kind: Trigger) -> tuple[bytes, bytes]:
        timer = Timer(
            RECORD_VERSION, bytes(20), height, bytes([number]) * 32, number, "h", b"", bytes(20), 9, 0, 90, 1,
            terms=GlobalboxTerms(kind, bytes(20), bytes(16)),
        )  # fmt: skip
        return keys.timer_key(height, timer.timer_id), encode_timer(timer)

    watch, height = Trigger.STATE_WATCH, Trigger.HEIGHT
    state = make_state(dict([record(80, 1, height), record(91, 2, watch), record(92, 3, watch)]))
    assert str(state.prove(subject).verify(state.root)).endswith(sentence)


@pytest.mark.spec("F-04", "F-05")
def test_timers_stand_in_the_order_of_insertion_when_heights_are_equal() -> None:
    """The records behind the root give the order in which a height fires."""
    state = small()
    statement = state.prove(TimersSubject(0, 1005)).verify(state.root)
    assert [(timer.height, timer.sequence) for timer in statement.records] == [(7, 9), (1000, 8), (1005, 6), (1005, 7)]


def test_proof_of_an_empty_state_says_that_nothing_is_there() -> None:
    """No nodes, no values: the digest of an empty tree is known."""
    state = make_state({})
    proof = state.prove(TimersSubject(0, U64_MAX))
    assert (proof.nodes, proof.values) == ((), ())
    assert not proof.verify(state.root).is_present


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "the proof has version 2; this verifier reads version 1"),
        ({"other_digests": OTHERS[:3]}, "the other namespaces need 4 digests of 32 bytes each"),
        ({"other_digests": (*OTHERS[:3], b"")}, "the other namespaces need 4 digests of 32 bytes each"),
        ({"values": ()}, "the tree has 1 entries within the range, the proof 0 values"),
        ({"values": (b"x",)}, f"the value under the key {ADDRESS.hex()} is not the one that the tree commits to"),
        ({"nodes": ()}, "the proof leads to the state root 0x"),
        ({"other_digests": OTHERS}, "the proof leads to the state root 0x"),
    ],
)
def test_verify_names_the_step_when_a_part_is_changed(changes, message) -> None:
    """Every part of a proof counts."""
    state = small()
    with pytest.raises(ProofError) as refused:
        replace(state.prove(SUBJECT), **changes).verify(state.root)
    assert str(refused.value).startswith(message)


ID = b"\5" * 32
TIMER = timer_record(7, ID, 1)
ACCOUNT_KEY, SLOT_KEY, TIMER_KEY = keys.account_key(ADDRESS), keys.storage_key(ADDRESS, b"a"), keys.timer_key(7, ID)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            ACCOUNT_KEY,
            b"\xff",
            f"the value under the key {ACCOUNT_KEY.hex()} is no record: Expected `array`, got `int`",
        ),
        (
            ACCOUNT_KEY,
            b"\x9a" + pack(Account())[1:] + b"\x91" * 9999,
            f"the value under the key {ACCOUNT_KEY.hex()} is no record: ",
        ),
        (ACCOUNT_KEY, pack(Account()) + b"\0", f"the value under the key {ACCOUNT_KEY.hex()} is no record: "),
        (ACCOUNT_KEY, pack(Account(version=9)), f"account record {ACCOUNT_KEY.hex()} has version 9, not 2"),
        (ACCOUNT_KEY, b"\x91\x02", f"the record under the key {ACCOUNT_KEY.hex()} is not in its one encoding"),
        (SLOT_KEY, pack((b"b", b"")), f"the slot named 62 does not belong under the key {SLOT_KEY.hex()}"),
        (SLOT_KEY, b"\x92\xa1\xff\xa0", f"the value under the key {SLOT_KEY.hex()} is no record: "),
        (TIMER_KEY, timer_record(8, ID, 1), f"the timer {ID.hex()} does not belong under the key {TIMER_KEY.hex()}"),
        (TIMER_KEY, timer_record(-7, ID, 1), f"the timer {ID.hex()} does not belong under the key {TIMER_KEY.hex()}"),
        (TIMER_KEY, TIMER.replace(b"\x03", b"\x01", 1), f"timer record {TIMER_KEY.hex()} has version 1, not 3"),
        (TIMER_KEY, b"\x9f" + TIMER[1:] + b"\x91" * 9999, f"the value under the key {TIMER_KEY.hex()} is no record: "),
    ],
)
def test_verify_names_the_record_when_the_state_holds_none_of_its_kind(key, value, message) -> None:
    """A root that somebody made up over malformed records proves nothing about them."""
    state = make_state({key: value})
    subject = {b"a": SUBJECT, b"s": StorageSubject(ADDRESS), b"t": TimersSubject(7, 7)}[key[:1]]
    with pytest.raises(ProofError) as refused:
        state.prove(subject).verify(state.root)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("octets", "message"),
    [
        (b"", "the bytes are no proof: Input data was truncated"),
        (b"\x80", "the bytes are no proof: Expected `array`, got `object`"),
        (b"\x95\x01\x92\xa7account\xc4\x01a", "the bytes are no proof: Address must be 20 bytes"),
        (b"\x95\x01\x93\xa6timers\x05\x04", "the bytes are no proof: "),
        (b"\x95\x01\x92\xa3one\x05", "the bytes are no proof: Invalid value 'one'"),
        (b"\x95\x01\x92\xa1\xff", "the bytes are no proof: 'utf-8'"),
        (b"\x95" + b"\x91" * 100_000, "the bytes are no proof: "),
        (b"\x95\x01\xdd\xff\xff\xff\xff", "the bytes are no proof: "),
    ],
)
def test_bytes_are_refused_when_they_are_no_proof(octets, message) -> None:
    """The message says why."""
    with pytest.raises(ProofError) as refused:
        Proof.from_bytes(octets)
    assert message in str(refused.value)


def test_bytes_are_refused_when_they_are_encoded_in_another_way() -> None:
    """A number in more bytes than it needs, or anything at the end, is another proof, and there is only one."""
    octets = small().prove(SUBJECT).to_bytes()
    assert octets[:2] == b"\x95\x01"
    with pytest.raises(ProofError, match="not the one encoding"):
        Proof.from_bytes(b"\x95\xcc\x01" + octets[2:])
    with pytest.raises(ProofError, match="trailing characters"):
        Proof.from_bytes(octets + b"\0")
    with pytest.raises(ProofError, match="at most length 5"):
        Proof.from_bytes(b"\x96" + octets[1:] + b"\0")
    assert msgpack.decode(octets)[0] == 1


def test_json_holds_names_and_hexadecimal_text() -> None:
    """People and other programs can read a proof."""
    state = make_state({keys.timer_key(7, ID): TIMER})
    assert state.prove(TimersSubject(1, 9)).to_json() == {
        "version": 1,
        "subject": {"kind": "timers", "first": 1, "last": 9},
        "other_digests": ["0x" + "00" * 32] * 4,
        "nodes": [{"kind": "page", "entries": f"0x{7:016x}{ID.hex()}{sha256(TIMER).hexdigest()}"}],
        "values": ["0x" + TIMER.hex()],
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (None, "expected an object"),
        ({"values": None}, "Expected `array`, got `null`"),
        ({"subject": "0x00"}, "Expected `array`, got `bytes`"),
        ({"subject": {}}, "unknown kind None"),
        ({"subject": {"kind": ["timers"]}}, "unknown kind ['timers']"),
        ({"subject": {"kind": "timers", "first": 1}}, "the field last is missing"),
        ({"subject": {"kind": "timers", "first": 2, "last": 1}}, "first height 2 lies above last height 1"),
        ({"subject": {"kind": "page", "entries": "0x"}}, "Invalid value 'page'"),
        ({"version": True}, "Expected `int`, got `bool`"),
        ({"version": 2**64}, "can't serialize ints"),
        ({"values": ["00"]}, "'00' does not begin with 0x"),
        ({"values": ["0x0"]}, "non-hexadecimal number found"),
        ({"values": ["0xAB"]}, "not the one text of the proof"),
        ({"more": 1}, "not the one text of the proof"),
    ],
)
def test_json_is_refused_when_it_is_no_proof(changes, message) -> None:
    """Missing, unknown and misspelt parts are named."""
    document = make_state({}).prove(TimersSubject(1, 9)).to_json()
    with pytest.raises(ProofError) as refused:
        Proof.from_json(changes if changes is None else document | changes)
    assert message in str(refused.value)


def test_json_is_refused_when_it_is_nested_too_deep() -> None:
    """A document cannot exhaust the stack."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ProofError, match="recursion"):
        Proof.from_json({"version": 1, "subject": deep, "other_digests": [], "nodes": [], "values": []})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: AccountSubject(b"a"), "Address must be 20 bytes, got 1 bytes"),
        (lambda: SlotSubject(b"a", b""), "Address must be 20 bytes, got 1 bytes"),
        (lambda: StorageSubject(b"a"), "Address must be 20 bytes, got 1 bytes"),
        (lambda: TimerSubject(-1, bytes(32)), f"height is -1, outside 0..={U64_MAX}"),
        (lambda: TimerSubject(1, b"a"), "Hash32 must be 32 bytes, got 1 bytes"),
        (lambda: TimersSubject(0, 2**64), f"last height is {2**64}, outside 0..={U64_MAX}"),
        (lambda: TimersSubject(2**64, 0), f"first height is {2**64}, outside 0..={U64_MAX}"),
        (lambda: TimersSubject(5, 3), "first height 5 lies above last height 3"),
    ],
)
def test_subject_is_refused_when_it_cannot_be(build, message) -> None:
    """Value and rule are named before any proof is made."""
    with pytest.raises(Rejection) as refused:
        build()
    assert refused.value.what == message


def test_prove_stops_when_the_store_has_no_value_for_a_key() -> None:
    """A tree and its values belong together."""
    state = small()
    with pytest.raises(InvariantError, match="the store no value for it"):
        prove(state.roots, {}.get, SUBJECT)
