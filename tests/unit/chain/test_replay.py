"""Replaying: a chain is what its blocks make of its genesis, and where two of them part is told exactly."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.model.histories import history, seeded
from tests.model.session import Session
from trailboss.chain import Chain, replay
from trailboss.chain.block_archive import LastRecord
from trailboss.chain.differences import Difference, Parting, block_differences
from trailboss.chain.drafts import draft_deployment, draft_transaction
from trailboss.chain.history import CHECKPOINT_BLOCKS
from trailboss.chain.replay import compare_chains, replay_to, verify_chain
from trailboss.crypto.signatures import address_of
from trailboss.execution.genesis import Genesis
from trailboss.governance.rules import ECONOMY_KEY, SCHEDULER_KEY
from trailboss.metering.meter import Meter
from trailboss.model.blocks import Block
from trailboss.model.configs import Economy, SchedulerTotals, amount_octets, encode_record
from trailboss.model.events import EventRecord
from trailboss.model.transactions import ExecuteActor, FundActor, Instruction, SetGovParam, Transaction, Transfer
from trailboss.primitives.errors import InvariantError, Rejection
from trailboss.primitives.octets import Address, system_address
from trailboss.vm.engine import Frame, FrameOutcome
from trailboss.vm.host import Host
from trailboss.vm.native import NativeEngine

KEY = b"\x01" * 32
OWNER, OTHER = address_of(KEY), Address(b"\x02" * 20)
GENESIS = Genesis(
    chain_id=1,
    preset="minimal",
    proposer=Address(b"\x09" * 20),
    system_deployers=(OWNER,),
    accounts={OWNER: 10**15, OTHER: 5},
)
SOURCE = b"""
def go(payload):
    pvm_host.set_state(b"seen", payload)
    pvm_host.schedule_timer(pvm_host.block_height() + 3, payload)
    pvm_host.emit_event("went", payload)
    return payload


def handle_timer(payload):
    pvm_host.set_state(b"fired", payload)
"""
DEPLOYMENT, ACTOR = draft_deployment(OWNER, SOURCE, b"salt")


FUNDS = FundActor(ACTOR, 10**13)


class OtherEngine(NativeEngine):
    """An engine that is wrong about one payload: it keeps another one, and returns that."""

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
        if frame.payload == b"odd":
            frame = msgspec.structs.replace(frame, payload=b"bad")
        return super().run(frame, host, meter)


def chain_of(*blocks: Instruction | int | tuple[Instruction, ...], engine: Any = NativeEngine) -> Chain:
    """Return a chain of blocks, each of one instruction or more, and of idle blocks (numbers)."""
    chain = Chain(GENESIS, engine(GENESIS.params()))
    for block in blocks:
        if isinstance(block, int):
            list(chain.advance_to(chain.height + block))
            continue
        instructions = block if isinstance(block, tuple) else (block,)
        transactions: list[Transaction] = []
        for instruction in instructions:
            transactions.append(draft_transaction(chain, instruction, KEY, waiting=len(transactions)))
        assert not chain.build(transactions).refused
    return chain


def call(payload: bytes) -> ExecuteActor:
    return ExecuteActor(ACTOR, "go", payload)


def told(difference: Difference | None) -> tuple[str, str, str]:
    assert difference is not None
    return difference.what, difference.left, difference.right


def kinds(parting: Parting | None) -> list[str]:
    assert parting is not None
    return list(dict.fromkeys(difference.kind for difference in parting.differences))


# Verifying


@pytest.mark.spec("F-83")
@pytest.mark.parametrize("seed", range(4))
def test_chain_is_right_when_it_was_built(seed: int) -> None:
    """Random histories, each block heard of once and in order."""
    random_history = history(seeded(seed))
    session = Session(random_history)
    session.play(random_history.blocks)
    heard: list[Block] = []
    report = verify_chain(session.chain, heard.append, engine=session.chain.engine)
    assert report.ok, report
    assert heard == session.chain.blocks[1:]
    assert report.blocks == session.chain.height
    assert report.transactions == sum(len(block.transactions) for block in heard)
    assert report.fires == session.chain.totals().fired


def test_chain_is_right_when_it_is_mostly_idle() -> None:
    """Runs of idle blocks beyond a checkpoint, a block at its own time, and what the report says of it."""
    chain = chain_of(DEPLOYMENT, CHECKPOINT_BLOCKS + 10)
    chain.build(timestamp_ms=chain.head.header.timestamp_ms + 5)
    list(chain.advance_to(chain.height + 2))
    assert str(verify_chain(chain)) == (
        "1,038 blocks with 1 transaction and 0 fires built again from genesis: every hash, every root and every sum is"
        " right"
    )


def test_failure_names_receipt_and_slot_when_the_head_came_from_another_engine() -> None:
    """The recorded block stands left, the replayed one right, and the reader is told in words."""
    chain = chain_of(DEPLOYMENT, 3, call(b"odd"), engine=OtherEngine)
    report = verify_chain(chain)
    assert not report.ok
    assert (report.blocks, report.transactions, report.fires) == (4, 1, 0)
    assert report.failure is not None
    assert report.failure.height == 5
    assert kinds(report.failure) == ["receipt", "state", "header"]
    (transaction,) = chain.head.receipts
    what, left, right = told(report.failure.first("receipt"))
    assert what == f"receipt 0 (transaction 0x{transaction.origin_hash.hex()}): return_value"
    assert (left, right) == ("'bad'", "'odd'")
    what, left, right = told(report.failure.first("state"))
    assert what == f"slot 'seen' of actor {ACTOR}, the first of 3 keys that differ"
    assert (left, right) == ("'bad'", "'odd'")
    assert "recorded and replayed part at block 5:\n" in str(report)
    assert "    recorded: 'bad'\n    replayed: 'odd'" in str(report)


def test_failure_names_the_fields_when_a_later_block_hides_the_state() -> None:
    """Below the head no state is kept; the block's own fields still say what differs."""
    report = verify_chain(chain_of(DEPLOYMENT, call(b"odd"), 10, engine=OtherEngine))
    assert report.failure is not None
    assert (report.failure.height, kinds(report.failure)) == (2, ["receipt", "header"])
    headers = [difference.what for difference in report.failure.differences if difference.kind == "header"]
    assert headers == ["header receipts_root", "header state_root"]


def rewritten(chain: Chain, height: int, change: Callable[[Block], Block]) -> Chain:
    """Return the chain with one block of its history changed, as a damaged store would have it."""
    archive = chain.blocks.archive
    at = archive._heights.index(height)
    archive._records[at] = change(archive._records[at])
    return chain


def test_failure_names_what_was_changed_when_the_history_was_tampered_with() -> None:
    """A transaction that is refused again, one taken out, a receipt, an event, a time before the parent's."""
    twice = (Transfer(OTHER, 3), Transfer(OTHER, 4))
    cases: list[tuple[Callable[[Block], Block], list[str], str]] = [
        (lambda block: replace(block, transactions=block.transactions[::-1]), ["transaction"], "refused: "),
        (lambda block: replace(block, transactions=block.transactions[:1]), ["receipt"], "absent"),
        (lambda block: replace(block, receipts=block.receipts[:1]), ["receipt"], "transaction 0x"),
        (lambda block: replace(block, events=(EventRecord("note", OTHER, b""),)), ["event"], "absent"),
        (
            lambda block: replace(block, header=msgspec.structs.replace(block.header, timestamp_ms=0)),
            ["header"],
            "17",
        ),
    ]
    for change, expected, words in cases:
        report = verify_chain(rewritten(chain_of(2, twice, 4), 3, change))
        assert report.failure is not None
        assert report.failure.height == 3
        first = report.failure.differences[0]
        assert [first.kind] == expected
        assert first.right.startswith(words), first


class Forger(NativeEngine):
    """An engine through which a program gets at the chain's own records."""

    def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
        forged = {
            b"money": (ECONOMY_KEY, Economy(amount_octets(1), amount_octets(1))),
            b"timers": (SCHEDULER_KEY, SchedulerTotals(8, 2, 2, 1, 1)),
        }.get(frame.payload)
        if forged is not None:
            host.scope.session.overlay.write(forged[0], encode_record(forged[1]))  # type: ignore[attr-defined]
        return super().run(frame, host, meter)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"money", r"after block 2, balances \d+ \+ burned \d+ is not the supply 1"),
        (b"timers", "after block 2, 9 timers are scheduled, 6 ended and 1 live"),
    ],
)
def test_verifying_raises_when_money_or_timers_do_not_add_up(payload: bytes, words: str) -> None:
    """A replay that creates money or loses timers is a bug of the program, found after the block that does it."""
    chain = chain_of(DEPLOYMENT, call(payload), 1, engine=Forger)
    with pytest.raises(InvariantError, match=words):
        verify_chain(chain, engine=Forger(GENESIS.params()))


def test_verifying_keeps_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long chain would not fit the memory a second time."""
    kept = LastRecord()
    monkeypatch.setattr(replay, "LastRecord", lambda: kept)
    chain = chain_of(DEPLOYMENT, call(b"one"), 2, call(b"two"), 5)
    assert verify_chain(chain).ok
    assert [block.height for block in kept.records(0)] == [chain.blocks.record_at(chain.height).height]


# Replaying


def test_replay_stands_at_any_height() -> None:
    """With the state of that height, and goes on from there as the chain did."""
    chain = chain_of(DEPLOYMENT, call(b"one"), 2, call(b"two"), 5)
    heard: list[int] = []
    early = replay_to(chain, 3, lambda block: heard.append(block.height))
    assert heard == [1, 2, 3]
    assert early.head == chain.blocks[3]
    assert early.storage(ACTOR) == {b"seen": b"one"}
    early.build(chain.blocks[4].transactions)
    for height in range(5, chain.height + 1):
        early.build(chain.blocks[height].transactions)
    assert list(early.blocks) == list(chain.blocks)
    assert replay_to(chain, 0).height == 0


def test_replay_is_refused_when_there_is_no_such_block() -> None:
    """Below genesis or above the head."""
    chain = chain_of(3)
    for height in (-1, 4):
        with pytest.raises(Rejection, match=f"there is no block {height}: the last one is block 3"):
            replay_to(chain, height)


def test_replay_stops_when_a_block_comes_out_otherwise() -> None:
    """It never goes on with another chain."""
    with pytest.raises(InvariantError, match=r"block 2 is 0x.*, and a replay gives 0x"):
        replay_to(chain_of(DEPLOYMENT, call(b"odd"), 3, engine=OtherEngine), 4)


# Comparing


def test_chains_do_not_part_when_they_are_equal() -> None:
    """Wholly, or up to the height asked for."""
    blocks = (DEPLOYMENT, call(b"one"), 7)
    longer = chain_of(*blocks, Transfer(OTHER, 1))
    assert compare_chains(chain_of(*blocks), chain_of(*blocks)) is None
    assert compare_chains(chain_of(*blocks), longer, to=9) is None
    assert compare_chains(longer, chain_of(*blocks), to=0) is None


def test_parting_names_the_lengths_when_one_chain_goes_on() -> None:
    """Nothing contradicts; one has more blocks."""
    shorter, longer = chain_of(DEPLOYMENT, 4), chain_of(DEPLOYMENT, 4, Transfer(OTHER, 1), 3)
    parting = compare_chains(longer, shorter, names=("mine", "yours"))
    assert parting is not None
    assert str(parting) == ("mine and yours part at block 6:\n  length\n    mine:  goes on to 9\n    yours: ends at 5")
    assert compare_chains(longer, shorter, to=7, names=("mine", "yours")) == parting


@pytest.mark.parametrize(
    ("fields", "what", "right"),
    [
        ({"chain_id": 2}, "genesis chain_id", "2"),
        ({"preset": "mainnet"}, "genesis preset", "mainnet"),
        ({"proposer": OTHER}, "genesis proposer", str(OTHER)),
        ({"system_deployers": ()}, "genesis system_deployers", "none"),
        ({"accounts": {OWNER: 10**15}}, f"genesis accounts.{OTHER}", "absent"),
        ({"accounts": {OWNER: 10**15, OTHER: 6}}, f"genesis accounts.{OTHER}", "6"),
        ({"overrides": {"timers.max_timers_per_actor": 3}}, "genesis params.timers.max_timers_per_actor", "3"),
    ],
)
def test_parting_names_the_field_when_the_geneses_differ(fields: dict[str, Any], what: str, right: str) -> None:
    """Before any block."""
    parting = compare_chains(chain_of(2), Chain(replace(GENESIS, **fields)))
    assert parting is not None
    assert (parting.height, kinds(parting)) == (0, ["genesis"])
    assert told(parting.first("genesis"))[::2] == (what, right)


def test_parting_names_transaction_and_key_when_the_chains_went_other_ways() -> None:
    """The second transaction of a block in the middle of many, and what its receiver holds."""
    blocks = (DEPLOYMENT, 1_500, call(b"one"), 40)
    left = chain_of(*blocks, (Transfer(OTHER, 1), Transfer(OTHER, 2)), 60, Transfer(OTHER, 9))
    right = chain_of(*blocks, (Transfer(OTHER, 1), Transfer(OTHER, 3)), 1_200)
    parting = compare_chains(left, right)
    assert parting is not None
    assert (parting.height, kinds(parting)) == (1_543, ["transaction", "state", "header"])
    what, ours, theirs = told(parting.first("transaction"))
    assert what == "transaction 1"
    assert ours.startswith(f"Transfer (to {OTHER}, amount 2) by {OWNER}, nonce 3, hash 0x")
    assert theirs.startswith(f"Transfer (to {OTHER}, amount 3) by {OWNER}, nonce 3, hash 0x")
    what, ours, theirs = told(parting.first("state"))
    assert what == f"account {OWNER if OWNER < OTHER else OTHER}, the first of 2 keys that differ"
    assert (ours, theirs) == ("balance 8", "balance 9")


def test_parting_names_the_missing_transaction_when_one_block_has_more() -> None:
    """What is not there is absent."""
    parting = compare_chains(chain_of(3, (Transfer(OTHER, 1), Transfer(OTHER, 2))), chain_of(3, Transfer(OTHER, 1)))
    assert parting is not None
    what, ours, theirs = told(parting.first("transaction"))
    assert (parting.height, what, ours[:8], theirs) == (4, "transaction 1", "Transfer", "absent")
    assert parting.first("receipt") is None


def test_parting_names_the_time_when_only_that_differs() -> None:
    """No transaction, no receipt, no state: a header field."""
    left, right = chain_of(2), chain_of(2)
    left.build(timestamp_ms=left.head.header.timestamp_ms + 1)
    right.build()
    parting = compare_chains(left, right)
    assert parting is not None
    assert [difference.what for difference in parting.differences] == ["header timestamp_ms"]


def test_parting_names_the_receipt_when_the_same_transaction_did_something_else() -> None:
    """Field and both values; below the head the state of a chain that no replay gives is told by its root."""
    blocks = (DEPLOYMENT, 2, (Transfer(OTHER, 1), call(b"odd")))
    parting = compare_chains(chain_of(*blocks), chain_of(*blocks, engine=OtherEngine))
    assert parting is not None
    assert (parting.height, kinds(parting)) == (4, ["receipt", "state", "header"])
    what, ours, theirs = told(parting.first("receipt"))
    assert what.startswith("receipt 1 (transaction 0x")
    assert what.endswith("): return_value")
    assert (ours, theirs) == ("'odd'", "'bad'")
    assert told(parting.first("state"))[0].startswith(f"slot 'seen' of actor {ACTOR}")
    longer = compare_chains(chain_of(*blocks, 1), chain_of(*blocks, 1, engine=OtherEngine))
    assert longer is not None
    what, ours, theirs = told(longer.first("state"))
    assert what == "state after the block"
    assert ours.startswith("root 0x")
    assert not ours.endswith("gives")
    assert theirs.endswith(", which a replay does not give")


def test_parting_names_the_timer_when_only_a_timer_did_something_else() -> None:
    """A fire is a receipt, too."""

    class Late(NativeEngine):
        def run(self, frame: Frame, host: Host, meter: Meter) -> FrameOutcome:
            if frame.handler == "handle_timer":
                frame = msgspec.structs.replace(frame, payload=b"late")
            return super().run(frame, host, meter)

    blocks = (DEPLOYMENT, FUNDS, call(b"soon"), 3)
    left, right = chain_of(*blocks), chain_of(*blocks, engine=Late)
    (fire,) = left.head.receipts
    parting = compare_chains(left, right)
    assert parting is not None
    assert parting.height == 6
    assert told(parting.first("state"))[0] == f"slot 'fired' of actor {ACTOR}"
    assert parting.first("receipt") is None
    assert fire.timer_id


@pytest.mark.parametrize(
    ("left", "right", "what", "values"),
    [
        (call(b"one"), 1, f"account {OWNER}", ("balance", "balance")),
        (
            SetGovParam(b"system:limits:block_cells_max", (10**6).to_bytes(8, "big")),
            SetGovParam(b"system:limits:block_cells_max", (10**6 + 1).to_bytes(8, "big")),
            f"slot 'system:limits:block_cells_max' of actor {system_address(9)}",
            ("1000000", "1000001"),
        ),
    ],
)
def test_parting_tells_the_key_in_words(
    left: Instruction | int, right: Instruction | int, what: str, values: tuple[str, str]
) -> None:
    """Accounts by address, governed parameters by name."""
    parting = compare_chains(chain_of(DEPLOYMENT, left), chain_of(DEPLOYMENT, right))
    assert parting is not None
    found, ours, theirs = told(parting.first("state"))
    assert found.startswith(what)
    assert (ours.startswith(values[0]), theirs.startswith(values[1])) == (True, True)


def test_comparing_is_refused_when_no_chain_goes_that_far() -> None:
    """Neither can be asked."""
    with pytest.raises(Rejection, match="there is no block 9: the last one is block 4"):
        compare_chains(chain_of(3), chain_of(4), to=9)


def test_what_only_follows_from_another_transaction_is_left_out() -> None:
    """Of two blocks whose first transactions differ, receipts after it and events say nothing new."""
    left, right = chain_of(Transfer(OTHER, 1)).head, chain_of((Transfer(OTHER, 2), Transfer(OTHER, 3))).head
    right = replace(right, events=(EventRecord("note", OTHER, b""),))
    assert [difference.what for difference in block_differences(left, right)] == ["transaction 0"]
    alike = replace(right, transactions=left.transactions, receipts=left.receipts)
    (difference,) = block_differences(left, alike)
    assert told(difference) == ("event 0 of the block itself", "absent", f"note of {OTHER}, data 0x")


def test_words_of_an_error_are_no_difference() -> None:
    """No root commits to them; its code is one."""
    block = chain_of(DEPLOYMENT, ExecuteActor(ACTOR, "missing", b"")).head
    (receipt,) = block.receipts
    assert receipt.error is not None
    worded = replace(receipt.error, what="in other words", context={})
    left = replace(block, receipts=(msgspec.structs.replace(receipt, error=worded),))
    assert list(block_differences(left, block)) == []
    recoded = replace(receipt.error, code=1, slug="other")
    (difference,) = block_differences(
        replace(block, receipts=(msgspec.structs.replace(receipt, error=recoded),)), block
    )
    assert told(difference)[0].endswith("): error")
    assert told(difference)[1:] == ("E1 other", f"E{receipt.error.code} {receipt.error.slug}")
