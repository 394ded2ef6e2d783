"""What a light proof says of one chain: timers that live, fired, failed, were cancelled, expired, or never were."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.integration.helpers import deploy_puppet, perform, schedule, script, step
from tests.model.committee import CHAIN_ID, Committee
from trailboss.chain.proofs import AccountSubject, SlotSubject, StorageSubject, TimersSubject, TimerSubject
from trailboss.crypto.digest import merkle_root
from trailboss.light.commits import Support
from trailboss.light.endings import EndingProof, prove_ending
from trailboss.light.engine_values import Number
from trailboss.light.proof import LightProof
from trailboss.model.blocks import Status, receipts_root
from trailboss.model.events import EventRecord
from trailboss.primitives.errors import ProofError
from trailboss.primitives.octets import Hash32
from trailboss.testing import LocalChain

COMMITTEE = Committee((10, 10, 10, 10))
FAR = 1_000


class World:
    """A chain in which timers have ended in different ways, and what became of them."""

    def __init__(self, chain: LocalChain) -> None:
        self.chain = chain
        self.actor = deploy_puppet(chain)
        self.live = schedule(self.actor, FAR)
        self.cancelled = schedule(self.actor, FAR + 1)
        soon = chain.height + 4
        self.fired = schedule(self.actor, soon, b"fine")
        self.reverted = schedule(self.actor, soon, script(step("raise", "no")))
        perform(self.actor, step("cancel_timer", self.cancelled))
        poor = deploy_puppet(chain, value=0)
        self.unfunded = schedule(poor, chain.height + 2)
        chain.mine(8)

    def light(self, subject) -> LightProof:
        """Prove what the state holds after the head."""
        ours = self.chain.block().header
        return LightProof(COMMITTEE.sign(ours), ours, self.chain.prove(subject))

    def ending(self, timer_id: bytes) -> LightProof:
        """Prove how a timer ended."""
        for height in range(self.chain.height + 1):
            block = self.chain.block(height)
            shown = prove_ending(timer_id, block.receipts, block.events)
            if shown is not None:
                return LightProof(COMMITTEE.sign(block.header), block.header, shown)
        raise LookupError(timer_id.hex())


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with LocalChain() as chain:
        yield World(chain)


def words(proof: LightProof) -> str:
    """Send a proof around, and return what it says."""
    sent = json.dumps(proof.to_json())
    assert LightProof.from_json(json.loads(sent)) == proof
    return str(proof.verify(COMMITTEE.validators, CHAIN_ID))


def test_live_timer_is_proven_and_an_absent_one_too(world) -> None:
    after = world.chain.height
    live = world.light(TimerSubject(FAR, world.live))
    assert words(live) == (
        f"timer {Hash32(world.live)} of actor {world.actor.address} is due at height 1,000; "
        f"it is live after block {after}"
    )
    found = live.verify(COMMITTEE.validators, CHAIN_ID)
    assert found.support == Support(4, 4, 40, 40)
    assert (found.hash, found.header.height) == (world.chain.block().hash, after)
    assert words(world.light(TimerSubject(FAR + 1, world.cancelled))) == (
        f"no timer {Hash32(world.cancelled)} that is due at height 1,001 exists after block {after}"
    )
    assert words(world.light(TimersSubject(0, 2 * FAR))) == (
        f"after block {after}, 1 timer is due in 0..=2,000, and no other"
    )


def test_accounts_and_storage_are_proven(world) -> None:
    after, address = world.chain.height, world.actor.address
    assert words(world.light(AccountSubject(address))).startswith(f"after block {after}, actor {address} has ")
    assert words(world.light(SlotSubject(address, b"fires"))).endswith(" holds 0x31")
    assert (
        words(world.light(StorageSubject(address)))
        == f"after block {after}, actor {address} has 2 slots, and no others"
    )


def test_every_end_of_a_timer_is_proven(world) -> None:
    names = {world.fired: "fired", world.reverted: "fired, and reverted with E1210 pvm_error"}
    names |= {world.cancelled: "ended: cancelled", world.unfunded: "ended: unfunded"}
    for timer_id, end in names.items():
        proof = world.ending(timer_id)
        assert words(proof) == f"in block {proof.header.height}, timer {Hash32(timer_id)} {end}"
    failed = world.ending(world.reverted).verify(COMMITTEE.validators, CHAIN_ID).proven
    assert failed.receipt.status is Status.REVERTED
    assert failed.receipt.timer_id == world.reverted
    # The event of a timer that no account could pay for is the block's own.
    assert world.ending(world.unfunded).verify(COMMITTEE.validators, CHAIN_ID).proven.receipt is None


def test_genesis_state_is_proven_by_the_first_header_of_the_engine() -> None:
    with LocalChain() as chain:
        ours = chain.block(0).header
        proof = LightProof(COMMITTEE.sign(ours), ours, chain.prove(AccountSubject(chain.accounts[0].address)))
        assert words(proof).startswith(f"after block 0, account {chain.accounts[0].address} has ")


def test_timer_that_has_not_ended_has_no_proof_of_an_end(world) -> None:
    blocks = [world.chain.block(height) for height in range(world.chain.height + 1)]
    assert {prove_ending(world.live, block.receipts, block.events) for block in blocks} == {None}


def refusal(proof: LightProof) -> str:
    with pytest.raises(ProofError) as refused:
        proof.verify(COMMITTEE.validators, CHAIN_ID)
    return str(refused.value)


def test_refusal_names_the_step_that_failed(world) -> None:
    proof, fired = world.light(TimerSubject(FAR, world.live)), world.ending(world.fired)
    before = world.chain.block(1).header
    assert refusal(replace(proof, header=before)).startswith("the validators signed the header 0x")
    assert refusal(replace(proof, signed=COMMITTEE.sign(before))).startswith("the validators signed the header 0x")
    late = replace(COMMITTEE.header(proof.header), height=Number(proof.header.height + 2))
    assert refusal(replace(proof, signed=COMMITTEE.commit(late))) == (
        f"the header of height {proof.header.height} is signed at height {proof.header.height + 2}, "
        "not at the height after it"
    )
    other = replace(proof, header=before, signed=COMMITTEE.sign(before))
    assert refusal(other).startswith("the proof leads to the state root 0x")
    assert refusal(replace(other, shown=fired.shown)).startswith("the proof leads to the receipts root 0x")
    assert refusal(replace(fired, shown=replace(fired.shown, timer_id=world.live))) == (
        f"nothing in the receipt or event shown ends timer {Hash32(world.live)}"
    )
    assert "Hash32 must be 32 bytes" in refusal(replace(fired, shown=replace(fired.shown, timer_id=b"short")))
    assert "a step of a path is a side" in refusal(
        replace(fired, shown=replace(fired.shown, path=(b"\2" + bytes(32),)))
    )


@pytest.mark.parametrize("leaf", [b"", b"\xc1", b"\x91\x01", b"\x94\x01\x01\x01\x01", b"\x9f" + b"\x01" * 15])
def test_leaf_that_is_no_receipt_and_no_event_is_refused(leaf) -> None:
    """Validators who sign nonsense prove nothing by it."""
    root = receipts_root((), ())
    with pytest.raises(ProofError, match="the proof leads to the receipts root"):
        EndingProof(bytes(32), leaf, ()).verify(root)
    with pytest.raises(ProofError, match="the leaf is neither a receipt nor an event"):
        EndingProof(bytes(32), leaf, ()).verify(merkle_root([leaf]))


def test_event_of_an_actor_ends_no_timer() -> None:
    """An event under another name is none of the chain's, whatever timer it names."""
    event = EventRecord("fired", bytes(20), b"", bytes(32))
    assert prove_ending(bytes(32), (), (event,)) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: None, "the light proof has version None"),
        (lambda document: document | {"version": 2}, "the light proof has version 2; this verifier reads 1"),
        (lambda document: document | {"more": 1}, "not the one text of the light proof"),
        (lambda document: document | {"signed_header": {}}, "the signed header is none of the engine's"),
        (lambda document: document | {"header": {}}, "the field version is missing"),
        (lambda document: document | {"header": document["header"] | {"height": 2**70}}, "the JSON is no light proof"),
        (lambda document: document | {"header": document["header"] | {"height": "12"}}, "does not begin with 0x"),
        (lambda document: document | {"state": {}}, "the JSON is no proof"),
        (lambda document: document | {"state": None}, "the JSON is no proof"),
        (lambda document: document | {"ending": {"timer_id": "0x", "leaf": "0x", "path": []}}, "not the one text"),
        (lambda document: document | {"ending": 5}, "expected an object"),
    ],
)
def test_document_is_refused_with_a_reason_when_it_is_no_light_proof(world, change, message) -> None:
    document = json.loads(json.dumps(world.light(TimerSubject(FAR, world.live)).to_json()))
    with pytest.raises(ProofError, match=message):
        LightProof.from_json(change(document))


def test_verifier_loads_no_store_and_no_network() -> None:
    """A verifier needs neither the database nor anything that talks."""
    source = (
        "import sys, trailboss.light.proof\n"
        "print(*sorted(name for name in sys.modules if name.split('.')[0] in "
        "('lmdb', 'sortedcontainers', 'asyncio', 'http', 'httpx', 'google', 'wasmtime') "
        "or name.startswith(('trailboss.chain', 'trailboss.execution', 'trailboss.network', 'trailboss.state.store'))))"
    )
    finished = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == ""
