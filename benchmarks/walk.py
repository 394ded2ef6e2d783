"""The length of trips through the source: functions, files and calls of `trailboss` that Python enters.

Run it: ``python -m benchmarks.walk``; ``--functions`` and the name of a trip lists every function of it as well.
"""

import argparse
import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Final

import httpx
from msgspec import Struct

import trailboss
from trailboss.chain.drafts import draft_transaction
from trailboss.codec.wire import decode_transaction, encode_submission, encode_transaction
from trailboss.index import Index
from trailboss.mempool import Mempool
from trailboss.model.transactions import Transfer
from trailboss.node.options import AUTO, NodeOptions
from trailboss.node.service import Node
from trailboss.server import build_application
from trailboss.testing import LocalChain

ROOT: Final = str(Path(trailboss.__file__).parent)
CBY: Final = 10**9
FIRE_AHEAD: Final = 3
URL: Final = "http://127.0.0.1:4000"
HEADERS: Final = {"content-type": "application/octet-stream"}
ACTOR: Final = f"""
def arm(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + {FIRE_AHEAD}, b"tick", gas_limit=200_000)


def handle_timer(payload):
    pvm_host.set_state(b"last", payload)
"""
NOT_OURS: Final = ("<module>", "<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
"""Code without a name of its own is a part of the function around it."""


class Walk(Struct, frozen=True):
    """What one trip enters."""

    entries: list[tuple[str, str, int]]  # file, name and thread of each function, in order

    def functions(self) -> Counter[tuple[str, str]]:
        """Return how often it enters each function, by file and name."""
        return Counter((path, name) for path, name, _ in self.entries)

    def files(self) -> set[str]:
        """Return the files that it enters."""
        return {path for path, _, _ in self.entries}

    def changes(self) -> int:
        """Return how often it goes on in another thread."""
        return sum(before != after for (_, _, before), (_, _, after) in pairwise(self.entries))


@contextmanager
def recorded() -> Iterator[Walk]:
    """Record what is entered meanwhile, in this thread and in those that start."""
    walk = Walk([])

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name not in NOT_OURS:
            walk.entries.append((code.co_filename[len(ROOT) + 1 :], code.co_qualname, threading.get_ident()))

    sys.setprofile(note)
    threading.setprofile(note)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def walked(trip: Callable[[], object]) -> Walk:
    """Make a trip and return what it enters."""
    with recorded() as walk:
        trip()
    return walk


def transfer() -> Walk:
    """Walk with one transfer, from its bytes to its receipt."""
    with LocalChain() as chain:
        alice, bob = chain.accounts[:2]
        chain.transfer(bob, CBY, sender=alice)  # What happens once only is left out.
        signed = draft_transaction(chain.chain, Transfer(bob.address, CBY), alice.private_key)
        octets = encode_transaction(signed)
        return walked(lambda: chain.submit(decode_transaction(octets)))


async def submit_wait() -> Walk:
    """Walk with one transfer over HTTP, from the request's bytes to its answer."""
    with LocalChain() as chain:
        alice, bob = chain.accounts[:2]
        transfer = Transfer(bob.address, CBY)
        drafts = [draft_transaction(chain.chain, transfer, alice.private_key, waiting=waiting) for waiting in (0, 1)]
        bodies = [encode_submission([draft]) for draft in drafts]
        with recorded() as walk:  # From the start of the node, which starts its threads.
            node = Node(chain.chain, Mempool(), Index.open(None, chain.chain), NodeOptions(pace=AUTO))
            node.start()
            await node.do(lambda builder: builder.chain.height)  # The chain thread has prepared itself.
            transport = httpx.ASGITransport(build_application(node))
            async with httpx.AsyncClient(transport=transport, base_url=URL, headers=HEADERS) as client:
                for body in bodies:  # What happens once only is left out.
                    walk.entries.clear()
                    answer = await client.post("/submit_wait", content=body)
                    assert answer.status_code == HTTPStatus.OK, answer.text
                found = Walk(walk.entries[:])
            await node.close()
        return found


def fire(mechanism: str) -> Walk:
    """Walk with the block that fires one timer."""
    with LocalChain(mechanism=mechanism) as chain:
        actor = chain.deploy(ACTOR, sender=chain.accounts[0], value=100 * CBY)
        actor.call("arm", b"", sender=chain.accounts[0], check=True)
        chain.mine(FIRE_AHEAD)  # What happens once only is left out.
        actor.call("arm", b"", sender=chain.accounts[0], check=True)
        chain.mine(FIRE_AHEAD - 1)
        found = walked(chain.mine)
        assert actor.storage[b"last"] == b"tick"
        return found


def main() -> None:
    """Print the length of the trips."""
    trips: dict[str, Callable[[], Walk]] = {
        "transfer": transfer,
        "submit_wait": lambda: asyncio.run(submit_wait()),
        "fire, fifo": lambda: fire("fifo"),
        "fire, lane": lambda: fire("lane"),
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walk")
    parser.add_argument("--functions", choices=trips, help="list what this trip enters")
    arguments = parser.parse_args()
    walks = {name: trip() for name, trip in trips.items()}
    sys.stdout.write(f"{'trip':<12}{'files':>8}{'functions':>12}{'calls':>8}{'thread changes':>17}\n")
    for name, walk in walks.items():
        counts = f"{len(walk.files()):>8}{len(walk.functions()):>12}{len(walk.entries):>8}{walk.changes():>17}"
        sys.stdout.write(f"{name:<12}{counts}\n")
    if arguments.functions:
        for (path, function), calls in sorted(walks[arguments.functions].functions().items()):
            sys.stdout.write(f"{calls:>5}  {path}  {function}\n")


if __name__ == "__main__":
    main()
