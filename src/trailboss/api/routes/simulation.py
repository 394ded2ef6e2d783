"""Simulations: a transaction or a fire runs, and what it writes is thrown away."""

from typing import Annotated, Any, Final

from msgspec import Meta

from trailboss.api.errors import HttpReason
from trailboss.api.operations import Call, Routes
from trailboss.api.requests import U64
from trailboss.api.transaction_shape import INSTRUCTION_RULE, INSTRUCTION_SCHEMA
from trailboss.chain.drafts import CELLS_LIMIT, CYCLES_LIMIT, Terms
from trailboss.chain.view import ChainView
from trailboss.codec.layout import INSTRUCTION
from trailboss.primitives.octets import Address, Hash32
from trailboss.rehearsal.overrides import BASEFEES, overrides_of
from trailboss.views import Receipt

routes: Final = Routes("reading")
REFUSES: Final = (HttpReason.NOT_FOUND, HttpReason.INVALID_VALUE)
_AMOUNT: Final = {"type": "integer", "minimum": 0}
OVERRIDES: Final = {
    "description": "What is taken to be otherwise: balances, base units by address; slots by actor and name, null for "
    "none; source by actor; basefees.",
    "type": "object",
    "properties": {
        "balances": {"type": "object", "additionalProperties": _AMOUNT},
        "slots": {"type": "object", "additionalProperties": {"type": "object"}},
        "code": {"type": "object", "additionalProperties": {"type": "string"}},
        **dict.fromkeys(BASEFEES, _AMOUNT),
    },
    "additionalProperties": False,
}
OverridesDocument = Annotated[
    dict[str, Any], Meta(extra_json_schema=OVERRIDES, extra={"rule": "an object of overrides"})
]


@routes.post("/simulate", refuses=REFUSES)
def simulate_transaction(
    call: Call,
    *,
    sender: Address,  # account that sends it; nothing is signed
    # What it does.
    instruction: Annotated[dict[str, Any], Meta(extra_json_schema=INSTRUCTION_SCHEMA, extra=INSTRUCTION_RULE)],
    cycles_limit: U64 = CYCLES_LIMIT,  # most cycles that it may use
    cells_limit: U64 = CELLS_LIMIT,  # most cells that it may use
    max_fee_per_cycle: U64 | None = None,  # most a cycle may cost; the tip and twice the basefee if left out
    max_fee_per_cell: U64 | None = None,  # most a cell may cost; the tip and twice the basefee if left out
    max_priority_fee_per_cycle: U64 = 0,  # tip a cycle, base units
    max_priority_fee_per_cell: U64 = 0,  # tip a cell, base units
    height: U64 | None = None,  # block after which it runs; the last one if left out
    overrides: OverridesDocument | None = None,  # what is taken to be otherwise
) -> Receipt:
    """Run a transaction as the next block would, alone, and throw away what it writes; anyone can be its sender."""
    parsed = INSTRUCTION.parse(instruction, "instruction")
    terms = Terms(
        cycles_limit=cycles_limit,
        cells_limit=cells_limit,
        max_fee_per_cycle=max_fee_per_cycle,
        max_fee_per_cell=max_fee_per_cell,
        max_priority_fee_per_cycle=max_priority_fee_per_cycle,
        max_priority_fee_per_cell=max_priority_fee_per_cell,
    )
    view, otherwise = _view_after(call, height), overrides_of(overrides or {})
    return call.node.workbench.simulate(view, parsed, sender, terms, otherwise)


@routes.post("/simulate/fire", refuses=REFUSES)
def simulate_timer(
    call: Call,
    *,
    timer_id: Hash32,
    height: U64 | None = None,  # block after which to begin; the last one if left out
    overrides: OverridesDocument | None = None,  # what is taken to be otherwise
) -> Receipt:
    """Run a live timer's next fire, as it comes if nothing is sent until then, and throw away what it writes."""
    view, otherwise = _view_after(call, height), overrides_of(overrides or {})
    return call.node.workbench.simulate_fire(view, timer_id, otherwise)


def _view_after(call: Call, height: int | None) -> ChainView:
    return call.view if height is None or height == call.view.height else call.node.state_after(height)
