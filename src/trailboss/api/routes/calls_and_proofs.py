"""Read-only calls and proofs."""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from trailboss.api.errors import HttpError, HttpReason, invalid
from trailboss.api.operations import Call, Routes
from trailboss.api.requests import U64, choice, integer, octets, text, unhex
from trailboss.api.transaction_shape import only
from trailboss.chain.proofs import AccountSubject, SlotSubject, StorageSubject, Subject, TimersSubject, timer_subject
from trailboss.chain.view import ChainView
from trailboss.node.service import ASKED_CYCLES_MAX
from trailboss.primitives.octets import ZERO_ADDRESS, Address, Hash32
from trailboss.primitives.units import Height
from trailboss.views import Answer
from trailboss.views.accounts import storage_page

routes: Final = Routes("reading")
PROVEN_MAX: Final = 10_000  # timers or slots of one proof
TAKEN: Final[dict[str, tuple[str, ...]]] = {
    "account": ("address",),
    "slot": ("address", "name"),
    "storage": ("address",),
    "timer": ("timer_id", "height"),
    "timers": ("first", "last"),
}
"""Members that each kind of proof takes; all but the height of a timer must be there."""
PROOF: Final = {
    "description": "What `trailboss verify-proof` reads; see the page on proofs.",
    **only(
        {
            "version": {"type": "integer"},
            "subject": {"type": "object"},
            "other_digests": {"type": "array", "items": {"type": "string"}},
            "nodes": {"type": "array", "items": {"type": "object"}},
            "values": {"type": "array", "items": {"type": "string"}},
        }
    ),
}


class ProofAnswer(Struct, frozen=True):
    """What the state holds, with the proof of it."""

    height: int  # of the block after which it is so
    block_hash: Hash32  # hash of that block
    state_root: Hash32  # root that the proof holds for; the block's header has it
    statement: str  # what is proven, in words
    proof: Annotated[dict[str, Any], Meta(extra_json_schema=PROOF)]  # the proof


@routes.post("/view")
async def view(
    call: Call,
    *,
    actor: Address,  # actor that has the handler
    handler: Annotated[str, text(256)],  # function or method
    payload: Annotated[str, octets(2**17)] = "0x",  # its argument; none if left out
    sender: Address | None = None,  # caller that the handler sees; address 0 if left out
    cycles_limit: Annotated[int, integer(ASKED_CYCLES_MAX, 1)] = ASKED_CYCLES_MAX,  # most cycles that it may use
) -> Answer:
    """Run a handler read-only, as the next block would: nothing changes, and no account pays."""
    sender = sender or ZERO_ADDRESS
    return await call.node.ask(actor, handler, unhex(payload), sender, cycles_limit)


@routes.post("/proof", refuses=(HttpReason.NOT_FOUND, HttpReason.INVALID_VALUE))
def proof(
    call: Call,
    *,
    kind: Annotated[str, choice(*TAKEN)],  # subject of the proof
    address: Address | None = None,  # of `account`, `slot` and `storage`: the account or actor
    name: Annotated[str, octets(2**12)] | None = None,  # of `slot`: its name
    timer_id: Hash32 | None = None,  # of `timer`: its id
    height: U64 | None = None,  # of `timer`: the height at which it was due, to prove that it is gone
    first: U64 | None = None,  # of `timers`: the lowest height at which they are due
    last: U64 | None = None,  # of `timers`: the highest height
) -> ProofAnswer:
    """Prove what the state holds of an account, a slot, an actor's storage, a timer, or the timers of some heights."""
    chain = call.view
    members = {"address": address, "name": name, "timer_id": timer_id, "height": height, "first": first, "last": last}
    _check_members(kind, members)
    found = chain.prove(_subject(chain, kind, **members))
    statement = found.verify(chain.state_root)
    return ProofAnswer(chain.height, chain.head.hash, chain.state_root, statement=str(statement), proof=found.to_json())


def _subject(chain: ChainView, kind: str, **members: Any) -> Subject:
    match kind:
        case "account":
            return AccountSubject(members["address"])
        case "slot":
            return SlotSubject(members["address"], unhex(members["name"]))
        case "storage":
            _check_slots(chain, members["address"])
            return StorageSubject(members["address"])
        case "timer":
            return timer_subject(chain.store, members["timer_id"], members["height"])
        case _:
            return _timers(chain, members["first"], members["last"])


def _check_members(kind: str, members: Mapping[str, object]) -> None:
    taken = TAKEN[kind]
    rule = f"{kind} takes {', '.join(taken)}"
    for name, value in members.items():
        if value is not None and name not in taken:
            what = f"a proof of the kind {kind} takes {', '.join(taken)}, not {name}"
        elif value is None and name in taken and name != "height":
            what = f"a proof of the kind {kind} needs {name}"
        else:
            continue
        raise HttpError(HttpReason.INVALID_VALUE, what, parameter=name, rule=rule)


def _timers(chain: ChainView, first: int, last: int) -> TimersSubject:
    if last < first:
        raise invalid("last", last, f"at least first, {first}")
    if len(list(islice(chain.timers(first, last), PROVEN_MAX + 1))) > PROVEN_MAX:
        raise invalid("last", last, f"such that at most {PROVEN_MAX:,} timers are due from {first} to there")
    return TimersSubject(Height(first), Height(last))


def _check_slots(chain: ChainView, address: Address) -> None:
    if storage_page(chain, address, PROVEN_MAX).next_cursor is not None:
        raise invalid("address", str(address), f"an actor of at most {PROVEN_MAX:,} slots; prove them one by one")
