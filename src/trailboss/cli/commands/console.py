"""``console``: Python with a chain at hand."""

import code
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from trailboss import __version__
from trailboss.cli import output
from trailboss.cli.command import Invocation, command
from trailboss.cli.commands.blocks import EVENTS, RECEIPT_COLUMNS, event_row, receipt_row
from trailboss.cli.errors import FAILED, Mistake
from trailboss.cli.local_chains import open_local_chain
from trailboss.cli.options import Mechanism, Preset, Text, argument, option
from trailboss.cli.targets import is_url
from trailboss.cli.values import read_file
from trailboss.primitives.errors import TrailbossError
from trailboss.sandbox.engines import engine_name
from trailboss.testing import CBY, ActorHandle, LocalChain, TestAccount
from trailboss.views import Event, Receipt, TimerView
from trailboss.views.explain.life import TimerLife
from trailboss.views.text import counted

if TYPE_CHECKING:
    from trailboss.cli.node_chain import NodeChain
    from trailboss.cli.remote.chain import RemoteChain

HISTORY: Final = Path("~/.trailboss_history")  # what was typed, as Python keeps it
TIMERS: Final = output.columns("timer | >height | handler | actor | payer? | >gas limit? | tier?")
HELPERS: Final = """chain, accounts, deployer, CBY; deploy(source), call(actor, handler, payload), mine(blocks),
timers(), receipts(), events(), explain(timer); help(chain), exit()"""


@command(on_chain=False, has_json=False)
def console(
    run: Invocation,
    script: Annotated[Path | None, argument("SCRIPT", "Python to run with these names.", "a prompt")] = None,
    statements: Annotated[Text, option("CODE", "Statements to run instead.", "a prompt", "-c")] = None,
    place: Annotated[
        Text, option("DIR|URL", "Directory of the chain, or URL of a node.", "a fresh chain in memory", "--chain --url")
    ] = None,
    preset: Preset = None,
    mechanism: Mechanism = None,
) -> None:
    """Open a Python console on a chain: a fresh one, or that of a directory or a node.

    The chain is a LocalChain, as in tests; of a node it has the calls that a node answers. What an expression gives is
    printed, lists of timers, receipts and events as tables. Without a terminal it runs what it reads.

    Example: trailboss console -c "print(chain.height)"
    """
    if script is not None and statements is not None:
        raise Mistake(f"both {script} and -c are given", "give one of the two")
    chain = _open(run, place, preset, mechanism)
    names = names_of(chain)
    run.stack.enter_context(warnings.catch_warnings())
    warnings.showwarning = _warn
    if script is not None:
        _run(read_file(script, "script"), str(script), names)
    elif statements is not None:
        _run(statements, "<-c>", names)
    elif not sys.stdin.isatty():
        _run(sys.stdin.read(), "<stdin>", names)
    else:
        _talk(chain, names, "a fresh chain" if place is None else f"the chain in {place}")


def _open(run: Invocation, place: str | None, preset: str | None, mechanism: str | None) -> "LocalChain | NodeChain":
    if place is None or not is_url(place):
        return run.stack.enter_context(open_local_chain(place, preset=preset, mechanism=mechanism))
    for name, given in (("--preset", preset), ("--mechanism", mechanism)):
        if given is not None:
            raise Mistake(f"--url and {name} are given", "leave one out: a node's chain keeps what it started with")
    from trailboss.cli.node_chain import NodeChain  # noqa: PLC0415  # a console of its own does without it

    run.place = place
    return NodeChain(cast("RemoteChain", run.chain))


def names_of(chain: "LocalChain | NodeChain") -> dict[str, Any]:
    """Return what a console has at hand."""

    def deploy(source: str | Path, **options: Any) -> ActorHandle:
        """Deploy an actor, a path or a text, from account 0; options as `LocalChain.deploy`."""
        return chain.deploy(source, **_sent(options, chain.accounts))

    def call(actor: ActorHandle, handler: str, payload: bytes = b"", **options: Any) -> Receipt:
        """Call a handler from account 0; options as `ActorHandle.call`."""
        return actor.call(handler, payload, **_sent(options, chain.accounts))

    def explain(timer: TimerView | bytes) -> TimerLife:
        """Explain a timer, or the timer of an id."""
        return chain.explain(timer.timer_id if isinstance(timer, TimerView) else timer)

    helpers: tuple[Any, ...] = (deploy, call, explain, chain.mine, chain.timers, chain.receipts, chain.events)
    names = {"chain": chain, "accounts": chain.accounts, "deployer": chain.deployer, "CBY": CBY}
    return {"__name__": "__main__"} | names | {each.__name__: each for each in helpers}


def _sent(options: dict[str, Any], accounts: Sequence[TestAccount]) -> dict[str, Any]:
    """Return options with account 0 as the sender, unless they name one."""
    if "sender" in options:
        return options
    if not accounts:
        raise Mistake(
            "the chain's genesis funds no development account",
            "name the sender, as sender=TestAccount(name, address, key) of trailboss.testing",
        )
    return {"sender": accounts[0], **options}


def show(value: Any) -> None:
    """Print the value of an expression: lists of timers, receipts and events as tables, a timer's life in its words."""
    width = output.console().width
    match value:
        case TimerLife():
            typer.echo(str(value))
        case [TimerView(), *_]:
            output.print_table("Timers", TIMERS, list(map(_timer_row, value)))
        case [Receipt(), *_]:
            output.print_table("Receipts", RECEIPT_COLUMNS, list(map(receipt_row, value)))
        case [Event(), *_]:
            rows = [(str(each.block_height), *event_row(each, width)) for each in value]
            output.print_table("Events", EVENTS, rows)
        case _ if value is not None:
            typer.echo(repr(value))


def _warn(message: Warning | str, *_: object, **_options: object) -> None:
    output.note(f"warning: {message}")


def _timer_row(timer: TimerView) -> tuple[output.Cell, ...]:
    height = None if timer.is_watch else str(timer.height)
    return timer.timer_id, height, timer.handler, timer.actor, timer.fee_payer, timer.gas_limit, timer.tier


def _run(text: str | bytes, name: str, names: dict[str, Any]) -> None:
    """Run statements; what is wrong with them ends the command as it ends Python."""
    try:
        exec(compile(text, name, "exec"), names)
    except TrailbossError as error:
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == name]
        output.note(f"{name}, line {lines[-1]}:")
        raise
    # What people type can raise anything.
    except Exception:  # noqa: BLE001
        Prompt(names).showtraceback()
        raise typer.Exit(FAILED) from None


class Prompt(code.InteractiveConsole):
    """Reads statements and runs them; an error of ours, and Ctrl-C, is a message without the lines of this package."""

    def runcode(self, code: CodeType) -> None:
        """Run a statement, on a node at its present height."""
        refresh = getattr((self.locals or {}).get("chain"), "refresh", None)
        if refresh is not None:
            try:
                refresh()
            except TrailbossError:  # the node has ended; what was typed may do without it
                self.showtraceback()
        super().runcode(code)

    def showtraceback(self) -> None:
        """Print what was raised, from the line that was typed."""
        error = sys.exception()
        if isinstance(error, TrailbossError):
            typer.echo(f"{type(error).__name__}: {error}", err=True)
        elif isinstance(error, KeyboardInterrupt):
            typer.echo("KeyboardInterrupt", err=True)
        elif error is not None and error.__traceback__ is not None:
            traceback.print_exception(type(error), error, error.__traceback__.tb_next)


def _talk(chain: "LocalChain | NodeChain", names: dict[str, Any], which: str) -> None:
    genesis = chain.chain.genesis
    banner = (
        f"Trailboss {__version__}: {which}, {genesis.mechanism}, {engine_name(genesis.image)} engine, height "
        f"{chain.height}, {counted(len(chain.accounts), 'account')}"
    )
    before, sys.displayhook = sys.displayhook, partial(_remember, names)
    try:
        with _line_editor(names):
            Prompt(names).interact(f"{banner}\n{HELPERS}", exitmsg="")
    finally:
        sys.displayhook = before


def _remember(names: dict[str, Any], value: object) -> None:
    show(value)
    if value is not None:
        names["_"] = value


@contextmanager
def _line_editor(names: dict[str, Any]) -> Iterator[None]:
    """Complete names with the tab key and keep what is typed, where Python has readline."""
    try:
        import readline  # noqa: PLC0415  # not every system has it
        import rlcompleter  # noqa: PLC0415
    except ImportError:
        yield
        return
    readline.set_completer(rlcompleter.Completer(names).complete)
    readline.parse_and_bind("tab: complete")
    with suppress(OSError):
        readline.read_history_file(HISTORY.expanduser())
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(HISTORY.expanduser())
