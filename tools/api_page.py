"""The reference page of the node's API: every operation with its parameters, a curl and what it answers.

The answers are those of a node over a small chain, asked in the order of the page; what is long in them is cut.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr
from http import HTTPStatus
from io import StringIO
from textwrap import shorten, wrap
from typing import Any, Final

import httpx
from msgspec import Struct

from trailboss.api.app import create_app
from trailboss.api.errors import HttpReason
from trailboss.api.openapi import TAGS, meanings_of, operation_docs
from trailboss.api.operations import GET, JSON, Operation
from trailboss.api.requests import ADDRESS_RULE, HASH_RULE, PATH, Parameter, integer
from trailboss.api.routes import OPERATIONS
from trailboss.api.routes.submission import OCTETS
from trailboss.chain.drafts import draft_transaction
from trailboss.codec.canonical import encode_canonical
from trailboss.codec.wire import encode_submission
from trailboss.crypto.signatures import address_of
from trailboss.index import Index
from trailboss.mempool import Mempool
from trailboss.model.transactions import Transfer
from trailboss.node.options import BLOCK_TIME_MAX_MS, NodeOptions, Pace, Rhythm
from trailboss.node.service import Node
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.testing import LocalChain

INTRO: Final = """
# The HTTP API

`trailboss dev` and `trailboss node` answer on port 4000. `/openapi.json` (also `/api-docs/openapi.json`) describes
every path, parameter, answer and refusal exactly: the tests send requests that are generated from it. `/swagger-ui`
shows the same as a page, without a script and without requests to other hosts.

- **Numbers** are integers: amounts in base units (10⁹ are one CBY), prices in base units a cycle or a cell, heights in
  blocks, times in milliseconds. JavaScript rounds those above 2⁵³ - 1: beside such a member, as `balance`, stands its
  text, `balance_text`; beside a list that holds one, the list with text. Read `BigInt(balance_text ?? balance)`.
- **Bytes** are `0x` and hexadecimal digits. Addresses and ids may be sent without `0x`; an address in mixed case must
  have the right checksum.
- **Lists** take `offset` (default 0) and `limit` (default 50, at most 1,000) and `total_count` is the number
  of all entries; an actor's slots have `next_cursor` instead.
- **One height.** An answer is wholly of one block, the last one when the request came. Reads never wait for a block,
  and no block waits for a read. Two paths run a program, between two blocks: `POST /view`, with at most 1,000,000
  cycles, and `/timers/{timer_id}/explain`, which tries the handler of a live timer with the cycles that its fire has.
  Simulations and forecasts run beside the chain, on the state after the block, and no block waits for them either.
  `/trace/{subject}` builds past blocks again, beside the chain.
- **Nothing is ignored.** A misspelt parameter, a member that stands twice, a number out of range is refused by name.
- **Connections** stay open for 5 seconds after an answer.
- **HEAD** works wherever GET does. A POST with a body names its type: `Content-Type: application/json`, or
  `application/octet-stream` for transactions.

The answers below are those of a chain with an actor that ticks every ten blocks; long values and lists are cut off with
`…`.
"""
TICKER: Final = """
def init(payload):
    for ahead in (10, 400, 500, 600):
        pvm_host.schedule_timer(pvm_host.block_height() + ahead, b"")

def handle_timer(payload):
    pvm_host.set_state(b"ticks", str(int(ticks(payload)) + 1).encode())
    pvm_host.schedule_timer(pvm_host.block_height() + 10, payload)

def ticks(payload):
    return pvm_host.get_state(b"ticks") or b"0"

def ask(payload):
    pvm_host.send_message(bytes(19) + b"\\x02", payload)

def heard(payload):
    pvm_host.set_state(b"weather", payload)
"""
JOB: Final = {"kind": "runner_job", "job_type": "http", "cid": b"weather", "reply_handler": "heard",
              "payload": {"args": ["https://weather.example"], "kwargs": {}}}  # fmt: skip
PRICE: Final = "def price(payload):\n    return b'5'\n"
ERRORS: Final = """
## Errors

Every refusal is `{"error": {"code", "slug", "what", "why", "fix", "context"}}`. A rule of the chain
has the code that [errors](errors.md) lists, with the status 404 if something is not there, 400 if no transaction of a
submission was taken, else 422. What only HTTP can break has a code of its own:

"""
OTHERS: Final = """
## Streams and metrics

`GET /events` streams blocks and events as server-sent events, from any height on, and resumes after a lost connection;
`GET /metrics` is what Prometheus reads. [The stream and the metrics](metrics.md) has both.
"""
LISTED: Final = {
    "state": """
`trailboss --url` reads a node so: it borrows a view, and reads keys of the state with the code that reads a directory.
A view returns by itself a minute after it was last asked.
""",
    "network": """
A node of a network answers these ([a network of validators](../concepts/network.md)); any other node says that there is
none. `trailboss light prove` reads signed headers so.
""",
}
"""Subjects whose operations are listed without examples, and what there is to say of them."""
PAGING: Final = frozenset(("offset", "limit"))
KNOWN: Final = (ADDRESS_RULE, HASH_RULE, "true or false", (integer().extra or {})["rule"])
WIDTH: Final = 116
LINES_MAX: Final = 7
SHOWN_DIGITS: Final = 10
SHOWN_TEXT: Final = 100
MINED: Final = 12
DUE_IN: Final = 20
GAS: Final = 100_000
FUNDS: Final = 10**13
ELLIPSIS: Final = "…"


class Scene(Struct, frozen=True):
    """What the examples are about.

    Attributes:
        actor: Address of an actor that ticks.
        account: Address of a funded account.
        timer: Id of a timer that the fire of another has scheduled.
        far: Ids of three timers that are due long after.
        fired: Id of one that has fired.
        transaction: Hash of a transaction in a block.
        submission: Transactions that have not been sent, as bytes.
    """

    actor: str
    account: str
    timer: str
    far: tuple[str, ...]
    fired: str
    transaction: str
    submission: Callable[[], bytes]


class Example(Struct, frozen=True):
    """How an operation is asked.

    Attributes:
        path: With what it is about, and its query.
        body: Its JSON body; None for none.
        file: Whether the body is a submission in a file.
    """

    path: str
    body: Mapping[str, Any] | None = None
    file: bool = False


def examples(scene: Scene) -> dict[str, Example]:
    """Return how each operation is asked, by name."""
    found = {name: Example(path) for name, path in _paths(scene).items()}
    found |= {name: Example(path, body) for name, (path, body) in _bodies(scene).items()}
    return found | {name: Example(f"/{name}", file=True) for name in ("submit", "submit_wait")}


def _paths(scene: Scene) -> dict[str, str]:
    return {
        "height": "/height",
        "basefee": "/basefee",
        "block": f"/block/{MINED - 1}",
        "outcome": f"/block/{MINED - 1}/outcome",
        "blocks": "/blocks?limit=1",
        "status": "/status",
        "params": "/params?path=calendar",
        "account": f"/account/{scene.account}",
        "account_nonce": f"/account/{scene.account}/nonce",
        "accounts": "/accounts?limit=1",
        "actor": f"/actor/{scene.actor}",
        "storage": f"/actors/{scene.actor}/storage",
        "transaction": f"/transaction/{scene.transaction}",
        "receipt": f"/transaction/{scene.transaction}/receipt",
        "mempool_transaction": f"/mempool/transaction/{scene.transaction}",
        "mempool": "/mempool",
        "timers": f"/timers?actor={scene.actor}",
        "timer": f"/timers/{scene.timer}",
        "timer_explain": f"/timers/{scene.fired}/explain",
        "timer_lineage": f"/timers/{scene.timer}/lineage?part=ancestors",
        "calendar": "/calendar?to_height=59&buckets=2",
        "mechanism": "/mechanism",
        "lane": f"/lane/{MINED - 1}",
        "mailbox": "/mailbox",
        "globalbox": "/globalbox",
        "auction": "/auction",
        "forecast": "/forecast?blocks=20&limit=1",
        "quote": f"/quote?height={MINED + DUE_IN}&gas_limit={GAS}",
        "runway": f"/runway/{scene.actor}",
        "watchtower": "/watchtower",
        "logs": "/logs?name=timer.fired&limit=1",
        "actor_logs": f"/actor/{scene.actor}/logs?limit=1",
        "trace": f"/trace/{scene.fired}",
        "trace_tree": f"/trace/{scene.fired}/tree?calls=false",
        "search": f"/search?prefix={scene.actor[:8]}",
        "health": "/health",
        "jobs": "/jobs",
        "job": "/jobs/1",
    }


def _bodies(scene: Scene) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Return path and body of each operation that takes a JSON body, by name."""
    transfer = {"System": {"Transfer": {"to": scene.actor, "amount": 5}}}
    return {
        "view": ("/view", {"actor": scene.actor, "handler": "ticks"}),
        "simulate_transaction": (
            "/simulate",
            {"sender": scene.account, "instruction": transfer, "overrides": {"cycle_basefee": 20_000}},
        ),
        "simulate_timer": ("/simulate/fire", {"timer_id": scene.timer}),
        "proof": ("/proof", {"kind": "timer", "timer_id": scene.timer}),
        "faucet": ("/faucet", {"address": scene.account}),
        "dev_mine": ("/dev/mine", {"blocks": 2}),
        "dev_advance": ("/dev/advance", {"height": MINED + DUE_IN}),
        "dev_crowd": ("/dev/crowd", {"kind": "expiry", "blocks": 2}),
        "dev_pace": ("/dev/pace", {"pace": "auto"}),
        "dev_snapshot": ("/dev/snapshot", {}),
        "dev_revert": ("/dev/revert", {"snapshot": 1}),
        "dev_reorg": ("/dev/reorg", {"depth": 1}),
        "dev_set_balance": ("/dev/set_balance", {"address": scene.account, "amount": FUNDS}),
        "dev_set_storage": ("/dev/set_storage", {"actor": scene.actor, "slot": "0x6b", "value": "0x76"}),
        "dev_set_code": ("/dev/set_code", {"address": scene.account, "code": f"0x{PRICE.encode().hex()}"}),
        "dev_mock": ("/dev/mock", {"target": scene.account, "handler": "price", "returns": "0x35", "times": 1}),
        "dev_clear_mocks": ("/dev/clear_mocks", {}),
        "dev_impersonate": ("/dev/impersonate", {"sender": scene.account, "instruction": transfer}),
        "dev_hold": ("/dev/hold", {"timer_id": scene.far[0]}),
        "dev_force": ("/dev/force", {"timer_id": scene.far[1], "wait": True}),
        "dev_drop": ("/dev/drop", {"timer_id": scene.far[2]}),
        "job_reply": ("/jobs/1/reply", {"answer": {"value": {"text": "sleet"}}, "wait": True}),
        "dev_runner": ("/dev/runner", {"jobs_max": 50}),
    }


def api_page() -> str:
    """Return the page.

    Raises:
        ValueError: If an operation has no example.
    """
    with redirect_stderr(StringIO()):
        return asyncio.run(_page())


async def _page() -> str:
    local, scene = _scene()
    node = Node(
        local.chain, Mempool(), Index.open(None, local.chain), NodeOptions(pace=Pace(Rhythm.AUTO, BLOCK_TIME_MAX_MS))
    )
    node.start()
    try:
        transport = httpx.ASGITransport(app=create_app(node))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:4000") as client:
            return await _asked(client, node, scene)
    finally:
        await node.close()


async def _asked(client: httpx.AsyncClient, node: Node, scene: Scene) -> str:
    asked = examples(scene)
    parts = [INTRO.lstrip()]
    for tag, about in TAGS.items():
        operations = [each for each in OPERATIONS if each.tag == tag and each.produces == JSON]
        if tag in LISTED:
            parts.append(f"## {tag}\n{LISTED[tag]}\n" + "\n".join(map(_line, operations)) + "\n")
        elif operations:
            parts.append(f"## {tag}\n\n{about}\n")
            for operation in operations:
                if operation.name not in asked:
                    raise ValueError(f"{operation.name} has no example")
                parts.append(await _section(client, scene, operation, asked[operation.name]))
                # What was sent is in a block of its own before the next answer.
                while len(node.mempool):
                    await asyncio.sleep(0)
    parts.append(OTHERS.lstrip())
    return "\n".join(parts) + ERRORS + _errors()


def _line(operation: Operation) -> str:
    return f"- `{operation.method} {operation.path}`: {_summary(operation)}"


def _summary(operation: Operation) -> str:
    return operation_docs(operation.run)[0]


async def _section(client: httpx.AsyncClient, scene: Scene, operation: Operation, example: Example) -> str:
    content = scene.submission() if example.file else None
    headers = {"Content-Type": OCTETS} if example.file else {}
    answer = await client.request(
        operation.method, example.path, json=example.body, content=content, headers=headers, timeout=None
    )
    is_paged = operation.parameters.keys() >= PAGING
    paging = PAGING if is_paged else frozenset()
    listed = [each for name, each in operation.parameters.items() if each.place != PATH and name not in paging]
    parts = [f"### {operation.method} {operation.path}\n", _summary(operation)]
    if listed:
        parts.append("\n" + "\n".join(_parameter(each, meanings_of(operation)[each.name]) for each in listed))
    if is_paged:
        parts.append("\nPaged." if not listed else "\nPaged, too.")
    status = "" if answer.status_code == HTTPStatus.OK else f"# {answer.status_code}\n"
    shown = "\n".join(_lines(json.loads(answer.content)))
    parts.append(f"\n```console\n$ {_curl(operation, example)}\n{status}{shown}\n```\n")
    return "\n".join(parts)


def _parameter(parameter: Parameter, meaning: str) -> str:
    # What an address, a hash or a 64-bit number is, the introduction says.
    rule = "" if parameter.rule in KNOWN else f" {_sentence(parameter.rule)}"
    default = parameter.default
    shown = f" Default: {json.dumps(default)}." if default not in (None, "0x", U64_MAX) else ""
    return f"- `{parameter.name}`: {meaning}{rule}{' Required.' if parameter.is_required else shown}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _curl(operation: Operation, example: Example) -> str:
    url = f"localhost:4000{_cut_text(example.path)}"
    url = f"'{url}'" if "?" in url else url
    if example.file:
        return f"curl {url} -H 'Content-Type: {OCTETS}' --data-binary @submission"
    if operation.method == GET:
        return f"curl {url}"
    return f"curl {url} -H 'Content-Type: application/json' -d '{json.dumps(_cut(example.body), ensure_ascii=False)}'"


def _scene() -> tuple[LocalChain, Scene]:
    local = LocalChain(preset="minimal")
    ticker = local.deploy(TICKER, sender=local.accounts[0], value=FUNDS)
    local.start_runner()
    ticker.call("ask", encode_canonical(JOB), sender=local.accounts[0], check=True)
    local.mine(MINED - local.height)
    near, *far = (str(timer.timer_id) for timer in local.timers())
    fired = next(event.timer_id for event in local.events("timer.fired"))
    sender = local.accounts[1].private_key
    deployment = Hash32(local.block(1).receipts[0].origin_hash)

    def submission() -> bytes:
        gift = Transfer(ticker.address, 5)
        return encode_submission([draft_transaction(local.chain, gift, sender)])

    return local, Scene(
        actor=str(ticker.address),
        account=str(address_of(sender)),
        timer=near,
        far=tuple(far),
        fired=str(fired),
        transaction=str(deployment),
        submission=submission,
    )


# What is shown of an answer


def _lines(document: Any) -> Iterator[str]:
    """Yield an answer in lines that fit the page, the first of them only if there are many."""
    written = json.dumps(_cut(document), ensure_ascii=False)
    lines = wrap(written, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    yield from lines[:LINES_MAX]
    if len(lines) > LINES_MAX:
        yield f"  {ELLIPSIS}"


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cut(each) for name, each in value.items()}
    if isinstance(value, list):
        return [*map(_cut, value[:1]), *([ELLIPSIS] if len(value) > 1 else [])]
    return _cut_text(value) if isinstance(value, str) else value


def _cut_text(text: str) -> str:
    """Return a text with its ids cut, or cut itself if it is prose."""
    if " " in text:
        return shorten(text, SHOWN_TEXT, placeholder=f" {ELLIPSIS}")
    head, mark, tail = text.partition("0x")
    digits = len(tail) - len(tail.lstrip("0123456789abcdefABCDEF"))
    if not mark or digits <= SHOWN_DIGITS:
        return text
    return f"{head}0x{tail[:SHOWN_DIGITS]}{ELLIPSIS}{_cut_text(tail[digits:])}"


def _errors() -> str:
    rows = (
        f"| {each.code} | {each.status} | `{each.slug}` | {each.why} | {each.fix} |"
        for each in sorted(HttpReason, key=lambda each: each.code)
    )
    return (
        "\n".join(["| code | status | slug | the rule | what to do |", "| --- | --- | --- | --- | --- |", *rows]) + "\n"
    )
