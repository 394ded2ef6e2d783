"""The application of a network: what it answers, refuses and keeps, without an engine."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.network.nodes import ACCOUNTS, VALIDATORS, Member, signed
from trailboss.chain.drafts import draft_deployment
from trailboss.chain.replay import verify_chain
from trailboss.codec.wire import decode_transaction, encode_transaction
from trailboss.crypto.digest import sha256
from trailboss.execution.genesis import encode_genesis
from trailboss.model.transactions import ExecuteActor, Transfer, sign_transaction
from trailboss.network.application import OK, REFUSED, REVERTED, Committee
from trailboss.network.halts import Halt, NetworkHaltError
from trailboss.primitives.errors import InvariantError, RejectionReason

ALICE, BOB = ACCOUNTS[0], ACCOUNTS[1]
HEARTBEAT = b"""
def init(payload):
    pvm_host.set_state(b"beats", b"")
    pvm_host.schedule_timer(pvm_host.block_height() + 2, b"")

def handle_timer(payload):
    pvm_host.set_state(b"beats", pvm_host.get_state(b"beats") + b"x")
    pvm_host.schedule_timer(pvm_host.block_height() + 2, b"")
"""


def transfer(member: Member, *, waiting: int = 0, amount: int = 3) -> bytes:
    return signed(member.chain, Transfer(BOB.address, amount), waiting=waiting)


def test_block_is_committed_when_the_network_agrees(member: Member) -> None:
    """Results, app hash, tips to the proposer's account, and the mempool follows."""
    assert member.begin() == member.chain.blocks[0].hash
    assert member.application.standing() == (0, member.chain.head.hash)
    raw = transfer(member)
    assert member.application.check_transaction(raw).rejection is None
    assert member.application.propose(2**20) == [raw]
    assert member.application.check_proposal([raw]) is None
    results, app_hash = member.finalize([raw], proposer=2)
    assert [result.code for result in results] == [OK]
    assert member.application.standing()[0] == 0
    assert member.application.still_waits(raw)
    member.application.commit()
    assert member.application.standing() == (1, app_hash)
    assert bytes(member.chain.head.header.proposer) == VALIDATORS[2].fee_account
    assert member.chain.head.header.timestamp_ms == 1_001_000
    assert not member.application.still_waits(raw)
    assert verify_chain(member.chain).ok


def test_timer_fires_in_a_block_without_transactions(new_member: Callable[..., Member]) -> None:
    """From height alone: two members that saw other mempools reach one hash."""
    left, right = new_member(), new_member()
    instruction, actor = draft_deployment(ALICE.address, HEARTBEAT, b"")
    deploy, fund = signed(left.chain, instruction), signed(left.chain, Transfer(actor, 10**15), waiting=1)
    left.application.check_transaction(deploy)
    for transactions in ([deploy, fund], [], [], [], []):
        hashes = set()
        for member in (left, right):
            hashes.add(member.finalize(transactions)[1])
            member.application.commit()
        assert len(hashes) == 1
    assert left.chain.storage(actor)[b"beats"] == right.chain.storage(actor)[b"beats"] == b"xx"


def test_block_is_finalized_again_from_the_committed_state(member: Member) -> None:
    """An engine that was killed asks for the same height, perhaps with another block."""
    raw = transfer(member)
    first = member.finalize([raw])
    assert member.finalize([raw]) == first
    assert member.finalize([])[1] != first[1]
    member.application.forget()
    assert member.finalize([raw]) == first
    member.application.commit()
    with pytest.raises(InvariantError, match="no block is staged"):
        member.application.commit()


def test_nothing_of_a_finalized_block_is_on_disk(new_member: Callable[..., Member], tmp_path: Path) -> None:
    """A process that ends between FinalizeBlock and Commit opens at the block before, and after it at the block."""
    member = new_member(tmp_path / "chain")
    raw = transfer(member)
    first = member.finalize([raw])
    member.close()
    member.open()
    assert member.application.standing()[0] == 0
    assert member.finalize([raw]) == first
    member.application.commit()
    member.close()
    member.open()
    assert member.application.standing() == (1, first[1])
    member.close()


def forged(raw: bytes, **fields: object) -> bytes:
    return encode_transaction(replace(decode_transaction(raw), **fields))


def resigned(raw: bytes, **fields: object) -> bytes:
    return encode_transaction(sign_transaction(replace(decode_transaction(raw), **fields), ALICE.private_key))


@pytest.mark.parametrize(
    ("make", "reason", "words"),
    [
        (lambda _: [b""], RejectionReason.INVALID_DATA, "transaction 0 of 1"),
        (lambda raw: [raw[:-1]], RejectionReason.INVALID_DATA, "transaction 0 of 1"),
        (lambda raw: [raw + b"\x00"], RejectionReason.INVALID_DATA, "transaction 0 of 1"),
        (lambda raw: [raw, raw], RejectionReason.NONCE_MISMATCH, "transaction 1 of 2"),
        (lambda raw: [resigned(raw, nonce=1)], RejectionReason.NONCE_GAP, "transaction 0 of 1"),
        (lambda raw: [forged(raw, cells_limit=9_999)], RejectionReason.INVALID_SIGNATURE, "transaction 0 of 1"),
        (lambda raw: [forged(raw, signature=bytes(65))], RejectionReason.INVALID_SIGNATURE, "not signed"),
        (lambda raw: [resigned(raw, chain_id=8)], RejectionReason.CHAIN_ID_MISMATCH, "chain"),
        (lambda raw: [resigned(raw, max_fee_per_cycle=0)], RejectionReason.BASEFEE_TOO_LOW, "basefee"),
        (lambda raw: [resigned(raw, cycles_limit=1)], RejectionReason.OUT_OF_CYCLES, "cycles"),
        (
            lambda raw: [resigned(raw, instruction=Transfer(BOB.address, 10**18))],
            RejectionReason.INSUFFICIENT_BALANCE,
            "transaction 0 of 1",
        ),
    ],
    ids=["empty", "cut", "longer", "twice", "gap", "forged", "unsigned", "foreign", "cheap", "tight", "poor"],
)
def test_proposal_is_refused_when_no_honest_validator_makes_it(
    member: Member, make: Callable[[bytes], list[bytes]], reason: RejectionReason, words: str
) -> None:
    """The place and the rule are named; FinalizeBlock of the same comes through with a result for each, everywhere."""
    proposal = make(transfer(member))
    rejection = member.application.check_proposal(proposal)
    assert rejection is not None
    assert rejection.reason is reason
    assert words in rejection.what
    results, _ = member.finalize(proposal)
    assert len(results) == len(proposal)
    assert results[-1].code == REFUSED


def test_failed_and_refused_transactions_have_results_of_their_own(member: Member) -> None:
    """A reverted one stands in our block and is charged; one that does not follow its nonce does not."""
    missing = signed(member.chain, ExecuteActor(actor=BOB.address, handler="x", payload=b""))
    again = resigned(transfer(member, waiting=1), nonce=5)
    results, _ = member.finalize([missing, again, transfer(member, waiting=1)])
    assert [result.code for result in results] == [REVERTED, REFUSED, OK]
    assert results[0].cycles_used > 0
    member.application.commit()
    assert len(member.chain.head.transactions) == 2


def test_block_that_holds_a_waiting_transaction_twice_is_committed(member: Member) -> None:
    """The network may decide what this node voted against: the transaction runs once, and waits no longer."""
    raw = transfer(member)
    assert member.application.check_transaction(raw).rejection is None
    results, _ = member.finalize([raw, raw])
    assert [result.code for result in results] == [OK, REFUSED]
    member.application.commit()
    assert len(member.chain.head.transactions) == 1
    assert not member.application.still_waits(raw)
    assert member.mempool.refusal(sha256(raw)) is None


def test_own_proposal_is_never_refused_and_fits(new_member: Callable[..., Member]) -> None:
    """The mempool's choice passes the check of a member that does not know the transactions, at every size."""
    member, other = new_member(), new_member()
    for sender in range(3):
        for waiting in range(5):
            raw = signed(member.chain, Transfer(BOB.address, 1), sender, waiting=waiting)
            assert member.application.check_transaction(raw).rejection is None
    for octets_max in (0, 200, 500, 1_000, 2**20):
        proposal = member.application.propose(octets_max)
        assert sum(len(raw) + 8 for raw in proposal) <= octets_max
        assert other.application.check_proposal(proposal) is None
    assert len(member.application.propose(2**20)) == 15


@pytest.mark.parametrize(
    ("field", "value"),
    [("chain_id", "trailboss-7-0"), ("time", 1), ("validators", []), ("app_state", b"{}"), ("initial_height", 2)],
)
def test_node_halts_when_the_engine_has_another_genesis(member: Member, field: str, value: object) -> None:
    """Which value differs, and both."""
    genesis = member.genesis
    given = {
        "chain_id": genesis.engine_chain_id(),
        "time": 1_000_000,
        "validators": [(each.public_key, each.power) for each in VALIDATORS],
        "app_state": encode_genesis(genesis),
        "initial_height": 1,
    } | {field: value}
    with pytest.raises(NetworkHaltError, match=field) as caught:
        member.application.begin(*given.values())
    assert caught.value.halt is Halt.OTHER_GENESIS


def test_node_halts_when_the_engine_skips_a_block_or_names_a_stranger(member: Member) -> None:
    """Nothing changes then."""
    with pytest.raises(NetworkHaltError, match="finalizes block 2, and the chain has committed block 0") as caught:
        member.application.finalize(2, 0, (), Committee(VALIDATORS[0].identity))
    assert caught.value.halt is Halt.HEIGHT_GAP
    with pytest.raises(NetworkHaltError, match="which genesis does not state"):
        member.application.finalize(1, 0, (), Committee(bytes(20)))
    assert member.application.standing()[0] == 0


def test_attendance_counts_the_last_blocks(member: Member) -> None:
    """Who proposed, who signed the block before, and when last; a block that is finalized again counts once."""
    first, second, third, fourth = (each.identity for each in VALIDATORS)
    for committee in (
        Committee(first),
        Committee(second, (first, second, third), (fourth,)),
        Committee(second, (first, second, third, fourth)),
    ):
        height = member.chain.height + 1
        for _ in range(2):
            member.application.finalize(height, (1_000_000 + height) * 1_000_000, (), committee)
        member.application.commit()
    found = member.application.participation.attendance()
    assert [each.proposed for each in found] == [1, 2, 0, 0]
    assert [(each.signed, each.blocks, each.last_signed) for each in found] == [(2, 2, 2)] * 3 + [(1, 2, 2)]
