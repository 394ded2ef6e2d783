"""``bid``: gas bidding agents, tried on a chain's own history."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

from trailboss.cli.command import Invocation, command
from trailboss.cli.lazy import group
from trailboss.cli.options import Text, argument, height, option
from trailboss.cli.output import columns, print_json, print_table, progress
from trailboss.cli.values import read_text
from trailboss.primitives.units import format_cby
from trailboss.rehearsal.backtest import Backtest, Bidding, backtest
from trailboss.views.json_values import to_json_value

bid = group("Try gas bidding agents on a chain's own history.")
REPLAYS: Final = 2


@bid.command("backtest")
@command()
def backtest_agent(
    run: Invocation,
    agent: Annotated[Path, argument("FILE", "Source of the agent, with a handler get_gas_bid.")],
    actor: Annotated[Text, option("ACTOR", "Ask it about this actor's timers alone.", "all with an agent")] = None,
    since: Annotated[int, height("First block in which it is asked.", least=1)] = 1,
) -> None:
    """Build the blocks again with another agent, and compare what it wins, waits and pays.

    What happened stands beside it, and what the default bid would have come to. Transactions are those of the chain;
    fires, prices and balances follow from the other bids. The chain stays as it is.

    Example: trailboss bid backtest agent.py --chain play
    """
    chain = run.chain
    whose = run.actor(actor)
    source = read_text(agent, "agent")
    with progress("blocks", REPLAYS * chain.height, quiet=run.as_json) as advance:
        found = backtest(chain, source, actors=[whose] if whose else (), first=since, on_block=lambda _: advance())
    if run.as_json:
        sides = {"recorded": found.recorded, "default": found.default, "agent": found.agent}
        documents = {name: _document(side) for name, side in sides.items()}
        print_json({"first_block": found.first_block, "last_block": found.last_block, **documents})
        return
    title = f"Timers that an agent prices, blocks {found.first_block} to {found.last_block}"
    print_table(title, columns(f"what became of them | >recorded | >default bid | >{agent.name}"), _rows(found))


def _rows(found: Backtest) -> list[tuple[str, str, str, str]]:
    sides = (found.recorded, found.default, found.agent)
    facts: tuple[tuple[str, Callable[[Bidding], str]], ...] = (
        ("fires", lambda side: f"{side.fires:,}"),
        ("of them reverted", lambda side: f"{side.reverted:,}"),
        ("ended without a fire", lambda side: f"{side.unfired:,}"),
        ("still wait", lambda side: f"{side.waiting:,}"),
        ("mean delay, blocks", lambda side: f"{side.mean_delay:.2f}"),
        ("delay of 95 %, at most", lambda side: f"{side.late_delay:,}"),
        ("paid, CBY", lambda side: format_cby(side.paid)),
        ("of that tips, CBY", lambda side: format_cby(side.tips)),
        ("overpaid, CBY", lambda side: format_cby(side.overpaid)),
        ("questions", lambda side: f"{side.questions:,}"),
        ("answers that are no bid", lambda side: f"{side.failures:,}"),
        ("transactions refused", lambda side: f"{side.refused:,}"),
    )
    return [(label, *map(show, sides)) for label, show in facts]  # type: ignore[misc]  # three sides


def _document(side: Bidding) -> dict[str, Any]:
    """Return figures as JSON shows them, with two numbers in place of all delays."""
    figures = {name: value for name, value in to_json_value(side).items() if name != "delays"}
    return {**figures, "mean_delay": round(side.mean_delay, 6), "late_delay": side.late_delay}
