"""``watch``: the payers that run out of money first, and an alert before they do."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from importlib import resources
from time import monotonic, sleep
from typing import Annotated, Any, Final

import typer
from msgspec import Struct
from msgspec.structs import replace

from trailboss.cli.alerts import DRY, Alert, Call, Spells, parse_call
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import NotFound, Refused
from trailboss.cli.options import WHO, complete_account, flag, number, option
from trailboss.cli.output import Cell, columns, console, fitting_table, note, print_facts, print_json, print_table
from trailboss.cli.remote.client import END, REORG, Client, read
from trailboss.cli.targets import is_url, node_url, open_directory, resolve_address
from trailboss.forecast.watchtower import PAYERS_SHOWN, WITHIN_MAX, Watch, WatchedPayer, look
from trailboss.model.events import TIMER_UNFUNDED
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import format_cby
from trailboss.views.json_values import to_json_value

RUNS_DRY: Final = 3  # exit status of one look that finds a payer that runs dry soon, or has run dry
WITHIN: Final = 100  # fires that are soon by default
LOOKED_AT: Final = 1_000  # payers of one look at a node: those with the shortest runway
NOBODY: Final = "no account pays for a timer"
LOOK_SECONDS: Final = 1.0  # from one look at a node to the next at least
COLUMNS: Final = columns(
    "payer | >CBY | >timers? | >fires left | >blocks left? | >dry at | >unfunded | >expired | >reverted"
)


class Wanted(Struct, frozen=True):
    """The options of a watch: which payers it shows, and how it raises alerts."""

    alert: Call | None = option(
        "COMMAND|URL",
        "Run or call this once for each payer that runs dry soon: a command gets the facts in TRAILBOSS_… "
        "variables and as JSON on stdin, a URL gets them by POST.",
        parser=parse_call,
    )
    within: Annotated[int, number("Soon means within N fires.", least=1, most=WITHIN_MAX)] = WITHIN
    payer: list[bytes] | None = option(
        "WHO",
        f"Only this payer: {WHO}; may be repeated.",
        "all",
        autocompletion=complete_account,
        parser=resolve_address,
    )
    limit: Annotated[int, number("Most rows.", least=1, most=LOOKED_AT)] = PAYERS_SHOWN
    once: bool | None = flag("--once", "Look once, as always on a directory.")
    rules: bool | None = flag("--rules", "Print alert rules for Prometheus, which reads a node's /metrics, and end.")


@command()
def watch(run: Invocation, wanted: Wanted) -> None:
    """Watch which payers run out of money first, and raise alerts before they do.

    On a node it follows each block until Ctrl-C; on a directory it looks once. One look ends with exit status 3 if a
    payer runs dry soon, or has run dry in the last 100 blocks. A payer runs dry when it cannot pay for its next fire.

    An alert is raised once for each dry spell: again only after money has come in.

    Example: trailboss watch --within 20 --alert ./page-me.sh
    """
    if wanted.rules:
        typer.echo(resources.files("trailboss.node").joinpath("alerts.yml").read_text(encoding="utf-8"), nl=False)
        return
    tower = Tower(wanted, as_json=run.as_json)
    if not is_url(run.place):
        with open_directory(run.place) as chain:
            tower.see(look(chain, limit=chain.timer_count() + LOOKED_AT), tower.show)
    else:
        with closing(Client(node_url(run.place))) as client:
            if not wanted.once:
                with suppress(KeyboardInterrupt):
                    _follow(client, tower)
                return
            tower.see(_ask(client), tower.show)
    if tower.alerts:
        raise typer.Exit(RUNS_DRY)


class Tower:
    """Shows each look, and raises alerts, which it counts."""

    def __init__(self, wanted: Wanted, *, as_json: bool) -> None:
        self.alerts = 0
        self._wanted = wanted
        self._as_json = as_json
        self._spells = Spells(wanted.within)
        self._is_first = True

    def see(self, found: Watch, show: Callable[[Watch], object]) -> None:
        """Show a look, and alert for payers that run dry soon; at the first look also for those that have run dry."""
        found = replace(found, payers=tuple(each for each in found.payers if self._is_wanted(each.payer)))
        show(found)
        for each in self._spells.near(found.payers):
            self._raise(Alert.of_near(each, found.height, self._wanted.within))
        for each in found.payers if self._is_first else ():
            if each.unfunded and not each.timers:
                self._raise_dry(each.payer, height=found.height, balance=each.balance, actor=each.payer)
        self._is_first = False

    def see_dry(self, event: dict[str, Any]) -> None:
        """Alert for the payer of an event that says it could not pay, unless that has been done."""
        payer = Address.parse(event["data"]["fee_payer"])
        if self._is_wanted(payer):
            height, data = event["block_height"], event["data"]
            about = {"actor": Address.parse(event["emitter"]), "timer_id": Hash32.parse(event["timer_id"])}
            paid = {"balance": data["available"], "required": data["required"], "dry_at": height}
            self._raise_dry(payer, height=height, **about, **paid)

    def _is_wanted(self, payer: bytes) -> bool:
        return not self._wanted.payer or payer in self._wanted.payer

    def _raise_dry(self, payer: Address, **facts: Any) -> None:
        if self._spells.begin_dry(payer):
            self._raise(Alert(alert=DRY, payer=payer, within=self._wanted.within, **facts))

    def _raise(self, alert: Alert) -> None:
        self.alerts += 1
        if self._wanted.alert is not None:
            note(f"alert: {alert}")
            if failure := self._wanted.alert(alert):
                note(f"the alert failed: {failure}")

    # Showing

    @contextmanager
    def screen(self) -> Iterator[Callable[[Watch], object]]:
        """Yield what shows each look: in place in a terminal, one after the other elsewhere."""
        printer = console()
        if self._as_json:
            yield lambda found: typer.echo(json.dumps(to_json_value(self._cut(found))))
        elif self._wanted.alert is not None or not printer.is_terminal:
            yield self.show
        else:
            from rich.live import Live  # noqa: PLC0415

            with Live(console=printer, auto_refresh=False) as live:
                yield lambda found: live.update(self._drawn(found), refresh=True)

    def show(self, found: Watch) -> None:
        """Print a look; with alerts only as JSON."""
        if self._as_json:
            print_json(self._cut(found))
        elif self._wanted.alert is None:
            print_facts(_facts(found))
            typer.echo()
            print_table("Payers", COLUMNS, self._rows(found), NOBODY)

    def _drawn(self, found: Watch) -> Any:
        from rich.console import Group  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        facts = _facts(found)
        width = max(map(len, facts))
        lines = Text("\n".join(f"{label:{width}}  {value}" for label, value in facts.items()))
        if not found.payers:
            return Group(lines, Text(NOBODY))
        return Group(lines, fitting_table(console(), "Payers", COLUMNS, self._rows(found)))

    def _cut(self, found: Watch) -> Watch:
        return replace(found, payers=found.payers[: self._wanted.limit])

    def _rows(self, found: Watch) -> list[tuple[Cell, ...]]:
        return [_row(each) for each in self._cut(found).payers]


def _facts(found: Watch) -> dict[str, str]:
    blocks = max(found.last_block - found.first_block + 1, 1)
    lane = "" if found.lane_basefee is None else f", lane {found.lane_basefee:,}"
    mean = format_cby(found.burned_recently // blocks)
    return {
        "after block": f"{found.height:,}",
        "basefees": f"cycle {found.cycle_basefee:,}, cell {found.cell_basefee:,}{lane}",
        "fires burn": f"{format_cby(found.burned)} CBY in this block, {mean} a block in the last {blocks:,}",
        "payers": f"{found.known:,} with live timers",
    }


def _row(each: WatchedPayer) -> tuple[Cell, ...]:
    is_alive, is_dry = each.timers > 0, each.dry_at is not None
    timers = f"over {each.timers:,}" if each.has_more else each.timers
    ahead = (each.fires_left, each.blocks_left, each.dry_at) if is_dry else (None, None, "never" if is_alive else None)
    return each.payer, format_cby(each.balance), timers, *ahead, each.unfunded, each.expired, each.reverted


# A node


def _ask(client: Client) -> Watch:
    """Return a look at a node."""
    return read(Watch, client.get("/watchtower", limit=LOOKED_AT))


def _follow(client: Client, tower: Tower) -> None:
    """Look at a node after each of its blocks, until it is gone, which raises `NotFound`."""
    with tower.screen() as show:
        found = _ask(client)
        tower.see(found, show)
        height = seen = found.height
        looked_at = monotonic()
        while True:
            is_alive = False
            for kind, document in _events(client, height + 1):
                is_alive = True
                if kind == END and document["reason"] == "stopping":
                    raise NotFound(f"the node at {client.url} has stopped", "start it again, and the watch")
                if kind == TIMER_UNFUNDED:
                    tower.see_dry(document)
                elif kind in ("block", REORG):
                    height = document["height"]
                    if height > seen or kind == REORG:
                        # What comes meanwhile waits in the stream.
                        sleep(max(LOOK_SECONDS - (monotonic() - looked_at), 0))
                        seen, looked_at = _look(client, tower, show), monotonic()
            if not is_alive:
                raise NotFound(f"the node at {client.url} sends nothing", "see what its log says")


def _look(client: Client, tower: Tower, show: Callable[[Watch], object]) -> int:
    """Look at a node, and return its height; -1 if it does not answer this time."""
    try:
        found = _ask(client)
    except Refused as refusal:
        note(f"the node does not answer this time: {refusal.error.what}")
        return -1
    tower.see(found, show)
    return found.height


def _events(client: Client, since: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield blocks, and the events of timers that ended unfunded, by type; an empty type is a heartbeat."""
    kind = ""
    for line in client.stream("/events", kinds="blocks,events", name=TIMER_UNFUNDED, since=since):
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)
        elif line.startswith(":"):
            yield "", {}
