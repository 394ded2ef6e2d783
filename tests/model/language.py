"""The little language of actors in random histories: what both of its interpreters share.

A source is JSON: ``{handler name: [operation, ...]}``. An operation is a list whose first item names it:

```text
["charge", cycles]                  ["set", slot, value]           ["delete", slot]
["schedule", delay, envelope, payer, gas limit or null, TTL or null, offer]    the offer may be left out
["extend", which, TTL]              ["cancel", which]              which: a place in the actor's own list of ids,
["transfer", who, amount]           ["emit", name, value]                 or "payload": the id in the payload
["send", who, value]                ["call", who, handler, value, cycles]
["defer", handler, value]
["agent", who or null]              ["lane"]: emits what the host says about the timer lane
["answer", {name: price}]: returns what a gas bidding agent may answer, in canonical CBOR
["try", [operation, ...]]           ["repeat", times, [operation, ...]]
["return", value]                   ["fail"]                       ["loop"]
["timeout", delay, envelope, agent, gas limit or null]                          a timer of the auction
["aim", target, delay, envelope, gas limit or null, bid, TTL or null, nonce]    of Globalbox: at a height
["watch", target, keys, envelope, gas limit or null, bid, TTL or null, nonce]   at a change; a key is [who, slot, width]
["update", target, which, {"envelope":, "gas":, "bid":}]                        each of the three may be left out
["drop", target, which]             these two emit what they answer
["delivery"]: emits what the host says about the delivery that runs
```

Values are hexadecimal. An envelope is ``["raw", value]``, ``["cbor", handler, value]`` or ``["json", handler, value]``.
``who`` is "self", "sender" (the immediate caller), "zero", "system", or "@name" of an account. A payer may be null.
An actor keeps the ids of its latest timers in the slot ``ids``.

An offer holds any of ``max_fee``, ``priority`` (prices) and ``bid``. A price is an integer, or ``[fact, times, parts,
more]``: of a fact about the lane so many times, divided by so many parts, and more. In an answer the facts are those
that the agent is told, ``mix`` is a fact that depends on all of them and on who asks, and a price may be anything
that is no list, to be malformed.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import cbor2

from tests.model.world import keccak256

IDS_SLOT = b"ids"
IDS_KEPT = 4
ID_WIDTH = 32
LOOP_CYCLES = 1_000
NO_TIMER = bytes(ID_WIDTH)
MIX_WIDTH = 2
DELIVERY = ("deliver_id", "trigger_ctx")


class Failed(Exception):
    """The operation "fail": an exception leaves the handler."""


class Returned(Exception):
    """The operation "return"."""

    def __init__(self, value: bytes) -> None:
        super().__init__(value)
        self.value = value


class Frame(NamedTuple):
    """One execution of one handler."""

    actor: bytes
    handler: str
    payload: bytes
    sender: bytes
    signer: bytes
    depth: int = 0
    read_only: bool = False
    delivery: Mapping[str, Any] | None = None


class Ending(NamedTuple):
    """How a frame ended."""

    value: bytes
    code: int | None


def enveloped(envelope: list[str]) -> bytes:
    """Return the payload that an operation "schedule" hands to the chain."""
    kind, *rest = envelope
    if kind == "raw":
        return bytes.fromhex(rest[0])
    handler, value = rest[0], bytes.fromhex(rest[1])
    if kind == "cbor":
        return cbor2.dumps({"_handler": handler, "_payload": value}, canonical=True)
    return json.dumps({"_handler": handler, "_payload": base64.b64encode(value).decode()}).encode()


def id_at(ids: bytes, place: int) -> bytes:
    """Return the id at a place, counted modulo their number; an id of nobody's if there are none."""
    count = len(ids) // ID_WIDTH
    if not count:
        return NO_TIMER
    start = place % count * ID_WIDTH
    return ids[start : start + ID_WIDTH]


def with_id(ids: bytes, timer_id: bytes) -> bytes:
    """Return the list of ids with one more; the oldest make room."""
    return (ids + timer_id)[-IDS_KEPT * ID_WIDTH :]


def asks_facts(offer: Mapping[str, Any]) -> bool:
    """Tell whether the prices of an offer depend on the lane."""
    return any(isinstance(price, list) for price in offer.values())


def priced(price: Any, facts: Mapping[str, Any]) -> Any:
    """Return a price as a number, or what is no price as it is."""
    if not isinstance(price, list):
        return price
    fact, times, parts, more = price
    return facts[fact] * times // parts + more


def answered(prices: Mapping[str, Any], payload: bytes, sender: bytes) -> bytes:
    """Return an agent's answer to what it is told; it fails if it is told something else."""
    try:
        facts = cbor2.loads(payload)
    except (cbor2.CBORDecodeError, ValueError, TypeError):
        raise Failed from None
    if not isinstance(facts, dict):
        raise Failed
    facts["mix"] = int.from_bytes(keccak256(payload + sender)[:MIX_WIDTH], "big")
    return cbor2.dumps({name: priced(price, facts) for name, price in prices.items()}, canonical=True)


def delivered(context: Mapping[str, Any] | None) -> bytes:
    """Return what a context says about a delivery in canonical CBOR: an empty map if it says nothing."""
    return told({} if context is None else {name: context[name] for name in DELIVERY if name in context})


def told(facts: Mapping[str, Any]) -> bytes:
    """Return what the host says about the lane in canonical CBOR."""
    plain = {name: dict(fact) if isinstance(fact, Mapping) else fact for name, fact in facts.items()}
    return cbor2.dumps(plain, canonical=True)
