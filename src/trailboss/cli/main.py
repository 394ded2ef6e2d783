"""The program ``trailboss``: the list of its commands."""

import os
import sys
from contextlib import suppress
from errno import EPIPE
from io import TextIOWrapper
from typing import Annotated, Any, Final

import typer

from trailboss import __version__
from trailboss.cli.errors import report
from trailboss.cli.lazy import AS_JSON, HELP, CommandGroup, Entry, LazyCommand, prepare_options
from trailboss.primitives.errors import StorageError, TrailbossError

ABOUT: Final = "Cowboy's Actor Message Scheduler, on your machine."
PANELS: Final = {
    "Write": (
        ("new", "new:new", "Make a folder with an actor, its tests, what they cost, and a workflow."),
        ("check", "check:check", "Check sources of actors: what a deployment refuses, and what hurts later."),
    ),
    "Start": (
        ("demo", "demo:demo", "Run six actors for several hundred blocks and show how every timer ended."),
        ("dev", "node:dev", "Run a development chain: accounts, API, explorer, and calls that change the chain."),
        ("node", "node:node", "Run the chain of a directory with API and explorer, without development calls."),
        ("testnet", "testnet:testnet", "Make, run, show and extend a network of validators on this machine."),
        ("init", "chain:init", "Create a chain in a directory."),
        ("status", "chain:status", "Show the state of the chain: height, roots, money, timers, size."),
        (
            "console",
            "console:console",
            "Open a Python console on a chain: a fresh one, or that of a directory or a node.",
        ),
        ("mcp", "mcp:mcp", "Serve a chain to an agent, over the Model Context Protocol on standard input and output."),
    ),
    "Act": (
        ("deploy", "accounts:deploy", "Deploy an actor and fund it, in one block."),
        ("call", "accounts:call", "Call a handler of an actor, in a block of its own."),
        ("send", "accounts:send_money", "Send money to an account or an actor, in a block of its own."),
        ("schedule", "schedule:schedule", "Schedule a timer without writing an actor."),
        ("update", "schedule:update", "Update the payload, gas limit or bid of one of your timers."),
        ("cancel", "schedule:cancel", "Cancel one of your timers."),
        ("mine", "chain:mine", "Build blocks without transactions; due timers run in them."),
        ("next", "chain:next_fire", "Build blocks up to the next in which a timer fires."),
        ("govern", "govern:govern", "Send system instructions as the deployer."),
        ("bid", "bids:bid", "Try gas bidding agents on a chain's own history."),
        ("activation", "activation:activation", "Rehearse the activation of the timer lane, and vote for it."),
        ("reorg", "chain:reorg", "Drop the last blocks, with all their effects."),
    ),
    "Develop, on development chains only": (
        ("faucet", "accounts:faucet", "Give an account 5,000 CBY from a node's faucet."),
        ("set-balance", "accounts:set_balance", "Set the balance of an account or actor; the supply changes with it."),
        ("set-storage", "cheats:set_storage", "Set or delete a slot of an actor."),
        ("set-code", "cheats:set_code", "Put the code of a file at an address; its money and storage stay."),
        ("mock", "cheats:mock", "Answer calls of a handler by other actors, or list and clear such mocks."),
        ("hold", "schedule:hold", "Postpone a timer."),
        ("force", "schedule:force", "Make a timer due as early as possible."),
        ("drop", "schedule:drop", "Remove a timer without running it."),
        ("runner", "runner:runner", "Have runner jobs wait for replies instead of being refused."),
        ("jobs", "runner:jobs", "List the runner jobs that actors have sent, oldest first."),
        ("reply", "runner:reply", "Reply to a runner job: its actor resumes, and pays."),
        ("snapshot", "chain:snapshot", "Take a snapshot of the chain, and print its mark for `trailboss revert`."),
        ("revert", "chain:revert", "Go back to a snapshot: height, timers, money, everything."),
    ),
    "Look": (
        ("label", "labels:label", "Give an address or a timer a label, or list the labels."),
        ("timers", "blocks:timers", "List timers: live ones by height, ended ones with the latest first."),
        ("timer", "blocks:timer", "Explain one timer."),
        ("schedules", "schedules:schedules", "List recurring timers: period, next run, and what became of each slot."),
        ("mailbox", "blocks:mailbox", "List Globalbox's mailbox in order of delivery, or the fires queued behind it."),
        ("block", "blocks:block", "Show a block, or how it chose among its due timers."),
        (
            "trace",
            "traces:trace",
            "Show what a transaction, a timer's latest fire or a block did: frames, host calls, cycles, effects.",
        ),
        ("forecast", "forecast:forecast", "Forecast what live timers do in the next blocks if nothing is sent."),
        ("quote", "forecast:quote", "Quote the price of a timer scheduled now, and how often one would have run."),
        ("runway", "forecast:runway", "Show how many fires a balance pays for, and in which block it runs out."),
        ("watch", "watch:watch", "Watch which payers run out of money first, and raise alerts before they do."),
        ("balance", "accounts:balance", "Show the balances of accounts and actors."),
        ("events", "blocks:events", "List events, oldest first."),
        ("params", "chain:params", "Show the parameters in force in the next block, and who set them."),
    ),
    "Measure": (("profile", "profile:profile", "Show what each handler and each line of an actor costs, in cycles."),),
    "Isolate": (
        (
            "sandbox",
            "sandbox:sandbox",
            "Build, show, export, import and remove the sandbox: the image that runs strangers' actors.",
        ),
    ),
    "Keep and check": (
        ("export", "chain:export", "Write the whole chain to one file."),
        ("import", "chain:import_", "Build a chain from an export, in a new directory."),
        ("verify", "chain:verify", "Replay the whole chain and compare every block, root and sum."),
        ("replay", "chain:replay", "Replay the chain up to a height, or find where two chains diverge."),
    ),
    "Prove": (
        ("prove", "proofs:prove", "Prove what the state holds to someone who has only its root."),
        ("verify-proof", "proofs:verify_proof", "Check a proof against a state root, without a chain."),
        (
            "light",
            "light:light",
            "Prove to someone who has only the genesis of a network, by its validators' signatures.",
        ),
    ),
    "Study": (
        (
            "compare",
            "compare:compare_mechanisms",
            "Run one scenario under every mechanism and compare the results, with their intervals.",
        ),
        ("study", "studies:study", "List, run and report studies: simulations that answer a question."),
    ),
}
COMMANDS: Final = tuple(
    Entry(name, place, panel, summary) for panel, commands in PANELS.items() for name, place, summary in commands
)


class _Trailboss(CommandGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for entry in COMMANDS:
            self.add_command(LazyCommand(entry))

    def make_context(self, *given: Any, **extra: Any) -> Any:
        """Return the context of the program; only now has Typer given it the options for completion."""
        prepare_options(self)
        return super().make_context(*given, **extra)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is meant; `watch ACTOR` is the former spelling of `schedule --watch ACTOR`."""
        if args[0] == "watch" and args[1:] and args[1][:2] in ("0x", "0X"):
            args = ["schedule", "--watch", *args[1:]]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error of ours becomes a message and an exit status, never a traceback."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                # What the terminal's encoding lacks is printed as an escape.
                stream.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(ctx)
        except TrailbossError as error:
            refusal = error
        except OSError as error:
            if error.errno == EPIPE:  # the reader has closed the pipe
                raise
            with suppress(OSError, ValueError):
                # Drop what could not be printed, or Python tries again as it ends, and ends with a status of its own.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            path = "the output" if error.filename is None else str(error.filename)
            what = f"the system refuses: {error.strerror or error}"
            refusal = StorageError(path, what, "correct the cause and try again")
        raise typer.Exit(report(refusal, as_json=bool(ctx.meta.get(AS_JSON))))


app = typer.Typer(
    cls=_Trailboss,
    no_args_is_help=True,
    context_settings={"help_option_names": list(HELP)},
    rich_markup_mode=None,
    help=ABOUT,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        # Only now: help does without the metadata of installed packages.
        from trailboss.testing.sdk_release import DISTRIBUTION, installed_release  # noqa: PLC0415

        typer.echo(f"trailboss {__version__}, with {DISTRIBUTION} {installed_release()}")
        raise typer.Exit


@app.callback(help=ABOUT)
def options(
    version: Annotated[  # noqa: ARG001  # its callback does all
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Warn of a release of the SDK other than the one measured."""
    from trailboss.testing.sdk_release import release_warning  # noqa: PLC0415  # see above

    warning = release_warning()
    if warning:
        typer.echo(f"warning: {warning}", err=True)
