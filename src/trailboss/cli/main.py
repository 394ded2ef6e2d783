"""The program ``trailboss``: the list of its commands."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from trailboss import __version__
from trailboss.cli.lazy import HELP, CommandLine, Entry, LazyCommand

ABOUT: Final = "Cowboy's Actor Message Scheduler, on your machine."


def _panel(heading: str, *commands: tuple[str, str, str]) -> Iterator[Entry]:
    """Yield the commands below a heading: name, place and summary."""
    return (Entry(name, place, heading, summary) for name, place, summary in commands)


COMMANDS: Final = (
    *_panel(
        "Start",
        ("demo", "demo:demo", "Run six actors for several hundred blocks and show how every timer ended."),
        ("dev", "node:dev", "Run a development chain: accounts, API, explorer, and calls that change the chain."),
        ("node", "node:node", "Run the chain of a directory with API and explorer, without development calls."),
        ("init", "chain:init", "Create a chain in a directory."),
        ("status", "chain:status", "Show the state of the chain: height, roots, money, timers, size."),
    ),
    *_panel(
        "Act",
        ("deploy", "accounts:deploy", "Deploy an actor and fund it, in one block."),
        ("call", "accounts:call", "Call a handler of an actor, in a block of its own."),
        ("send", "accounts:send_money", "Send money to an account or an actor, in a block of its own."),
        ("schedule", "schedule:schedule", "Schedule a timer without writing an actor."),
        ("update", "schedule:update", "Update the payload, gas limit or bid of one of your timers."),
        ("cancel", "schedule:cancel", "Cancel one of your timers."),
        ("mine", "chain:mine", "Build blocks without transactions; due timers run in them."),
        ("govern", "govern:govern", "Send system instructions as the deployer."),
        ("activation", "activation:activation", "Rehearse the activation of the timer lane, and vote for it."),
        ("reorg", "chain:reorg", "Drop the last blocks, with all their effects."),
    ),
    *_panel(
        "Develop, on development chains only",
        ("faucet", "accounts:faucet", "Give an account 5,000 CBY from a node's faucet."),
        ("set-balance", "accounts:set_balance", "Set the balance of an account or actor; the supply changes with it."),
        ("hold", "schedule:hold", "Postpone a timer."),
        ("force", "schedule:force", "Make a timer due as early as possible."),
        ("drop", "schedule:drop", "Remove a timer without running it."),
        ("snapshot", "chain:snapshot", "Take a snapshot of the chain, and print its mark for `trailboss revert`."),
        ("revert", "chain:revert", "Go back to a snapshot: height, timers, money, everything."),
    ),
    *_panel(
        "Look",
        ("timers", "blocks:timers", "List timers: live ones by height, ended ones with the latest first."),
        ("timer", "blocks:timer", "Explain one timer."),
        ("mailbox", "blocks:mailbox", "List Globalbox's mailbox in order of delivery, or the fires queued behind it."),
        ("block", "blocks:block", "Show a block, or how it chose among its due timers."),
        ("quote", "forecast:quote", "Quote the price of a timer scheduled now, and how often one would have run."),
        ("runway", "forecast:runway", "Show how many fires a balance pays for, and in which block it runs out."),
        ("watch", "watch:watch", "Watch which payers run out of money first, and raise alerts before they do."),
        ("balance", "accounts:balance", "Show the balances of accounts and actors."),
        ("events", "blocks:events", "List events, oldest first."),
        ("params", "chain:params", "Show the parameters in force in the next block, and who set them."),
    ),
    *_panel(
        "Isolate",
        (
            "sandbox",
            "sandbox:sandbox",
            "Build, show, export and import the sandbox: the image that runs strangers' actors.",
        ),
    ),
    *_panel(
        "Keep and check",
        ("export", "chain:export", "Write the whole chain to one file."),
        ("import", "chain:import_", "Build a chain from an export, in a new directory."),
        ("verify", "chain:verify", "Replay the whole chain and compare every block, root and sum."),
        ("replay", "chain:replay", "Replay the chain up to a height, or find where two chains diverge."),
    ),
    *_panel(
        "Prove",
        ("prove", "proofs:prove", "Prove what the state holds to someone who has only its root."),
        ("verify-proof", "proofs:verify_proof", "Check a proof against a state root, without a chain."),
    ),
    *_panel(
        "Study",
        ("compare", "study:compare_mechanisms", "Run one workload through every mechanism and compare the results."),
    ),
)


class _Trailboss(CommandLine):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for entry in COMMANDS:
            self.add_command(LazyCommand(entry))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is meant; `watch ACTOR` is the former spelling of `schedule --watch ACTOR`."""
        if args[0] == "watch" and args[1:] and args[1][:2] in ("0x", "0X"):
            args = ["schedule", "--watch", *args[1:]]
        return super().resolve_command(ctx, args)


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
