"""What is handed in is taken byte for byte, waited for or refused; and what a development node alone does."""

import hashlib
import json
from typing import Any

import cowboy_protocol
import pytest
from msgspec.structs import replace

from tests.integration.helpers import PUPPET, perform, step
from tests.integration.node.apis import Api, serve
from tests.integration.test_runner import RAW, raw_job
from tests.unit.node.service.world import AT_ONCE
from trailboss.chain.drafts import draft_transaction
from trailboss.codec.textual import to_json, to_text
from trailboss.codec.wire import encode_submission, encode_transaction
from trailboss.model.transactions import Transaction, Transfer, sign_transaction
from trailboss.primitives.octets import Address
from trailboss.testing import LocalChain, TestAccount

OCTETS = {"content-type": "application/octet-stream"}
FRIEND = Address(b"\x77" * 20)


@pytest.fixture
def manual(request: pytest.FixtureRequest) -> Any:
    """A node that builds a block only when it is asked to."""
    with serve(LocalChain(preset="minimal")) as api:
        yield api


@pytest.fixture
def auto() -> Any:
    """A node that builds a block for each transaction."""
    with serve(LocalChain(preset="minimal"), pace=AT_ONCE) as api:
        yield api


def gift(api: Api, *, sender: int = 0, waiting: int = 0, amount: int = 5) -> Transaction:
    """Return a signed transfer."""
    account: TestAccount = api.local.accounts[sender]
    return draft_transaction(api.node.view, Transfer(FRIEND, amount), account.private_key, waiting=waiting)


def submit(api: Api, *transactions: Transaction, wait: str = "") -> Any:
    """Return the answer to a submission of wire bytes."""
    return api.request("POST", f"/submit{wait}", content=encode_submission(transactions), headers=OCTETS)


# The public codec


def test_transaction_of_the_public_codec_is_accepted_byte_for_byte(manual: Api) -> None:
    """Signed and encoded by the public package, it is in a block as it was sent, and its hash is that of its bytes."""
    draft = to_text(replace(gift(manual), signature=bytes(65)))
    signed = cowboy_protocol.sign_transaction(draft, manual.local.accounts[0].private_key)
    body = cowboy_protocol.encode_submission(signed)
    answer = manual.request("POST", "/submit", content=body, headers=OCTETS)
    assert answer.status_code == 200, answer.text
    [result] = json.loads(answer.content)["results"]
    raw = cowboy_protocol.encode_transaction(signed)
    assert result == {"tx_hash": f"0x{hashlib.sha256(raw).hexdigest()}", "status": "accepted", "error": None}
    manual.post("/dev/mine", {})
    found = manual.get(f"/transaction/{result['tx_hash']}")
    assert {name: found[name] for name in json.loads(signed)} == json.loads(signed)
    [kept] = manual.node.view.head.transactions
    assert body.endswith(encode_transaction(kept))
    assert manual.get(f"/account/{FRIEND}")["balance"] == 5


# Submitting


@pytest.mark.parametrize("form", ["octets", "json", "hex"])
def test_submission_is_taken_in_each_of_its_forms(manual: Api, form: str) -> None:
    """Wire bytes, the public JSON shape, and wire bytes within JSON mean the same."""
    first, second = gift(manual), gift(manual, waiting=1)
    if form == "octets":
        answer = submit(manual, first, second)
    else:
        items = [f"0x{encode_transaction(each).hex()}" if form == "hex" else to_json(each) for each in (first, second)]
        answer = manual.request("POST", "/submit", json={"transactions": items})
    assert answer.status_code == 200, answer.text
    assert [each["status"] for each in json.loads(answer.content)["results"]] == ["accepted", "accepted"]
    waiting = manual.get("/mempool")
    assert (waiting["total_count"], waiting["statistics"]["senders"]) == (2, 1)
    assert [each["nonce"] for each in waiting["transactions"]] == [0, 1]
    assert manual.get("/mempool?offset=1")["transactions"] == waiting["transactions"][1:]
    told = manual.get(f"/mempool/transaction/{waiting['transactions'][0]['hash']}")
    assert (told["status"], told["waiting"]) == ("waiting", waiting["transactions"][0])


def test_transaction_is_no_error_when_it_is_sent_twice(manual: Api) -> None:
    """Whoever is not sure that it arrived sends it again: it waits, or is in a block."""
    transaction = gift(manual)
    assert json.loads(submit(manual, transaction).content)["results"][0]["status"] == "accepted"
    assert json.loads(submit(manual, transaction).content)["results"][0]["status"] == "known"
    manual.post("/dev/mine", {})
    again = json.loads(submit(manual, transaction).content)
    assert (again["status"], again["results"][0]["status"]) == ("accepted", "included")
    waited = json.loads(submit(manual, transaction, wait="_wait").content)
    assert waited["results"][0]["receipt"]["status"] == "ok"


def test_submission_is_partial_when_some_are_refused(manual: Api) -> None:
    """One that is refused does not stop the others, and says why."""
    answer = submit(manual, gift(manual), gift(manual, sender=1, amount=2**63))
    assert answer.status_code == 200
    document = json.loads(answer.content)
    good, bad = document["results"]
    assert (document["status"], good["status"], bad["status"]) == ("partial", "accepted", "refused")
    assert bad["error"]["slug"] in ("insufficient_balance", "insufficient_gas_balance")


def test_submission_is_refused_with_the_first_error_when_all_are(manual: Api) -> None:
    """The public code of the rule, and the error of each."""
    forged = replace(gift(manual), signature=b"\x01" * 64 + b"\x00")
    foreign = sign_transaction(replace(gift(manual, sender=1), chain_id=77), manual.local.accounts[1].private_key)
    answer = submit(manual, foreign, forged)
    assert answer.status_code == 400
    document = json.loads(answer.content)
    assert document["error"]["code"] == 1011
    assert [each["error"]["code"] for each in document["results"]] == [1011, 1001]
    assert manual.get("/mempool")["total_count"] == 0


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (b"", 1213, "malformed bytes at offset 0"),
        (b"\x00", 1213, "a submission of transactions starts with 1, not 0"),
        (b"\x01\x00", 4000, "the submission has 0 transactions, it must have 1..=50"),
        (b"\x01\xff\xff\xff\xff\x0f", 1213, "exceeds what the 0 bytes left can hold"),
        (b"\x01\x01\x02", 1213, "malformed bytes at offset"),
        (b"\x01" * 100, 1213, "malformed bytes"),
    ],
)
def test_submission_is_refused_when_its_bytes_are_none(manual: Api, body: bytes, code: int, said: str) -> None:
    """The offset and the rule are named."""
    error = manual.error("POST", "/submit", 400, content=body, headers=OCTETS)
    assert error["code"] == code
    assert said in error["what"]


@pytest.mark.parametrize(
    ("document", "code", "said"),
    [
        ({}, 4000, "it must have the one member transactions, a list"),
        ({"transactions": {}}, 4000, "it must have the one member transactions, a list"),
        ({"transactions": [], "more": 1}, 4000, "it must have the one member transactions"),
        ({"transactions": []}, 4000, "the submission has 0 transactions"),
        ({"transactions": [{}] * 51}, 4000, "the submission has 51 transactions, it must have 1..=50 transactions"),
        ({"transactions": [5]}, 4000, "transactions[0] is 5, it must be a transaction in the public JSON shape"),
        ({"transactions": ["02"]}, 4000, "transactions[0] is '02'"),
        ({"transactions": ["0xzz"]}, 4000, "transactions[0] is '0xzz'"),
        ({"transactions": ["0x02"]}, 1213, "malformed bytes at offset"),
        ({"transactions": [{}]}, 1213, "transaction lacks its field 'chain_id'"),
    ],
)
def test_submission_is_refused_when_its_json_is_none(manual: Api, document: Any, code: int, said: str) -> None:
    """What is missing or too much is named."""
    error = manual.error("POST", "/submit", 400, json=document)
    assert error["code"] == code
    assert said in error["what"]


def test_submission_is_refused_when_it_is_too_large_or_of_no_type(manual: Api) -> None:
    """Fifty transactions and 512 KB are the most."""
    many = [gift(manual, waiting=index) for index in range(51)]
    assert (
        "51 transactions"
        in manual.error("POST", "/submit", 400, content=encode_submission(many), headers=OCTETS)["what"]
    )
    large = b"\x01" * (512 * 1024 + 1)
    assert manual.error("POST", "/submit", 413, content=large, headers=OCTETS)["context"] == {"bytes_max": 524_288}
    assert manual.error("POST", "/submit", 415, content=b"\x01\x00")["code"] == 4015


def test_submission_of_fifty_is_decoded_when_it_is_long(manual: Api) -> None:
    """A long body is read like a short one."""
    answer = submit(manual, *(gift(manual, waiting=index) for index in range(50)))
    assert {each["status"] for each in json.loads(answer.content)["results"]} == {"accepted"}


# Waiting


def test_waiting_answers_with_the_receipts_when_the_block_is_there(auto: Api) -> None:
    """All of them, in order, with what they cost."""
    answer = submit(auto, gift(auto), gift(auto, waiting=1), wait="_wait")
    assert answer.status_code == 200, answer.text
    document = json.loads(answer.content)
    assert document["status"] == "included"
    for each in document["results"]:
        assert each["receipt"] == auto.get(f"/transaction/{each['tx_hash']}/receipt")
        assert each["receipt"]["status"] == "ok"


def test_waiting_ends_with_the_hashes_when_the_time_is_over(manual: Api) -> None:
    """408 with code 4008 tells what became of each so far."""
    answer = submit(manual, gift(manual), gift(manual, sender=1, amount=2**63), wait="_wait?timeout_ms=100")
    assert answer.status_code == 408
    document = json.loads(answer.content)
    assert (document["error"]["code"], document["error"]["context"]) == (4008, {"timeout_ms": 100, "pending": 1})
    waiting, refused = document["results"]
    assert (waiting["status"], waiting["receipt"], refused["status"]) == ("waiting", None, "refused")
    assert manual.get(f"/mempool/transaction/{waiting['tx_hash']}")["status"] == "waiting"
    hint = manual.error("GET", f"/transaction/{waiting['tx_hash']}", 404)["what"]
    assert hint.endswith(f"it waits, see /mempool/transaction/{waiting['tx_hash']}")


@pytest.mark.parametrize("timeout", ["99", "10001", "1e3", ""])
def test_waiting_is_refused_when_its_time_is_out_of_bounds(manual: Api, timeout: str) -> None:
    """A tenth of a second to ten seconds."""
    error = manual.error("POST", f"/submit_wait?timeout_ms={timeout}", 400, content=b"\x01", headers=OCTETS)
    assert error["context"]["parameter"] == "timeout_ms"


# Development


def test_development_calls_are_refused_when_the_node_is_none() -> None:
    """403 with code 4003, the faucet included, before anything is looked at."""
    with serve(LocalChain(preset="minimal"), development=False) as api:
        for path, document in [
            ("/dev/mine", {}),
            ("/dev/advance", {"height": 5}),
            ("/dev/snapshot", {}),
            ("/dev/revert", {"snapshot": 1}),
            ("/dev/reorg", {"depth": 1}),
            ("/dev/pace", {"pace": "auto"}),
            ("/dev/crowd", {"kind": "expiry"}),
            ("/dev/set_balance", {"address": str(FRIEND), "amount": 1}),
            ("/dev/set_storage", {"actor": str(FRIEND), "slot": "0x"}),
            ("/dev/set_code", {"address": str(FRIEND), "code": "0x"}),
            ("/dev/mock", {"target": str(FRIEND), "handler": "price"}),
            ("/dev/clear_mocks", {}),
            ("/dev/hold", {"timer_id": "00" * 32}),
            ("/dev/force", {"timer_id": "00" * 32}),
            ("/dev/drop", {"timer_id": "00" * 32}),
            ("/dev/impersonate", {"sender": str(FRIEND), "instruction": {}}),
            ("/faucet", {"address": str(FRIEND)}),
            ("/jobs/1/reply", {"answer": {"value": 1}}),
            ("/dev/runner", {}),
        ]:
            assert api.error("POST", path, 403, json=document)["code"] == 4003, path
        assert api.get("/height") == {"height": 0}


def test_faucet_gives_five_thousand_cby(auto: Api) -> None:
    """In the public shape."""
    answer = auto.post("/faucet", {"address": str(FRIEND).lower()})
    assert {name: answer[name] for name in ("status", "finality", "amount", "amount_cby")} == {
        "status": "submitted",
        "finality": "pending",
        "amount": 5_000 * 10**9,
        "amount_cby": 5_000,
    }
    auto.post("/dev/mine", {})
    assert auto.get(f"/account/{FRIEND}")["balance"] == 5_000 * 10**9
    assert auto.get(f"/mempool/transaction/{answer['tx_hash']}")["status"] == "included"


def test_clock_and_branches_are_moved(manual: Api) -> None:
    """Mine, advance, snapshot, revert and reorg; what cannot be is 4xx with the chain's own words."""
    assert manual.request("POST", "/dev/mine").status_code == 200
    assert manual.post("/dev/mine", {"blocks": 4}) == {"height": 5}
    mark = manual.post("/dev/snapshot", {})
    submit(manual, gift(manual))
    assert manual.post("/dev/advance", {"height": 9}) == {"height": 9}
    assert manual.post("/dev/revert", mark) == {"height": 5}
    assert manual.get("/mempool")["total_count"] == 0
    assert manual.post("/dev/reorg", {"depth": 2}) == {"height": 3}
    assert manual.error("POST", "/dev/revert", 404, json=mark)["code"] == 1203
    assert manual.error("POST", "/dev/reorg", 422, json={"depth": 9})["code"] == 1213
    assert manual.error("POST", "/dev/advance", 422, json={"height": 2})["context"]["current_height"] == 3
    assert manual.error("POST", "/dev/mine", 400, json={"blocks": 0})["context"]["rule"].startswith(
        "an integer within 1"
    )


def test_crowd_competes_when_it_is_called(manual: Api) -> None:
    """Its timers are in the next block; a kind that there is not is refused with those that there are."""
    for members in ({"kind": "expiry", "blocks": 3}, {"blocks": 2, "load_percent": 150}):
        assert manual.post("/dev/crowd", members)["tx_hashes"]
        manual.post("/dev/mine", {"blocks": 6})
    timers = manual.get("/status")["timers"]
    assert (timers["scheduled"], timers["expired"]) == (3 * 4 + 2 * 6, 2 * 4)
    assert (
        "one of congestion, expiry" in manual.error("POST", "/dev/crowd", 400, json={"kind": "hail"})["context"]["rule"]
    )


def test_pace_is_changed_while_the_node_runs(manual: Api) -> None:
    """Health tells the pace of now."""
    assert manual.post("/dev/pace", {"pace": "auto"}) == {"pace": "auto", "block_time_ms": 1_000}
    assert manual.get("/health")["pace"] == "auto"
    error = manual.error("POST", "/dev/pace", 422, json={"pace": "interval", "block_time_ms": 5})
    assert (error["code"], error["context"]["parameter"]) == (4022, "block_time_ms")


def test_balances_and_senders_are_made_up(auto: Api) -> None:
    """A balance is set, and its owner sends without a key; the receipt comes if it is waited for."""
    answer = auto.post("/dev/set_balance", {"address": str(FRIEND), "amount": 10**15, "wait": True})
    assert (answer["status"], answer["receipt"]["status"]) == ("included", "ok")
    instruction = {"System": {"Transfer": {"to": str(auto.local.accounts[0].address), "amount": 7}}}
    sent = auto.post("/dev/impersonate", {"sender": str(FRIEND), "instruction": instruction, "wait": True})
    assert sent["receipt"]["payer"] == str(FRIEND)
    assert auto.post("/dev/impersonate", {"sender": str(FRIEND), "instruction": instruction})["status"] == "waiting"
    for wrong, code in (({"System": {"Nothing": {}}}, 1212), ({"System": {"Transfer": {"to": "0x"}}}, 1213)):
        document = {"sender": str(FRIEND), "instruction": wrong}
        assert auto.error("POST", "/dev/impersonate", 422, json=document)["code"] == code


def test_runner_jobs_are_listed_and_replied_to() -> None:
    """By state and actor, one at a time; what is no answer, and what cannot be replied to, is refused by name."""
    chain = LocalChain()
    chain.start_runner(jobs_max=5)
    actor = chain.deploy(RAW, sender=chain.accounts[0], value=10**13)
    for _ in range(2):
        actor.call("go", raw_job(), sender=chain.accounts[0], check=True)
    with serve(chain, pace=AT_ONCE) as api:
        page = api.get("/jobs")
        assert (page["jobs_max"], page["total_count"]) == (5, 2)
        assert [(job["job"], job["state"], job["arguments"]) for job in page["jobs"]] == [
            (1, "open", ["hello"]),
            (2, "open", ["hello"]),
        ]
        answer = {"answer": {"value": {"text": "a\nb"}}, "wait": True}
        assert api.post("/jobs/1/reply", answer)["status"] == "included"
        given_up = {"answer": {"failure": "retries_exhausted", "attempts": 2}, "wait": True}
        assert api.post("/jobs/2/reply", given_up)["status"] == "included"
        assert api.get("/jobs/1")["replied_at"] == api.get("/height")["height"] - 1
        assert api.get("/jobs?state=open")["jobs"] == []
        assert api.get(f"/jobs?state=answered&actor={actor.address}&limit=1")["total_count"] == 2
        assert api.get(f"/jobs?actor={FRIEND}")["total_count"] == 0
        assert api.error("POST", "/jobs/1/reply", 422, json=answer)["code"] == 1921
        assert api.error("POST", "/jobs/3/reply", 404, json=answer)["what"] == "there is no runner job 3"
        assert api.error("GET", "/jobs/3", 404)["what"] == "there is no runner job 3"
        for wrong in ({}, {"value": 1, "failure": "retries_exhausted"}, {"failure": "because"}, {"other": 1}):
            assert api.error("POST", "/jobs/1/reply", 422, json={"answer": wrong})["code"] == 4022
        assert api.post("/dev/runner", {"jobs_max": 0, "wait": True})["status"] == "included"
        assert api.get("/jobs")["jobs_max"] == 0


def test_storage_code_and_mocks_are_set(auto: Api) -> None:
    """The chain answers in its own words to what it refuses."""
    asks = b"def ask(payload):\n    return pvm_host.call_actor(payload, 'price', b'', 50_000)\n"
    address, oracle = str(FRIEND), b"\x78" * 20
    assert auto.post("/dev/set_code", {"address": address, "code": f"0x{asks.hex()}", "wait": True})["error"] is None
    slot = {"actor": address, "slot": "0x6b"}
    assert auto.post("/dev/set_storage", {**slot, "value": "0x76", "wait": True})["receipt"]["status"] == "ok"
    assert auto.get(f"/actors/{address}/storage")["storage"] == {"0x6b": "0x76"}
    auto.post("/dev/set_storage", {**slot, "wait": True})
    assert auto.get(f"/actors/{address}/storage")["storage"] == {}
    mock = {"target": f"0x{oracle.hex()}", "handler": "price"}
    auto.post("/dev/mock", {**mock, "returns": "0x35", "times": 1, "wait": True})
    view = {"actor": address, "handler": "ask", "payload": f"0x{oracle.hex()}"}
    assert auto.post("/view", view)["return_value"] == "0x35"
    refused = auto.post("/dev/mock", {**mock, "returns": "0x35", "reverts": "no", "wait": True})
    assert refused["receipt"]["error"]["what"] == "a mock of price either returns or reverts, not both"
    assert auto.error("POST", "/dev/mock", 400, json={**mock, "times": 0})["context"]["parameter"] == "times"
    auto.post("/dev/clear_mocks", {"wait": True})
    assert "there is no actor" in auto.post("/view", view)["error"]["what"]


def test_timers_are_held_forced_and_dropped() -> None:
    """Each in a block that is waited for."""
    chain = LocalChain(preset="minimal")
    puppet = chain.deploy(PUPPET, sender=chain.accounts[0], value=10**13)
    now = chain.height
    perform(puppet, *(step("schedule_timer_ex", now + 30 + at, b"", gas_limit=60_000) for at in range(3)))
    with serve(chain, pace=AT_ONCE) as api:
        first, second, third = (timer["timer_id"] for timer in api.get("/timers")["timers"])
        assert api.post("/dev/hold", {"timer_id": first, "until": 500, "wait": True})["status"] == "included"
        assert api.get(f"/timers/{first}")["height"] == 500
        assert api.post("/dev/force", {"timer_id": second, "wait": True})["status"] == "included"
        assert api.get(f"/timers/{second}")["state"] == "fired"
        assert api.post("/dev/drop", {"timer_id": third, "wait": True})["status"] == "included"
        assert api.get(f"/timers/{third}")["state"] == "cancelled"
        assert api.error("POST", "/dev/hold", 404, json={"timer_id": third})["code"] == 1203
        stories = [step["event"] for step in api.get(f"/timers/{first}/explain")["steps"]]
        assert stories == ["timer.scheduled", "timer.moved"]
