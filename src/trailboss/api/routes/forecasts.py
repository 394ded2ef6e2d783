"""What a timer would cost, and how long a purse lasts."""

from typing import Final

from trailboss.api.common import LIMIT_MAX
from trailboss.api.errors import HttpReason
from trailboss.api.kinds import ADDRESS, HEIGHT, integer
from trailboss.api.operations import Call, Routes
from trailboss.api.parsing import path, query, query_or, required_query
from trailboss.index.answers.records import extended
from trailboss.views.forecast.quote import Quote, quote_timer
from trailboss.views.forecast.recent import BLOCKS, BLOCKS_MAX
from trailboss.views.forecast.runway import Runway, runway_of
from trailboss.views.forecast.watchtower import PAYERS_SHOWN, Watch

routes: Final = Routes("forecasts")
DUE_AT: Final = required_query("height", HEIGHT, "At which the timer would be due.")
GAS_LIMIT: Final = required_query("gas_limit", integer(minimum=1), "Cycles the fire may use.")
TIP: Final = query("tip", integer(), "max_priority_fee_per_cycle, base units; the default agent's if left out.")
OWNER: Final = query("actor", ADDRESS, "Whose timer; one that has not fired if left out.")
RECENT: Final = query_or("blocks", integer(BLOCKS_MAX, 1), "How many of the last blocks to go by.", BLOCKS)
MOST: Final = query_or("limit", integer(LIMIT_MAX, 1), "Most payers to answer.", PAYERS_SHOWN)
PAYER: Final = path("payer", ADDRESS, "Whose purse.")


class QuoteAnswer(Quote, frozen=True, kw_only=True):
    """What a timer that is scheduled now would cost, and how likely it runs soon after it is due.

    Attributes:
        per_cycle: What one cycle costs now, everything counted.
    """

    per_cycle: int


@routes.get(
    "/quote",
    DUE_AT,
    GAS_LIMIT,
    TIP,
    OWNER,
    RECENT,
    answers=QuoteAnswer,
    refuses=(HttpReason.NOT_FOUND, HttpReason.INVALID_VALUE),
)
def quote(call: Call) -> QuoteAnswer:
    """Say what a timer scheduled now would cost, and how often one like it would have run lately."""
    found = quote_timer(call.view, call[DUE_AT], call[GAS_LIMIT], call[TIP], actor=call[OWNER], blocks=call[RECENT])
    return extended(QuoteAnswer, found, per_cycle=found.per_cycle)


@routes.get("/runway/{payer}", PAYER, RECENT, answers=Runway)
def runway(call: Call) -> Runway:
    """Tell how many fires a purse still pays for, and in which block it runs dry."""
    return runway_of(call.view, call[PAYER], blocks=call[RECENT])


@routes.get("/watchtower", MOST, answers=Watch)
def watchtower(call: Call) -> Watch:
    """Tell which payers run dry first, whose timers came to nothing lately, and what fires cost.

    A node looks at some payers at once, 2,000 timers of theirs: those with the shortest runway, those whose fires have
    just run, those whose timers come next, and the others in turn. An actor whose timers came to nothing in the last
    100 blocks is told too if it has no live timer any more.
    """
    return call.node.watchtower.look(call.view, call[MOST])
