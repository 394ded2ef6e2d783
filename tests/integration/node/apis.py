"""A real node over a real chain, asked through its application: without sockets, and without waiting."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from starlette.types import ASGIApp

from tests.integration import auctions, boxes
from tests.integration.helpers import CBY, FUNDS, PUPPET, perform, step
from trailboss.api.app import create_app
from trailboss.index import Index
from trailboss.mempool import Mempool
from trailboss.node.options import MANUAL, NodeOptions
from trailboss.node.service import Node
from trailboss.testing import ActorHandle, LocalChain

STUMBLER = '''
"""Fires twice, raises in between, and says what JSON cannot carry as it is."""


def init(payload):
    now = pvm_host.block_height()
    pvm_host.schedule_timer_ex(now + 2, b"raise", gas_limit=60_000)
    pvm_host.schedule_timer_ex(now + 3, b"again", gas_limit=60_000)
    pvm_host.emit_event("note \\u2026", b"\\xff\\x00")


def handle_timer(payload):
    if payload == b"raise":
        raise ValueError("half a pair: \\udc80")
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 5, payload, gas_limit=60_000)


def fail(payload):
    return [][1]
'''


class Api:
    """What a client sees of a node.

    Attributes:
        local: The chain as it was when the node took it over; only the node changes it from then on.
        node: The node.
        app: Its application.
    """

    def __init__(self, local: LocalChain, **options: Any) -> None:
        self.local = local
        self._runner = asyncio.Runner()
        self.node, self.app, self._client = self._runner.run(self._start(local, NodeOptions(**options)))

    async def _start(self, local: LocalChain, options: NodeOptions) -> tuple[Node, ASGIApp, httpx.AsyncClient]:
        node = Node(local.chain, Mempool(), Index.open(None, local.chain), options)
        node.start()
        app = create_app(node)
        transport = httpx.ASGITransport(app=app)
        return node, app, httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4000")

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Return the answer to a request."""
        return self._runner.run(self._client.request(method, path, **options))

    def get(self, path: str) -> Any:
        """Return what a path answers, which must be well."""
        answer = self.request("GET", path)
        assert answer.status_code == 200, answer.text
        return json.loads(answer.content)

    def post(self, path: str, document: Any) -> Any:
        """Return what a path answers to a JSON body, which must be well."""
        answer = self.request("POST", path, json=document)
        assert answer.status_code == 200, answer.text
        return json.loads(answer.content)

    def error(self, method: str, path: str, status: int, **options: Any) -> Any:
        """Return the error that a request is refused with, which must have a status."""
        answer = self.request(method, path, **options)
        assert answer.status_code == status, answer.text
        return json.loads(answer.content)["error"]

    def close(self) -> None:
        """End the node."""
        self._runner.run(self._stop())
        self._runner.close()

    async def _stop(self) -> None:
        await self._client.aclose()
        await self.node.close()


@contextmanager
def serve(local: LocalChain, **options: Any) -> Iterator[Api]:
    """Serve a chain for as long as the block lasts; it is closed then. Blocks come when they are asked for."""
    api = Api(local, **{"pace": MANUAL} | options)
    try:
        yield api
    finally:
        api.close()


def lively_chain(mechanism: str) -> tuple[LocalChain, ActorHandle]:
    """Return a chain on which timers of every fate have been set, and an actor that has some."""
    chain = LocalChain(mechanism=mechanism, preset="minimal")
    actor = {"auction": _bidder, "globalbox": _boxed}.get(mechanism, _puppet)(chain)
    chain.transfer(chain.accounts[1], 5, sender=chain.accounts[2])
    chain.mine(3)
    return chain, actor


def _puppet(chain: LocalChain) -> ActorHandle:
    stumbler = chain.deploy(STUMBLER, sender=chain.accounts[1], value=FUNDS)
    stumbler.call("fail", b"", sender=chain.accounts[1])
    poor = chain.deploy(PUPPET, sender=chain.accounts[2])
    puppet = chain.deploy(PUPPET, sender=chain.accounts[0], value=100 * CBY)
    for owner in (poor, puppet):
        now = chain.height
        steps = [step("schedule_timer_ex", now + ahead, b"", gas_limit=60_000) for ahead in (2, 3, 3, 40, 900)]
        steps.append(step("schedule_timer_ex", now + 5, b"", gas_limit=60_000, expires_at=now + 4))
        perform(owner, *steps, step("set_state", b"name", b"value"), step("emit_event", "noted", b"\xa1aa\x01"))
    return puppet


def _bidder(chain: LocalChain) -> ActorHandle:
    bidder = chain.deploy(auctions.BIDDER, sender=chain.accounts[0], value=FUNDS)
    now = chain.height
    items = b" ".join(b"t%d:%d:60000" % (ahead, now + ahead) for ahead in (2, 3, 4, 40, 900))
    bidder.call("arm", items, sender=chain.accounts[0], check=True)
    bidder.call("nothing", b"", sender=chain.accounts[0])
    return bidder


def _boxed(chain: LocalChain) -> ActorHandle:
    box = boxes.deploy_box(chain)
    for ahead in (2, 3, 40, 300):
        boxes.set_timeout(box, chain.height + ahead)
    boxes.watch(box, boxes.key(box, b"pri"))
    for index in range(4):
        boxes.put(box, b"price %d" % index, b"1")
    return box
