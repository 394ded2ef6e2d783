"""What actors print is shown wherever their executions are, and is in no root. Decision: D-89."""

from pathlib import Path

import msgspec
import pytest

from tests.integration.node.apis import serve
from trailboss.chain import Chain
from trailboss.chain.block_records import decode_block, encode_block
from trailboss.chain.replay import replay_to, verify_chain
from trailboss.testing import ActorHandle, LocalChain
from trailboss.vm.printed_lines import Printing

CBY = 10**9

TALKER = """
def start(payload):
    print("starting", payload, [1, None])
    pvm_host.schedule_timer(pvm_host.block_height() + 2, b"tick")
    pvm_host.send_message(pvm_host.self_address(), b"hello")


def handle_timer(payload):
    print("the timer says", payload)
    raise ValueError("it fails all the same")


def handle_message(payload):
    print("a message", end=": ")
    print(payload)


def nested(payload):
    print("before")
    try:
        pvm_host.call_actor(payload, "fails", b"", 100_000, 0)
    except pvm_host.HostError:
        print("after")


def fails(payload):
    print("within")
    1 // 0


def loops(payload):
    while True:
        print("round")


def asked(payload):
    print("only asked")
    return payload


def get_gas_bid(payload):
    print("bidding")


def choose(payload):
    pvm_host.set_gas_bidding_agent(pvm_host.self_address())
    pvm_host.schedule_timer(pvm_host.block_height() + 2, b"")
"""


def deploy(chain: LocalChain) -> ActorHandle:
    return chain.deploy(TALKER, sender=chain.accounts[0], value=1_000 * CBY, entitlements=["timer.schedule"])


def printed(chain: LocalChain) -> list[tuple[int, str, str]]:
    return [(line.block_height, line.handler, line.text) for each in chain.receipts() for line in each.printed]


def test_lines_stand_in_the_receipts_of_all_executions_and_on_the_standard_output(
    chain: LocalChain, capsys: pytest.CaptureFixture[str]
) -> None:
    """With actor, handler and block; of frames that revert as well."""
    actor = deploy(chain)
    actor.call("start", b"now", sender=chain.accounts[0], check=True)
    chain.mine(2)
    assert printed(chain) == [
        (2, "start", "starting b'now' [1, None]"),
        (2, "handle_message", "a message: b'hello'"),
        (4, "handle_timer", "the timer says b'tick'"),
    ]
    assert [receipt.status for receipt in chain.receipts(origin="timer")] == ["reverted"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"block 2, {actor.address} start: starting b'now' [1, None]"
    assert lines[2] == f"block 4, {actor.address} handle_timer: the timer says b'tick'"


def test_lines_keep_their_order_when_calls_nest_and_fail(chain: LocalChain) -> None:
    """Each is its own actor's, whatever becomes of its frame."""
    first, second = deploy(chain), deploy(chain)
    receipt = first.call("nested", bytes(second.address), sender=chain.accounts[0], check=True)
    lines = [(line.actor, line.handler, line.text) for line in receipt.printed]
    assert lines == [
        (first.address, "nested", "before"),
        (second.address, "fails", "within"),
        (first.address, "nested", "after"),
    ]


def test_lines_are_bounded_in_an_execution_and_in_a_block(chain: LocalChain) -> None:
    """What comes after the bound is not kept, and a line says so."""
    actor = deploy(chain)
    receipt = actor.call("loops", sender=chain.accounts[0])
    assert receipt.error is not None
    assert receipt.error.slug == "out_of_cycles"
    assert len(receipt.printed) == 101
    assert "not kept" in receipt.printed[-1].text
    wordy = chain.deploy("def go(payload):\n    print('x' * 8_000)\n", sender=chain.accounts[0])
    with chain.one_block():
        sent = [wordy.call("go", sender=chain.accounts[0], cycles_limit=50_000, cells_limit=50) for _ in range(20)]
    texts = [each.printed[0].text for each in sent]
    assert [len(text) == 8_000 for text in texts] == [True] * 16 + [False] * 4
    assert texts[-1] == "(more is printed and not kept: the lines of a block have 131,072 characters at most)"


def test_answer_of_a_read_only_call_has_its_lines(chain: LocalChain, capsys: pytest.CaptureFixture[str]) -> None:
    """A view prints like anything else."""
    answer = deploy(chain).view("asked", b"x")
    assert [line.text for line in answer.printed] == ["only asked"]
    assert "asked: only asked" in capsys.readouterr().out


@pytest.mark.trailboss(mechanism="lane")
def test_lines_of_an_agent_stand_beside_the_block_that_asked_it(
    chain: LocalChain, capsys: pytest.CaptureFixture[str]
) -> None:
    """A question has no receipt."""
    deploy(chain).call("choose", sender=chain.accounts[0], check=True)
    chain.mine(2)
    assert [(line.handler, line.text) for line in chain.block().printed] == [("get_gas_bid", "bidding")]
    assert "get_gas_bid: bidding" in capsys.readouterr().out


def test_hashes_and_roots_are_the_same_when_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reopened and replayed chains have the same ones as well, and the lines again."""

    def play(data_dir: Path | None) -> tuple[list[bytes], list[tuple[int, str, str]]]:
        with LocalChain(data_dir=data_dir) as chain:
            if chain.height == 0:
                deploy(chain).call("start", b"now", sender=chain.accounts[0], check=True)
                chain.mine(3)
            assert verify_chain(chain.chain).ok
            replica = replay_to(chain.chain, chain.height)
            assert [block.receipts for block in replica.blocks] == [block.receipts for block in chain.chain.blocks]
            return [bytes(block.hash) for block in chain.chain.blocks], printed(chain)

    written = play(tmp_path / "chain")
    assert written[1]
    assert play(tmp_path / "chain") == play(None) == written
    monkeypatch.setattr(Printing, "write", lambda *_: None)
    # What a chain has kept before is no difference to a replay that keeps nothing.
    with Chain.open(tmp_path / "chain") as chain:
        assert verify_chain(chain).ok
    assert play(None) == (written[0], [])


def test_record_is_read_when_it_was_written_before_lines_were_kept(chain: LocalChain) -> None:
    """The lines stand at the end of what holds them."""
    deploy(chain)
    block = chain.block()
    record = encode_block(block)
    stored = msgspec.msgpack.decode(record[1:])
    stored[2] = [receipt[:-1] for receipt in stored[2]]
    assert decode_block(record[:1] + msgspec.msgpack.encode(stored[:-1])) == block


def test_node_shows_lines_in_receipts_and_answers(chain: LocalChain) -> None:
    """The API has them where it has the receipt."""
    actor = deploy(chain)
    actor.call("start", b"now", sender=chain.accounts[0], check=True)
    place = chain.block().receipts[0].origin_hash.hex()
    with serve(chain) as api:
        line = {"actor": str(actor.address), "is_warning": False, "block_height": 2}
        told = {**line, "handler": "start", "text": "starting b'now' [1, None]"}
        assert api.get(f"/transaction/0x{place}/receipt")["printed"] == [told]
        answer = api.post("/view", {"actor": str(actor.address), "handler": "asked", "payload": "0x00"})
        assert answer["printed"] == [{**line, "handler": "asked", "text": "only asked"}]
