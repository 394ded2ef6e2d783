"""Read-only calls and proofs."""

from itertools import islice
from typing import Annotated, Any, Final

from msgspec import Struct

from trailboss.api.errors import HttpError, HttpReason, invalid
from trailboss.api.kinds import ADDRESS, HASH, HEIGHT, choice, integer, octets, words
from trailboss.api.operations import Call, Routes
from trailboss.api.parsing import Parameter, member, member_or, required_member
from trailboss.api.shapes import Shape
from trailboss.chain.proofs import (
    AccountSubject,
    SlotSubject,
    StorageSubject,
    Subject,
    TimersSubject,
    timer_subject,
)
from trailboss.chain.view import ChainView
from trailboss.node.service import ASKED_CYCLES_MAX
from trailboss.primitives.octets import ZERO_ADDRESS, Address, Hash32
from trailboss.primitives.units import Height
from trailboss.views import Answer
from trailboss.views.accounts import storage_page

routes: Final = Routes("reading")
HANDLER_CHARACTERS_MAX: Final = 256
PAYLOAD_BYTES_MAX: Final = 2**17
NAME_BYTES_MAX: Final = 2**12
PROVEN_MAX: Final = 10_000
"""Timers or slots of one proof."""
ACCOUNT: Final = "account"
SLOT: Final = "slot"
STORAGE: Final = "storage"
TIMER: Final = "timer"
TIMERS: Final = "timers"

ACTOR: Final = required_member("actor", ADDRESS, "Whose handler.")
HANDLER: Final = required_member("handler", words(HANDLER_CHARACTERS_MAX), "Function or method.")
PAYLOAD: Final = member_or("payload", octets(PAYLOAD_BYTES_MAX), "Its argument; none if left out.", b"")
SENDER: Final = member_or("sender", ADDRESS, "Caller that the handler sees; address 0 if left out.", ZERO_ADDRESS)
CYCLES_LIMIT: Final = member_or(
    "cycles_limit", integer(ASKED_CYCLES_MAX, 1), "Most cycles that it may use.", ASKED_CYCLES_MAX
)
KIND: Final = required_member("kind", choice(ACCOUNT, SLOT, STORAGE, TIMER, TIMERS), "What the proof is about.")
ADDRESS_MEMBER: Final = member("address", ADDRESS, "Of `account`, `slot` and `storage`: whose.")
NAME: Final = member("name", octets(NAME_BYTES_MAX), "Of `slot`: its name.")
TIMER_ID: Final = member("timer_id", HASH, "Of `timer`: its id.")
DUE_AT: Final = member("height", HEIGHT, "Of `timer`: the height that it was due at, to prove that it is gone.")
FIRST: Final = member("first", HEIGHT, "Of `timers`: the lowest height at which they are due.")
LAST: Final = member("last", HEIGHT, "Of `timers`: the highest.")
MEMBERS: Final[tuple[Parameter[Any], ...]] = (ADDRESS_MEMBER, NAME, TIMER_ID, DUE_AT, FIRST, LAST)
TAKEN: Final[dict[str, tuple[Parameter[Any], ...]]] = {
    ACCOUNT: (ADDRESS_MEMBER,),
    SLOT: (ADDRESS_MEMBER, NAME),
    STORAGE: (ADDRESS_MEMBER,),
    TIMER: (TIMER_ID, DUE_AT),
    TIMERS: (FIRST, LAST),
}
"""Members that each kind takes; those without a height must be there."""
PROOF: Final = Shape(
    "Proof",
    {
        "type": "object",
        "description": "What `trailboss verify-proof` reads; see the page on proofs.",
        "properties": {
            "version": {"type": "integer"},
            "subject": {"type": "object"},
            "other_digests": {"type": "array", "items": {"type": "string"}},
            "nodes": {"type": "array", "items": {"type": "object"}},
            "values": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["version", "subject", "other_digests", "nodes", "values"],
        "additionalProperties": False,
    },
)


class ProofAnswer(Struct, frozen=True, kw_only=True):
    """What the state holds, with the proof of it.

    Attributes:
        height: Of the block after which it is so.
        block_hash: Hash of that block.
        state_root: Root that the proof holds for; the block's header has it.
        statement: What is proven, in words.
        proof: The proof.
    """

    height: int
    block_hash: Hash32
    state_root: Hash32
    statement: str
    proof: Annotated[dict[str, Any], PROOF]


@routes.post("/view", ACTOR, HANDLER, PAYLOAD, SENDER, CYCLES_LIMIT, answers=Answer)
async def view(call: Call) -> Answer:
    """Run a handler read-only, as the next block would: nothing changes, and nobody pays."""
    return await call.node.ask(call[ACTOR], call[HANDLER], call[PAYLOAD], call[SENDER], call[CYCLES_LIMIT])


@routes.post(
    "/proof",
    KIND,
    *MEMBERS,
    answers=ProofAnswer,
    refuses=(HttpReason.NOT_FOUND, HttpReason.INVALID_VALUE),
)
def proof(call: Call) -> ProofAnswer:
    """Prove what the state holds of an account, a slot, an actor's storage, a timer, or the timers of some heights."""
    chain = call.view
    found = chain.prove(_subject(call, chain))
    statement = found.verify(chain.state_root)
    return ProofAnswer(
        height=chain.height,
        block_hash=chain.head.hash,
        state_root=chain.state_root,
        statement=str(statement),
        proof=found.to_json(),
    )


def _subject(call: Call, chain: ChainView) -> Subject:
    kind = call[KIND]
    _check_members(call, kind)
    address, name, timer_id = call[ADDRESS_MEMBER] or ZERO_ADDRESS, call[NAME] or b"", call[TIMER_ID]
    match kind:
        case "account":
            return AccountSubject(address)
        case "slot":
            return SlotSubject(address, name)
        case "storage":
            _check_slots(chain, address)
            return StorageSubject(address)
        case "timer" if timer_id is not None:
            return timer_subject(chain.store, timer_id, call[DUE_AT])
        case _:
            return _timers(chain, call[FIRST] or 0, call[LAST] or 0)


def _check_members(call: Call, kind: str) -> None:
    taken = TAKEN[kind]
    names = ", ".join(each.name for each in taken)
    for parameter in MEMBERS:
        is_there = call[parameter] is not None
        if is_there and parameter not in taken:
            what = f"a proof of the kind {kind} takes {names}, not {parameter.name}"
            raise HttpError(HttpReason.INVALID_VALUE, what, parameter=parameter.name, rule=f"{kind} takes {names}")
        if not is_there and parameter in taken and parameter is not DUE_AT:
            what = f"a proof of the kind {kind} needs {parameter.name}"
            raise HttpError(HttpReason.INVALID_VALUE, what, parameter=parameter.name, rule=f"{kind} takes {names}")


def _timers(chain: ChainView, first: int, last: int) -> TimersSubject:
    if last < first:
        raise invalid("last", last, f"at least first, {first}")
    if len(list(islice(chain.timers(first, last), PROVEN_MAX + 1))) > PROVEN_MAX:
        raise invalid("last", last, f"such that at most {PROVEN_MAX:,} timers are due from {first} to there")
    return TimersSubject(Height(first), Height(last))


def _check_slots(chain: ChainView, address: Address) -> None:
    if storage_page(chain, address, PROVEN_MAX).next_cursor is not None:
        raise invalid("address", str(address), f"an actor of at most {PROVEN_MAX:,} slots; prove them one by one")
