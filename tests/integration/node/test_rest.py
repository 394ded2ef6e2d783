"""What the node answers is what the chain holds, in the shapes that are known, and nothing a client sends breaks it."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from starlette.responses import Response
from typer.testing import CliRunner

from tests.integration import boxes
from tests.integration.helpers import answers, perform, step
from tests.integration.node.apis import Api, lively_chain, serve
from trailboss.api.operations import READERS, Call, respond
from trailboss.api.routes import OPERATIONS
from trailboss.chain.view import ChainView
from trailboss.cli.main import app as command_line
from trailboss.primitives.errors import ViewGoneError
from trailboss.primitives.octets import Address
from trailboss.testing import LocalChain
from trailboss.views.json_values import to_json_value
from trailboss.views.records import receipt_view
from trailboss.views.status import status_of
from trailboss.views.timer_list import STATES, TimerFilter, list_timers

MECHANISMS = ("fifo", "lane", "auction", "globalbox")


@pytest.fixture(scope="module", params=MECHANISMS)
def lively(request: pytest.FixtureRequest) -> Iterator[Api]:
    """A node of each mechanism, whose chain stays as it is."""
    with serve(lively_chain(request.param)[0]) as api:
        yield api


@pytest.fixture(scope="module")
def fifo() -> Iterator[Api]:
    """A node whose chain stays as it is."""
    with serve(lively_chain("fifo")[0]) as api:
        yield api


# Answers


def test_status_and_mechanism_are_those_of_the_chain(lively: Api) -> None:
    """Heights, roots, money and counts are the chain's own."""
    status = lively.get("/status")
    assert status == to_json_value(status_of(lively.local.chain))
    mechanism = lively.get("/mechanism")
    assert {name: mechanism[name] for name in ("lane", "auction", "globalbox")} == {
        name: status[name] for name in ("lane", "auction", "globalbox")
    }
    assert lively.get("/height") == {"height": lively.local.height}
    basefees = lively.get("/basefee")
    assert (basefees["cycle_basefee"], basefees["cell_basefee"]) == lively.local.chain.rules().user_basefees()


@pytest.mark.parametrize("state", STATES)
def test_timers_of_a_state_are_those_that_the_chain_lists(lively: Api, state: str) -> None:
    """State and index together list what a walk over all blocks and timers lists, page by page."""
    chain = lively.local.chain
    wanted = [to_json_value(entry) for entry in list_timers(chain, TimerFilter(state=state))]
    pages = [lively.get(f"/timers?state={state}&offset={offset}&limit=3") for offset in range(0, len(wanted) + 1, 3)]
    assert [timer for page in pages for timer in page["timers"]] == wanted
    assert {page["total_count"] for page in pages} == {len(wanted)}
    assert [page["more"] for page in pages] == [3 * at + 3 < len(wanted) for at, _ in enumerate(pages)]


def test_timers_of_an_actor_and_of_heights_are_those_that_the_chain_lists(lively: Api) -> None:
    """Every filter lets pass what it lets pass on the command line."""
    chain = lively.local.chain
    everything = list(list_timers(chain, TimerFilter(state="all")))
    actor = everything[0].actor
    for state in ("live", "all", "due", "deferred", "queued", "fired"):
        for name, member in (("actor", "actor"), ("payer", "payer"), ("target", "target")):
            given = TimerFilter(**{"state": state, member: actor})
            found = lively.get(f"/timers?state={state}&{name}={actor}&limit=1000")
            assert found["timers"] == [to_json_value(entry) for entry in list_timers(chain, given)], (state, name)
        given = TimerFilter(state=state, first=9, last=60)
        found = lively.get(f"/timers?state={state}&from_height=9&to_height=60&limit=1000")
        assert found["timers"] == [to_json_value(entry) for entry in list_timers(chain, given)], state
        assert lively.get(f"/timers?state={state}&from_height={2**64 - 1}")["timers"] == []
    assert lively.error("GET", "/timers?from_height=2&to_height=1", 422)["what"] == (
        "to_height is 1, it must be at least from_height, 2"
    )


def test_list_says_that_there_may_be_more_when_it_has_not_looked_at_all(
    fifo: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state that only the timers' records tell is looked for among so many of them."""
    assert fifo.get("/timers?state=over-cap")["more"] is False
    monkeypatch.setattr("trailboss.index.answers.timers.SCANNED_MAX", 1)
    [(actor, count)] = Counter(timer["actor"] for timer in fifo.get("/timers")["timers"]).most_common(1)
    assert count > 1
    for query in ("", f"&actor={actor}"):
        found = fifo.get(f"/timers?state=over-cap{query}")
        assert (found["timers"], found["total_count"], found["more"]) == ([], 0, True)


def test_timer_and_its_life_are_told(lively: Api) -> None:
    """Each timer has a page, and a life as the chain tells it."""
    chain = lively.local.chain
    for entry in list_timers(chain, TimerFilter(state="all")):
        found = lively.get(f"/timers/{entry.timer_id}")
        assert (found["height"], found["actor"], found["ended_at"]) == (entry.height, str(entry.actor), entry.ended_at)
        assert (found["live"] is None) == (entry.ended_at is not None)
        assert found["state"] == entry.state
        life = lively.local.explain(entry.timer_id)
        told = lively.get(f"/timers/{entry.timer_id}/explain?limit=1000")
        assert [step["story"] for step in told["steps"]] == [step.story for step in life.steps]
        assert (told["waited"] or "", told["outlook"] or "") == (life.waited, life.outlook)
        assert (told["reverted"], told["failure"]) == (life.has_reverted, to_json_value(life.failure))
        assert (told["waits"], told["fires"]) == (to_json_value(life.waits), to_json_value(life.fires))
        page = lively.get(f"/timers/{entry.timer_id}/explain?offset=1&limit=1")
        assert (page["total_count"], page["steps"]) == (len(life.steps), told["steps"][1:2])


def test_lineage_leads_from_a_timer_to_those_that_its_fires_scheduled() -> None:
    """Ancestors, children and family of a timer that schedules the next one."""
    chain = LocalChain(preset="minimal")
    chain.deploy("examples/actors/heartbeat.py", sender=chain.accounts[0], value=10**13)
    chain.mine(60)
    with serve(chain) as api:
        family = api.get(f"/timers/{api.get('/timers')['timers'][0]['timer_id']}/lineage")
        ids = [timer["timer_id"] for timer in family["timers"]]
        assert family["place"] == family["generation"] == len(ids) - 1 > 3
        assert family["root"] == ids[0]
        assert [timer["cause"]["timer_id"] for timer in family["timers"]] == [None, *ids[:-1]]
        ancestors = api.get(f"/timers/{ids[3]}/lineage?part=ancestors&offset=1&limit=1")
        assert (ancestors["total_count"], ancestors["timers"][0]["timer_id"]) == (3, ids[1])
        children = api.get(f"/timers/{ids[1]}/lineage?part=children")
        assert [timer["timer_id"] for timer in children["timers"]] == [ids[2]]
        assert (children["children"], children["family_size"]) == (1, len(ids))


def test_calendar_counts_live_timers_by_tier_and_stretch(lively: Api) -> None:
    """Every live timer is in one tier, and in the stretch of its height."""
    heights = [timer["height"] for timer in lively.get("/timers?limit=1000")["timers"]]
    found = lively.get(f"/calendar?to_height={2**64 - 1}&buckets=7")
    assert sum(found["tiers"].values()) == sum(bucket["timers"] for bucket in found["buckets"]) == len(heights)
    for bucket in lively.get("/calendar?from_height=5&to_height=44&buckets=6")["buckets"]:
        assert bucket["timers"] == sum(bucket["first"] <= height <= bucket["last"] for height in heights)
    spans = [(bucket["first"], bucket["last"]) for bucket in lively.get("/calendar?to_height=9&buckets=3")["buckets"]]
    assert spans == [(0, 3), (4, 7), (8, 9)]
    assert "to_height is 1" in lively.error("GET", "/calendar?from_height=2&to_height=1", 422)["what"]


def test_block_holds_what_the_chain_has_a_page_at_a_time(lively: Api) -> None:
    """By height and by hash; every receipt and event comes once, in order."""
    for block in lively.local.chain.blocks:
        found = lively.get(f"/block/{block.height}?limit=1000")
        assert found == lively.get(f"/block/{block.hash}?limit=1000")
        assert found["hash"] == str(block.hash)
        assert found["header"]["state_root"] == f"0x{block.header.state_root.hex()}"
        assert found["receipts"] == [to_json_value(receipt_view(receipt, block.height)) for receipt in block.receipts]
        assert len(found["events"]) == found["event_count"] == len(block.events)
        assert [each["position"] for each in found["transactions"]] == list(range(len(block.transactions)))
        for each, transaction in zip(found["transactions"], block.transactions, strict=True):
            assert (each["sender"], each["nonce"]) == (str(transaction.sender), transaction.nonce)
        pages = [lively.get(f"/block/{block.height}?offset={at}&limit=1") for at in range(found["receipt_count"])]
        assert [receipt for page in pages for receipt in page["receipts"]] == found["receipts"]
    assert lively.get("/block/latest")["header"]["height"] == lively.local.height


def test_blocks_are_listed_the_latest_first(fifo: Api) -> None:
    """Pages do not overlap, and genesis is the last of them."""
    height = fifo.local.height
    pages = [fifo.get(f"/blocks?offset={offset}&limit=4") for offset in range(0, height + 8, 4)]
    assert [block["height"] for page in pages for block in page["blocks"]] == list(range(height, -1, -1))
    assert {page["total_count"] for page in pages} == {height + 1}
    assert sum(block["receipts"] for page in pages for block in page["blocks"]) == len(fifo.local.receipts())


def test_transaction_and_receipt_are_found_by_hash(lively: Api) -> None:
    """The public shape of the transaction, with where it is; the receipt as the command line shows it."""
    for block in lively.local.chain.blocks.eventful():
        for each in lively.get(f"/block/{block.height}")["transactions"]:
            found = lively.get(f"/transaction/{each['hash']}")
            assert (found["block_height"], found["position"]) == (block.height, each["position"])
            assert (found["from"], found["nonce"]) == (each["sender"], each["nonce"])
            receipt = lively.get(f"/transaction/{each['hash'][2:]}/receipt")
            assert (receipt["tx_hash"], receipt["block_height"]) == (each["hash"], block.height)
            assert (receipt["status"], receipt["fee_paid"]) == (each["status"], each["fee_paid"])
            assert lively.get(f"/mempool/transaction/{each['hash']}")["status"] == "included"


def test_account_and_actor_are_in_the_public_shape(fifo: Api) -> None:
    """An account's nonce and balance, an actor's code hash and storage, and 404 for what is not there."""
    actor = next(str(Address(a)) for a, account in fifo.local.chain.accounts() if account.timer_count)
    account = fifo.get(f"/account/{actor.lower()}")
    assert account["address"] == actor
    assert account["balance"] == fifo.local.balance(Address.parse(actor))
    assert fifo.get(f"/account/{fifo.local.accounts[3].address}")["name"] == "account 3"
    assert fifo.get(f"/actor/{actor}")["timers"] == account["timers"]
    listed = fifo.get("/accounts?limit=1000")
    assert [each["address"] for each in listed["accounts"]] == [str(Address(a)) for a, _ in fifo.local.chain.accounts()]
    assert fifo.get("/accounts?offset=2&limit=3")["accounts"] == listed["accounts"][2:5]
    nobody = "0x" + "11" * 20
    assert fifo.error("GET", f"/account/{nobody}", 404)["code"] == 4004
    assert fifo.error("GET", f"/actor/{fifo.local.accounts[0].address}", 404)["what"].startswith("there is no actor at")
    assert fifo.error("GET", f"/actors/{nobody}/storage", 404)["slug"] == "not_found"
    assert fifo.get(f"/runway/{nobody}")["balance"] == 0


def test_storage_is_listed_whole_when_its_cursor_is_followed() -> None:
    """Every slot comes once, whatever the size of the pages, and also with the actor if there are few."""
    chain = LocalChain(preset="minimal")
    puppet = chain.deploy(
        "def fill(payload):\n    for at in range(60):\n        pvm_host.set_state(b'%d' % at, payload)\n",
        sender=chain.accounts[0],
    )
    puppet.call("fill", b"\x00\xff", sender=chain.accounts[0], check=True)
    with serve(chain) as api:
        expected = {f"0x{name.hex()}": f"0x{value.hex()}" for name, value in puppet.storage.items()}
        for limit in (1_000, 60, 59, 7):
            found: dict[str, str] = {}
            cursor = ""
            while cursor is not None:
                page = api.get(f"/actors/{puppet.address}/storage?limit={limit}{cursor and f'&cursor={cursor}'}")
                assert not page["storage"].keys() & found.keys()
                found |= page["storage"]
                cursor = page["next_cursor"]
            assert found == expected
        actor = api.get(f"/actor/{puppet.address}")
        assert len(actor["storage"]) == 50
        rest = api.get(f"/actors/{puppet.address}/storage?cursor={actor['next_cursor']}")
        assert actor["storage"] | rest["storage"] == expected


def test_logs_are_the_events_of_the_chain_in_either_order(lively: Api) -> None:
    """All of them, those of a name, of an emitter, of a timer and of some heights."""
    events = [to_json_value(event) for event in lively.local.events()]
    assert lively.get("/logs?order=oldest&limit=1000")["events"] == events
    assert lively.get("/logs?limit=1000")["events"] == events[::-1]
    name, emitter = events[-1]["name"], events[-1]["emitter"]
    of_name = [event for event in events if event["name"] == name]
    assert lively.get(f"/logs?name={name}&order=oldest&limit=1000")["events"] == of_name
    of_emitter = [event for event in events if event["emitter"] == emitter]
    found = lively.get(f"/actor/{emitter}/logs?offset=1&limit=2")
    assert (found["total_count"], found["events"]) == (len(of_emitter), of_emitter[::-1][1:3])
    within = [event for event in events if 3 <= event["block_height"] <= 5]
    assert lively.get("/logs?order=oldest&from_height=3&to_height=5&limit=1000")["events"] == within
    timer = next(event["timer_id"] for event in events if event["timer_id"])
    of_timer = [event for event in events if event["timer_id"] == timer]
    assert lively.get(f"/logs?order=oldest&timer_id={timer}&limit=1000")["events"] == of_timer


def test_search_finds_what_begins_with_some_digits(lively: Api) -> None:
    """Blocks, transactions, timers and addresses, with and without ``0x``."""
    block = next(islice(lively.local.chain.blocks.eventful(2), 1))
    found = lively.get(f"/search?prefix={str(block.hash)[:18]}")
    assert found["blocks"] == [{"height": block.height, "hash": str(block.hash)}]
    timer = lively.get("/timers?state=all")["timers"][0]["timer_id"]
    assert timer in lively.get(f"/search?prefix={timer[2:12]}")["timers"]
    account = str(lively.local.accounts[0].address)
    assert account in lively.get(f"/search?prefix={account.lower()[:10]}")["addresses"]


def test_lane_tells_how_a_block_chose(lively: Api) -> None:
    """A record where there was a choice, and none where there was not."""
    told = [lively.get(f"/lane/{height}")["lane"] for height in range(lively.local.height + 1)]
    assert [lane is not None for lane in told] == [block.decisions is not None for block in lively.local.chain.blocks]
    assert lively.error("GET", "/lane/99999", 404)["context"] == {"height": 99_999}


def test_what_another_mechanism_has_is_not_there(lively: Api) -> None:
    """The mailbox, the queue and the auction are 404 on chains without them, with the chain's own words."""
    mechanism = lively.get("/mechanism")["mechanism"]
    has = {"/mailbox": "globalbox", "/globalbox": "globalbox", "/auction": "auction"}
    for path, owner in has.items():
        status = lively.request("GET", path).status_code
        assert status == (200 if mechanism == owner else 404), path
    quote = lively.request("GET", f"/quote?height={lively.local.height + 9}&gas_limit=60000")
    assert quote.status_code == (200 if mechanism in ("fifo", "lane") else 422), quote.text
    if mechanism == "auction":
        found = lively.get("/auction?offset=1")
        assert (found["total_count"], found["actors"]) == (1, [])


def test_queue_and_mailbox_of_globalbox_are_listed_in_their_order() -> None:
    """All of them, those of a target, and page by page."""
    chain = boxes.open_box(
        globalbox__max_fires_per_block=2,
        globalbox__max_fires_per_target=2,
        timers__max_cycles_per_fire=boxes.GAS,
        timers__lane_cycles_per_block=boxes.GAS,
    )
    box = boxes.deploy_box(chain)
    here = bytes(box.address)
    answers(perform(box, *[step("set_state_watch", here, [here + b"k"], b"", boxes.GAS)] * 9))
    boxes.put(box, b"k", b"1")
    chain.mine(1)
    fires, entries = to_json_value(chain.globalbox()), to_json_value(chain.mailbox())
    assert len(fires) > 2
    assert len(entries) > 1
    with serve(chain) as api:
        for query in ("", f"target={fires[0]['target']}&"):
            for path, name, expected in (("/globalbox", "globalbox", fires), ("/mailbox", "mailbox", entries)):
                found = api.get(f"{path}?{query}limit=1000")
                assert (found["total_count"], found[name]) == (len(expected), expected)
                page = api.get(f"{path}?{query}offset=1&limit=1")
                assert (page["total_count"], page[name]) == (len(expected), expected[1:2])
        nobody = api.get(f"/globalbox?target={'11' * 20}")
        assert (nobody["total_count"], nobody["globalbox"]) == (0, [])


def test_reverted_receipt_carries_the_actors_own_traceback(fifo: Api) -> None:
    """What an actor raised is told with its line; text that UTF-8 cannot carry is escaped, not an error."""
    reverted = [receipt for receipt in fifo.local.receipts() if receipt.error]
    blocks = {receipt.block_height for receipt in reverted}
    told = [each for height in sorted(blocks) for each in fifo.get(f"/block/{height}")["receipts"] if each["error"]]
    assert [each["error"]["what"] for each in told] == [receipt.error.what for receipt in reverted if receipt.error]
    traces = "".join(str(each["error"]["context"].get("traceback")) for each in told)
    assert "in fail" in traces
    assert any("\udc80" in each["error"]["what"] for each in told)


# Asking


def test_view_runs_a_handler_and_changes_nothing(fifo: Api) -> None:
    """It returns what the handler returns, and names what goes wrong."""
    actor = next(Address(a) for a, account in fifo.local.chain.accounts() if account.timer_count)
    root = fifo.get("/status")["state_root"]
    payload = json.dumps([step("set_state", b"a", b"b")], default=list).encode()
    asked = {"actor": str(actor), "handler": "no such", "payload": f"0x{payload.hex()}"}
    assert fifo.post("/view", asked)["error"]["slug"] == "handler_not_found"
    assert fifo.post("/view", asked | {"actor": "0x" + "22" * 20})["error"]["slug"] == "actor_not_found"
    assert fifo.get("/status")["state_root"] == root
    assert "cycles_limit" in fifo.error("POST", "/view", 400, json=asked | {"cycles_limit": 10**6 + 1})["what"]


def test_view_answers_what_the_handler_returns() -> None:
    """Bytes come back as digits."""
    chain = LocalChain(preset="minimal")
    echo = chain.deploy("def echo(payload):\n    return payload + b'!'\n", sender=chain.accounts[0])
    with serve(chain) as api:
        found = api.post("/view", {"actor": str(echo.address), "handler": "echo", "payload": "0x00ff"})
        assert (found["return_value"], found["error"]) == ("0x00ff21", None)


@pytest.mark.parametrize("kind", ["account", "slot", "storage", "timer", "timers", "gone"])
def test_proof_is_what_the_command_line_verifies(fifo: Api, kind: str, tmp_path: Any) -> None:
    """`verify-proof` reads the whole answer, and the proof alone."""
    actor = next(str(Address(a)) for a, account in fifo.local.chain.accounts() if account.timer_count)
    live = fifo.get("/timers")["timers"][0]
    fired = fifo.get("/timers?state=fired")["timers"][0]
    subject = {
        "account": {"address": actor},
        "slot": {"address": actor, "name": "0x6e616d65"},
        "storage": {"address": actor},
        "timer": {"timer_id": live["timer_id"]},
        "gone": {"timer_id": fired["timer_id"], "height": fired["height"]},
        "timers": {"first": 0, "last": 1_000},
    }[kind]
    answer = fifo.post("/proof", {"kind": "timer" if kind == "gone" else kind} | subject)
    assert answer["state_root"] == fifo.get("/status")["state_root"]
    for document in (answer, answer["proof"]):
        (tmp_path / "proof.json").write_text(json.dumps(document))
        verify = ["verify-proof", str(tmp_path / "proof.json"), "--root", answer["state_root"], "--json"]
        verified = CliRunner().invoke(command_line, verify)
        assert verified.exit_code == 0, verified.output
        assert json.loads(verified.stdout)["statement"] == answer["statement"]


@pytest.mark.parametrize(
    ("document", "status", "said"),
    [
        ({"kind": "slot", "address": "0x" + "00" * 20}, 422, "a proof of the kind slot needs name"),
        (
            {"kind": "account", "address": "00" * 20, "name": "0x"},
            422,
            "a proof of the kind account takes address, not name",
        ),
        ({"kind": "timers", "first": 5, "last": 4}, 422, "last is 4, it must be at least first, 5"),
        ({"kind": "timer", "timer_id": "00" * 32}, 404, "no live timer has the id"),
        ({"kind": "everything"}, 400, "kind is 'everything', it must be one of account"),
    ],
)
def test_proof_is_refused_when_its_subject_is_none(fifo: Api, document: Any, status: int, said: str) -> None:
    """What a subject takes is said by name."""
    assert said in fifo.error("POST", "/proof", status, json=document)["what"]


# Refusals


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, 4004),
        ("GET", "/heights", 404, 4004),
        ("GET", "/height/", 404, 4004),
        ("GET", "/account/", 404, 4004),
        ("GET", "/account/..%2f..%2fetc%2fpasswd", 404, 4004),
        ("GET", "/account/%00", 400, 4000),
        ("GET", "/height%0a", 400, 4000),
        ("GET", "/block/%E2%82", 400, 4000),
        ("GET", "/block/-1", 400, 4000),
        ("GET", "/block/18446744073709551616", 400, 4000),
        ("GET", "/block/18446744073709551615", 404, 4004),
        ("GET", "/block/" + "ab" * 32, 404, 4004),
        ("GET", "/account/0x123", 400, 4000),
        ("GET", "/account/0x" + "aB" * 20, 400, 4000),
        ("GET", "/timers/" + "0" * 63, 400, 4000),
        ("GET", "/timers/" + "0" * 64, 404, 4004),
        ("GET", "/timers?limit=0", 400, 4000),
        ("GET", "/timers?limit=1001", 400, 4000),
        ("GET", "/timers?offset=-1", 400, 4000),
        ("GET", "/timers?offset=9007199254740992", 400, 4000),
        ("GET", "/timers?states=fired", 400, 4000),
        ("GET", "/timers?state=Fired", 400, 4000),
        ("GET", "/params?path=no.such", 404, 4004),
        ("GET", "/quote?height=1&gas_limit=1", 422, 1202),
        ("GET", "/quote?gas_limit=1", 400, 4000),
        ("POST", "/height", 405, 4005),
        ("GET", "/submit", 405, 4005),
        ("DELETE", "/timers", 405, 4005),
        ("BREW", "/height", 405, 4005),
    ],
)
def test_request_is_refused_in_one_shape_when_it_cannot_be_answered(
    fifo: Api, method: str, path: str, status: int, code: int
) -> None:
    """Every refusal is JSON, with a code, what was wrong, the rule and what to do."""
    error = fifo.error(method, path, status)
    assert error["code"] == code
    assert set(error) == {"code", "slug", "what", "why", "fix", "context"}
    assert all(error[name] for name in ("slug", "what", "why", "fix", "context"))


@pytest.mark.parametrize(
    ("body", "media", "status", "code"),
    [
        (b"{}", None, 415, 4015),
        (b"{}", "text/plain", 415, 4015),
        (b"kind=account", "application/x-www-form-urlencoded", 415, 4015),
        (b"{", "application/json", 400, 4000),
        (b'{"kind":"timers","kind":"account"}', "application/json", 400, 4000),
        (b'{"kind":"timers","first":NaN}', "application/json", 400, 4000),
        (b"[" * 50_000, "application/json; charset=utf-8", 400, 4000),
        (b'{"kind":"timers","first":1e400}', "application/json", 400, 4000),
        (b" " * (2**20 + 1), "application/json", 413, 4013),
        (b"\xff\xfe", "application/json", 400, 4000),
    ],
)
def test_body_is_refused_when_it_is_not_the_json_asked_for(
    fifo: Api, body: bytes, media: str | None, status: int, code: int
) -> None:
    """Another media type, no JSON, JSON with two meanings, and too much of it."""
    headers = {} if media is None else {"content-type": media}
    assert fifo.error("POST", "/proof", status, content=body, headers=headers)["code"] == code


def test_method_that_is_missing_is_told_with_those_that_there_are(fifo: Api) -> None:
    """The header Allow has HEAD where GET is."""
    assert fifo.request("POST", "/height").headers["allow"] == "GET, HEAD"
    assert fifo.request("GET", "/proof").headers["allow"] == "POST"


@pytest.mark.parametrize("path", ["/height", "/timers", "/nothing", "/openapi.json", "/swagger-ui", "/timers?limit=x"])
def test_head_is_get_without_the_body(fifo: Api, path: str) -> None:
    """Status and headers are the same."""
    got, head = fifo.request("GET", path), fifo.request("HEAD", path)
    assert (head.status_code, head.headers, head.content) == (got.status_code, got.headers, b"")


def test_answer_is_of_a_newer_view_when_the_chain_went_back_behind_the_first(
    fifo: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view that has lost its blocks is let go of once; if the next has too, the node says that it cannot keep up."""
    seen: list[ChainView] = []
    losses = 1

    def lose(_: object, call: Call, __: object) -> Response:
        seen.append(call.view)
        if len(seen) <= losses:
            raise ViewGoneError(5, 2)
        return respond({"height": call.view.height})

    monkeypatch.setattr("trailboss.api.operations._read", lose)
    assert fifo.get("/status") == {"height": fifo.local.height}
    assert len(seen) == 2
    seen.clear()
    losses = 2
    error = fifo.error("GET", "/status", 503)
    assert (error["code"], error["context"]) == (4503, {"height": 2})


def test_long_read_is_sent_away_when_too_many_wait(fifo: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short reads go on meanwhile."""
    monkeypatch.setattr("trailboss.api.operations.READS_WAITING_MAX", -READERS)
    assert fifo.error("GET", "/status", 503)["what"].endswith("long reads wait already")
    assert fifo.request("GET", "/status").headers["retry-after"] == "1"
    assert fifo.request("GET", "/height").status_code == 200


def test_documentation_is_served_as_markdown(fifo: Api) -> None:
    """An agent begins with the index; a page that is not there is refused like any other path."""
    assert "(/docs/tutorial/first-actor.md)" in fifo.request("GET", "/llms.txt").text
    assert fifo.request("GET", "/docs/tutorial/first-actor.md").text.startswith("# First actor")
    assert fifo.error("GET", "/docs/none.md", 404)["what"] == "there is no path '/docs/none.md'"


def test_description_is_served_and_needs_nothing_from_elsewhere(fifo: Api) -> None:
    """Both paths have it, and the page for people lists every operation without a script or another host."""
    document = fifo.get("/openapi.json")
    assert document == fifo.get("/api-docs/openapi.json")
    page = fifo.request("GET", "/swagger-ui")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for operation in OPERATIONS:
        assert operation.method.lower() in document["paths"][operation.path]
        assert f'id="{operation.name}"' in page.text
    for foreign in ("<script", "http://", "https://", "//cdn", "@import"):
        assert foreign not in page.text


def test_node_stops_answering_with_a_word_when_it_stops() -> None:
    """Health says so with 503, and what needs the chain is refused."""
    with serve(LocalChain(preset="minimal")) as api:
        assert api.get("/health")["status"] == "running"
        api.node.begin_stop()
        health = api.request("GET", "/health")
        assert (health.status_code, json.loads(health.content)["status"]) == (503, "stopping")
        asked = {"actor": "0x" + "00" * 20, "handler": "any"}
        api.node._chain_thread.stop()
        assert api.error("POST", "/view", 503, json=asked)["code"] == 4503
