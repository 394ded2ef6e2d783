"""A flood of transactions that can never run, from many connections at full speed, while somebody sends good ones."""

import asyncio
import json
import logging
import random
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.integration.node.wires import Reply, on_uvloop, read_replies, request, running_node
from trailboss.chain.development import account_name, development_account
from trailboss.chain.drafts import Terms, draft_transaction
from trailboss.chain.view import ChainView
from trailboss.codec.wire import encode_submission
from trailboss.crypto.digest import sha256
from trailboss.model.transactions import Transaction, Transfer
from trailboss.node.options import Pace

ATTACKERS = 4
BATCHES = 6
GOOD = 60
OCTETS = {"content_type": "application/octet-stream"}
TIGHT = Terms(cycles_limit=10_000, cells_limit=500)


@pytest.fixture(autouse=True)
def _no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing that a client sends is an error of the node's."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def gift(view: ChainView, sender: int, waiting: int = 0, private_key: bytes | None = None) -> Transaction:
    """Return a small transfer, signed."""
    key = private_key or development_account(account_name(sender)).private_key
    to = development_account(account_name(9)).address
    return draft_transaction(view, Transfer(to, 7), key, terms=TIGHT, waiting=waiting)


def bad_ones(view: ChainView, dice: random.Random) -> list[bytes]:
    """Return the bodies of submissions of which nothing can be taken, each bad in another way."""
    good = gift(view, 1)
    stranger = sha256(dice.randbytes(8))
    batches = [
        # Each signature is right, and another one's: the dearest to find out.
        [replace(good, cycles_limit=good.cycles_limit + 1 + extra) for extra in range(50)],
        [gift(view, 2, waiting=10**6 + extra) for extra in range(20)],
        [gift(view, 3, private_key=stranger)],
        [replace(good, chain_id=good.chain_id + 1)],
        [replace(good, max_fee_per_cycle=1)],
        [replace(good, cycles_limit=1)],
    ]
    bodies = [encode_submission(batch) for batch in batches]
    cut = bodies[0][: len(bodies[0]) // 2]
    return [*bodies, b"", b"\x01", b"\x01\x32", cut, dice.randbytes(20_000), bytes(600_000), bodies[0] + b"\x00"]


async def attack(port: int, bodies: list[bytes], dice: random.Random) -> list[Reply]:
    """Send bad submissions on one connection, as fast as the node answers."""
    replies: list[Reply] = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(BATCHES * len(bodies)):
        writer.write(request("POST", dice.choice(("/submit", "/submit_wait")), dice.choice(bodies), **OCTETS))
        replies += await read_replies(reader, 1)
    writer.close()
    return replies


async def send_good(port: int, view: ChainView) -> list[str]:
    """Send good transactions one by one, and return their hashes."""
    hashes = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for waiting in range(GOOD):
        body = encode_submission([gift(view, 0, waiting=waiting)])
        writer.write(request("POST", "/submit", body, **OCTETS))
        (reply,) = await read_replies(reader, 1)
        assert reply.status == 200, reply.body
        hashes.append(json.loads(reply.body)["results"][0]["tx_hash"])
    writer.close()
    return hashes


@on_uvloop
async def test_good_transactions_are_all_included_when_bad_ones_come_at_full_speed() -> None:
    """Bad signatures, nonces, fees, strangers and noise are refused with a code; blocks come, with all good ones."""
    dice = random.Random(73)
    async with running_node(pace=Pace.every(20)) as (node, port):
        view = node.view
        bodies = bad_ones(view, dice)
        flood = asyncio.gather(*(attack(port, bodies, dice) for _ in range(ATTACKERS)))
        hashes = await send_good(port, view)
        replies = [reply for found in await flood for reply in found]
        assert len(replies) == ATTACKERS * BATCHES * len(bodies)
        assert {reply.status for reply in replies} <= {400, 413, 422}
        assert all(1000 < reply.code < 5000 for reply in replies)
        while len(node.mempool):
            await asyncio.sleep(0.005)
        blocks = node.view.blocks[view.height + 1 :]
        included = [f"0x{receipt.origin_hash.hex()}" for block in blocks for receipt in block.receipts]
        assert included == hashes
        assert node.health.is_running
