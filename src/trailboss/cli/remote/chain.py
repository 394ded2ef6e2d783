"""The chain of a node, as commands use it: read at one height, and again after each change. Decision: D-77."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from time import monotonic, sleep
from typing import Any, Final

from msgspec.structs import asdict, replace

from trailboss.chain import ChainReader, proofs
from trailboss.chain.block_records import decode_block
from trailboss.chain.development import DEPLOYER, development_account
from trailboss.chain.drafts import Terms, draft_transaction
from trailboss.chain.history import BlockSequence
from trailboss.chain.jobs import JobFailure
from trailboss.cli.errors import NotFound, Refused
from trailboss.cli.remote.client import END, REORG, Client, octets_of, read, read_error
from trailboss.cli.remote.view import RemoteRecords, RemoteStore
from trailboss.codec.layout import INSTRUCTION
from trailboss.codec.wire import encode_submission
from trailboss.execution.genesis import decode_genesis
from trailboss.forecast.quote import ExpectedRun, Quote, quote_timer
from trailboss.mechanisms.registry import Succession
from trailboss.model.blocks import Block
from trailboss.model.events import EventRecord
from trailboss.model.transactions import Instruction, Transaction, transaction_hash
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import ZERO_ADDRESS, Address, Hash32
from trailboss.rehearsal.forecast import ForecastTimer, QueueForecast
from trailboss.rehearsal.overrides import Overrides, to_document
from trailboss.views import Answer, Event, Receipt, TimerLife, explain_timer
from trailboss.views.explain.life import EarlierEvents
from trailboss.views.records import Printed, TimerEntry, event_view, receipt_view, refused_receipt
from trailboss.views.timer_list import ALL, ENDED, TimerFilter, list_live
from trailboss.views.trace.tree import TreeNode

WAIT_MS: Final = 10_000  # most time that a node waits for a block
MILLISECONDS: Final = 1_000
POLL_SECONDS: Final = 0.05
ADVANCE_BLOCKS: Final = 5_000  # blocks of one request: seconds at most, so that Ctrl-C is obeyed
SUBMITTED_MAX: Final = 50
FOUND_MAX: Final = 20
PROOFS_MAX: Final = 5  # requests until a proof is of the present height: the chain goes on meanwhile
FIRST_ROWS: Final = 64
MORE_ROWS: Final = 1_000  # rows of the first page of a list, and of the later ones: most commands need only the first
REFUSED: Final = "refused"


class RemoteChain(ChainReader):
    """A node's chain at one height; each change moves on to a later height."""

    store: RemoteStore

    def __init__(self, url: str) -> None:
        """Read the present chain of a node; raises `NotFound` if there is none, `Refused` if it refuses."""
        self._client = Client(url)
        self.url = self._client.url
        self.refresh()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def refresh(self) -> None:
        """Read the present chain."""
        opened = self._client.post("/state/views")
        self.genesis = decode_genesis(octets_of(opened["genesis"]))
        self.params = self.genesis.params()
        self._mechanisms = Succession(self.genesis.mechanism, self.params)
        head = decode_block(octets_of(opened["head"]))
        self.store = RemoteStore(self._client, opened["view"], opened["height"], Hash32.parse(opened["state_root"]))
        records = RemoteRecords(self._client, opened["view"], head)
        interval_ms = self.params.governance.block_interval_ms
        self.blocks = BlockSequence(records, interval_ms, head, opened["first_block"])

    # Sending

    def submit(self, transactions: Sequence[Transaction]) -> list[Receipt]:
        """Send signed transactions and wait for their receipts, in order."""
        starts = range(0, len(transactions), SUBMITTED_MAX)
        return [each for first in starts for each in self._submit(transactions[first : first + SUBMITTED_MAX])]

    def waiting(self, address: Address) -> int:
        """Return how many transactions of an account wait at the node."""
        account = self.account(address)
        coming: int = self._client.get(f"/account/{address}/nonce")["next_nonce"]
        return coming - (0 if account is None else account.nonce)

    def _submit(self, transactions: Sequence[Transaction]) -> list[Receipt]:
        expected = (HTTPStatus.OK, HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_TIMEOUT)
        octets = encode_submission(transactions)
        answer = self._client.post_octets("/submit_wait", octets, expected=expected, timeout_ms=WAIT_MS)
        if "results" not in answer:
            raise Refused(read_error(answer["error"]))
        self.refresh()
        results = zip(transactions, answer["results"], strict=True)
        return [self._receipt(transaction, result) for transaction, result in results]

    def _receipt(self, transaction: Transaction, result: Mapping[str, Any]) -> Receipt:
        if result["status"] == REFUSED:
            return self._refused(result, transaction.sender)
        if result.get("receipt") is None:
            raise _still_waits(result["tx_hash"])
        return self._receipt_in(result["receipt"]["block_height"], transaction_hash(transaction))

    def _refused(self, answer: Mapping[str, Any], sender: Address = ZERO_ADDRESS) -> Receipt:
        return refused_receipt(read_error(answer["error"]), sender, self.height + 1)

    def _receipt_in(self, height: int, tx_hash: bytes) -> Receipt:
        record = next(item for item in self.blocks[height].receipts if item.origin_hash == tx_hash)
        return receipt_view(record, height)

    def _await(self, tx_hash: str) -> Receipt:
        end = monotonic() + WAIT_MS / MILLISECONDS
        while monotonic() < end:
            found = self._client.get(f"/mempool/transaction/{tx_hash}")
            if found["block_height"] is not None:
                self.refresh()
                return self._receipt_in(found["block_height"], octets_of(tx_hash))
            if found["error"] is not None:
                return self._refused(found)
            sleep(POLL_SECONDS)
        raise _still_waits(tx_hash)

    # What only a development chain does

    def advance_to(self, height: int) -> Iterator[Block]:
        """Have the node build blocks up to a height, and yield them."""
        while self.height < height:
            seen = self.height
            self._client.post("/dev/advance", {"height": min(height, seen + ADVANCE_BLOCKS)})
            self.refresh()
            # A node at an interval may have built a block or two more by now.
            yield from self.blocks.since(seen + 1)

    def reorg(self, depth: int) -> None:
        """Drop blocks, and their transactions."""
        self._client.post("/dev/reorg", {"depth": depth, "keep_transactions": False})
        self.refresh()

    def mark(self) -> str:
        """Return a mark of the present point, for `go_back`."""
        return str(self._client.post("/dev/snapshot")["snapshot"])

    def go_back(self, mark: str) -> None:
        """Go back to a mark."""
        self._client.post("/dev/revert", {"snapshot": int(mark) if mark.isascii() and mark.isdecimal() else mark})
        self.refresh()

    def impersonate(self, address: Address, instruction: Instruction, terms: Terms) -> Receipt:
        """Send an instruction unsigned, as an account's."""
        return self._develop("/dev/impersonate", **_unsigned(instruction, address, terms))

    def faucet(self, address: Address) -> tuple[int, Receipt]:
        """Give an account money from the node's faucet; return the base units, and the receipt."""
        answer = self._client.post("/faucet", {"address": str(address)})
        return answer["amount"], self._await(answer["tx_hash"])

    def interfere(self, instruction: Instruction) -> Receipt:
        """Send an instruction of development chains, signed by the deployer."""
        deployer = development_account(DEPLOYER)
        waiting = self.waiting(deployer.address)
        return self.submit([draft_transaction(self, instruction, deployer.private_key, waiting=waiting)])[0]

    def set_runner(self, jobs_max: int) -> Receipt:
        """Have so many runner jobs wait for replies at most, 0 for no runner."""
        return self._develop("/dev/runner", jobs_max=jobs_max)

    def reply(self, job: int, answer: object) -> Receipt:
        """Reply to a runner job with a value, or a `JobFailure`."""
        stated = (
            {"failure": answer.reason, "attempts": answer.attempts}
            if isinstance(answer, JobFailure)
            else {"value": answer}
        )
        return self._develop(f"/jobs/{job}/reply", answer=stated)

    def alter_timer(self, call: str, timer_id: Hash32, until: int | None = None) -> Receipt:
        """Postpone a timer, by default to the last height at which it may fire, or ``force`` or ``drop`` it."""
        return self._develop(f"/dev/{call}", timer_id=str(timer_id), **({} if until is None else {"until": until}))

    def _develop(self, path: str, **members: object) -> Receipt:
        answer = self._client.post(path, {**members, "wait": True})
        if answer["status"] == REFUSED:
            return self._refused(answer)
        return self._await(answer["tx_hash"])

    # Reading

    def ask_view(self, actor: Address, handler: str, payload: bytes, sender: Address) -> Answer:
        """Run a handler read-only at the node, with as many cycles as a node allows."""
        members = {"actor": str(actor), "handler": handler, "payload": f"0x{payload.hex()}", "sender": str(sender)}
        found = self._client.post("/view", members)
        printed, error = _read_printed(found), _read_failure(found["error"])
        return Answer(octets_of(found["return_value"]), error, found["cycles_used"], found["cells_used"], printed)

    def simulate(
        self, instruction: Instruction, sender: Address, terms: Terms, height: int | None, overrides: Overrides
    ) -> Receipt:
        """Return the receipt that an instruction would have, as after the block of a height; None for the last one."""
        return self._simulated("/simulate", _unsigned(instruction, sender, terms), height, overrides)

    def simulate_fire(self, timer_id: Hash32, height: int | None, overrides: Overrides) -> Receipt:
        """Return the receipt that a timer's next fire would have, likewise."""
        return self._simulated("/simulate/fire", {"timer_id": str(timer_id)}, height, overrides)

    def forecast(self, blocks: int) -> QueueForecast:
        """Return what becomes of the live timers in the next blocks."""
        rows: list[Mapping[str, Any]] = []
        while True:
            page = self._client.get("/forecast", blocks=blocks, limit=MORE_ROWS, offset=len(rows))
            rows += page["timers"]
            if not page["timers"] or len(rows) >= page["total_count"]:
                break
        timers = tuple(
            replace(read(ForecastTimer, {**row, "error": None}), error=_read_failure(row["error"])) for row in rows
        )
        counts = {name: page[name] for name in ("from_height", "last_height", "has_more", "later")}
        return QueueForecast(timers=timers, **counts)

    def _simulated(self, path: str, asked: Mapping[str, Any], height: int | None, overrides: Overrides) -> Receipt:
        past = {} if height is None else {"height": height}
        return _read_receipt(self._client.post(path, {**asked, **past, "overrides": to_document(overrides)}))

    def prove(self, subject: proofs.Subject) -> proofs.Proof:
        """Return a proof that verifies against ``state_root``; `NotFound` if blocks come faster than proofs."""
        parts = {name: f"0x{each.hex()}" if isinstance(each, bytes) else each for name, each in asdict(subject).items()}
        members = {"kind": subject.__struct_config__.tag, **parts}
        for _ in range(PROOFS_MAX):
            answer = self._client.post("/proof", members)
            if answer["state_root"] == str(self.state_root):
                return proofs.Proof.from_json(answer["proof"])
            self.refresh()
        what = f"the state of {self.url} changes faster than it can be proven"
        raise NotFound(what, "stop its blocks meanwhile: run it with --pace manual")

    def follow(self, since: int | None, name: str | None, emitter: Address | None) -> Iterator[Event | int]:
        """Yield events from a block on, None for new ones, as they come; and the height when the chain goes back."""
        kind, first = "", self.height + 1 if since is None else since
        for line in self._client.stream("/events", kinds="events", since=first, name=name, emitter=emitter):
            field, _, value = line.partition(": ")
            if field == "event":
                kind = value
            elif field == "data" and kind == REORG:
                yield int(json.loads(value)["height"])
            elif field == "data" and kind != END:
                yield _read_event(json.loads(value))

    def latest_events(self, since: int, name: str | None, emitter: Address | None) -> Iterator[Event]:
        """Yield events, the last one first, down to block ``since``; with a name or an emitter only those."""
        return map(_read_event, self._rows("events", name=name, emitter=emitter, from_height=since))

    def list_timers(self, wanted: TimerFilter) -> Iterator[TimerEntry]:
        """Yield the timers that a filter lets pass: live ones by height, then ended ones, the latest first."""
        if wanted.state not in ENDED:
            yield from list_live(self, wanted)
        if wanted.state == ALL or wanted.state in ENDED:
            query: dict[str, object] = {name: getattr(wanted, name) for name in ("state", "actor", "target", "payer")}
            query |= {"from_height": wanted.first, "to_height": wanted.last}
            yield from (read(TimerEntry, row) for row in self._rows("timers/ended", "timers", **query))

    def explain(self, timer_id: Hash32) -> TimerLife:
        """Return a timer's whole life."""
        found = self._client.get(f"{self.store.path}/timers/{timer_id}/blocks")
        earlier = EarlierEvents(scheduled=found["scheduled"], agent=octets_of(found["agent"]))
        # Of a live timer alone: what its fire would end with, and when it comes.
        judged = cache(lambda: self._client.get(f"/timers/{timer_id}/explain", limit=1))
        return explain_timer(
            self,
            timer_id,
            found["heights"],
            earlier,
            attempt=lambda _: _read_failure(judged()["failure"]),
            ahead=lambda *_: judged()["forecast"] or "",
        )

    def quote(self, height: int, gas_limit: int, tip: int | None, actor: Address | None, blocks: int) -> Quote:
        """Quote a timer that is scheduled now, with what the node has ahead of it."""
        found = quote_timer(self, height, gas_limit, tip, actor=actor, blocks=blocks)
        terms = {"tip": tip, "actor": None if actor is None else str(actor), "blocks": blocks}
        expected = self._client.get("/quote", height=height, gas_limit=gas_limit, **terms)["expected"]
        return replace(found, expected=None if expected is None else read(ExpectedRun, expected))

    def _rows(self, path: str, member: str | None = None, **query: object) -> Iterator[Any]:
        """Yield the rows of a list under the view, a page at a time."""
        passed, limit, more = 0, FIRST_ROWS, True
        while more:
            page = self._client.get(f"{self.store.path}/{path}", offset=passed, limit=limit, **query)
            yield from page[member or path]
            passed, limit, more = passed + limit, MORE_ROWS, page["more"]

    def match_timers(self, digits: str) -> list[Hash32]:
        """Return the ids of the timers, live and ended, that begin with hexadecimal digits; a few if there are many."""
        found = self._client.get("/search", prefix=digits, limit=FOUND_MAX)
        return [Hash32.parse(each) for each in found["timers"]]

    def match_transactions(self, digits: str) -> list[Hash32]:
        """Return the hashes of transactions that begin with hexadecimal digits; a few if there are many."""
        found = self._client.get("/search", prefix=digits, limit=FOUND_MAX)
        return [Hash32.parse(each["hash"]) for each in found["transactions"]]

    def trace(self, subject: int | Hash32) -> Any:
        """Return the JSON document of what a block, a transaction or a timer's latest fire did."""
        return self._client.get(f"/trace/{subject}")

    def trace_tree(self, subject: int | Hash32, *, calls: bool, lines: bool) -> TreeNode:
        """Return the same as a tree to draw; see `trailboss.views.trace.records.Trace.tree`."""
        query = {"calls": str(calls).lower(), "lines": str(lines).lower()}
        return read(TreeNode, self._client.get(f"/trace/{subject}/tree", **query))


def _unsigned(instruction: Instruction, sender: Address, terms: Terms) -> dict[str, object]:
    """Return an unsigned transaction as a request states it."""
    stated = {name: value for name, value in asdict(terms).items() if value is not None}
    return {"sender": str(sender), "instruction": INSTRUCTION.show(instruction), **stated}


def _still_waits(tx_hash: str) -> NotFound:
    return NotFound(
        f"transaction {tx_hash} still waits for a block after {WAIT_MS // MILLISECONDS} s",
        "a node that runs with --pace manual builds blocks only when asked: `trailboss mine`",
    )


def _read_event(row: Mapping[str, Any]) -> Event:
    """Return an event in an answer, read from its bytes as a directory's are."""
    timer_id = b"" if row["timer_id"] is None else octets_of(row["timer_id"])
    record = EventRecord(row["name"], octets_of(row["emitter"]), octets_of(row["raw"]), timer_id)
    return event_view(record, row["block_height"])


def _read_failure(row: Mapping[str, Any] | None) -> ErrorObject | None:
    return None if row is None else read_error(row)


def _read_printed(row: Mapping[str, Any]) -> tuple[Printed, ...]:
    return tuple(read(Printed, line) for line in row["printed"])


def _read_receipt(row: Mapping[str, Any]) -> Receipt:
    """Return a receipt in an answer."""
    amounts = ("cycles_used", "cells_used", "fee_paid", "fee_burned", "tip", "refund", "block_height")
    return Receipt(
        status=row["status"],
        error=_read_failure(row["error"]),
        **{name: row[name] for name in amounts},
        return_value=octets_of(row["return_value"]),
        events=tuple(map(_read_event, row["events"])),
        origin=row["origin"],
        timer_id=None if row["timer_id"] is None else Hash32.parse(row["timer_id"]),
        actor=None if row["actor"] is None else Address.parse(row["actor"]),
        payer=Address.parse(row["payer"]),
        printed=_read_printed(row),
    )
