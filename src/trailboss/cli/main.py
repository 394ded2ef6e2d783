"""The program ``trailboss``: the list of its commands."""

from typing import Annotated, Any, Final

import typer

from trailboss import __version__
from trailboss.cli.lazy import HELP, Entry, LazyCommand, Program

START, ACT, LOOK, KEEP, PROVE, STUDY = "Start", "Act", "Look", "Keep and check", "Prove", "Study"
DEVELOP: Final = "Develop: on development chains only"
ABOUT: Final = "Cowboy's Actor Message Scheduler, on your machine."
COMMANDS: Final = (
    Entry("demo", "demo:demo", START, "Run six actors for several hundred blocks and show how every timer ended."),
    Entry(
        "dev",
        "node:dev",
        START,
        "Run a development chain: funded accounts, an API, an explorer, and calls that change the chain.",
    ),
    Entry(
        "node",
        "node:node",
        START,
        "Run the chain of a directory with an API and an explorer, without development calls.",
    ),
    Entry("init", "chain:init", START, "Create a chain in a directory."),
    Entry("status", "chain:status", START, "Show the state of the chain: height, roots, money, timers, size."),
    Entry("deploy", "actors:deploy", ACT, "Deploy an actor and fund it, in one block."),
    Entry("call", "actors:call", ACT, "Call a handler of an actor, in a block of its own."),
    Entry("send", "accounts:send_money", ACT, "Send money to an account or an actor, in a block of its own."),
    Entry("schedule", "schedule:schedule", ACT, "Schedule a timer without writing an actor."),
    Entry("update", "schedule:update", ACT, "Update the payload, gas limit or bid of one of your timers."),
    Entry("cancel", "schedule:cancel", ACT, "Cancel one of your timers."),
    Entry("mine", "chain:mine", ACT, "Build blocks without transactions; due timers run in them."),
    Entry("govern", "govern:govern", ACT, "Send system instructions as the deployer."),
    Entry("activation", "activation:activation", ACT, "Rehearse the activation of the timer lane, and vote for it."),
    Entry("reorg", "chain:reorg", ACT, "Drop the last blocks, with all their effects."),
    Entry("faucet", "accounts:faucet", DEVELOP, "Give an account 5,000 CBY from a node's faucet."),
    Entry(
        "set-balance",
        "accounts:set_balance",
        DEVELOP,
        "Set the balance of an account or an actor; the supply changes with it.",
    ),
    Entry("hold", "schedule:hold", DEVELOP, "Postpone a timer."),
    Entry("force", "schedule:force", DEVELOP, "Make a timer due as early as possible."),
    Entry("drop", "schedule:drop", DEVELOP, "Remove a timer without running it."),
    Entry(
        "snapshot",
        "chain:snapshot",
        DEVELOP,
        "Take a snapshot of the chain, and print its mark for `trailboss revert`.",
    ),
    Entry("revert", "chain:revert", DEVELOP, "Go back to a snapshot: height, timers, money, everything."),
    Entry("timers", "timers:timers", LOOK, "List timers: live ones by height, ended ones with the latest first."),
    Entry("timer", "timers:timer", LOOK, "Explain one timer."),
    Entry(
        "mailbox",
        "timers:mailbox",
        LOOK,
        "List Globalbox's mailbox in the order of delivery, or the fires queued behind it.",
    ),
    Entry(
        "block",
        "blocks:block",
        LOOK,
        "Show one block: header, transactions, receipts and events, or how it chose among its due timers.",
    ),
    Entry(
        "quote", "forecast:quote", LOOK, "Quote the price of a timer scheduled now, and how often one would have run."
    ),
    Entry(
        "runway",
        "forecast:runway",
        LOOK,
        "Show how many fires a balance still pays for, and in which block it runs out.",
    ),
    Entry(
        "watch", "watch:watch", LOOK, "Watch which payers run out of money first, and raise an alert before they do."
    ),
    Entry("balance", "accounts:balance", LOOK, "Show the balances of accounts and actors."),
    Entry("events", "blocks:events", LOOK, "List events, oldest first."),
    Entry("params", "chain:params", LOOK, "Show the parameters in force in the next block, and who set them."),
    Entry("export", "archive:export", KEEP, "Write the whole chain to one file."),
    Entry("import", "archive:import_", KEEP, "Build a chain from an export, in a new directory."),
    Entry("verify", "archive:verify", KEEP, "Replay the whole chain and compare every block, root and sum."),
    Entry("replay", "archive:replay", KEEP, "Replay the chain up to a height, or find where two chains diverge."),
    Entry("prove", "proofs:prove", PROVE, "Prove what the state holds to someone who has only its root."),
    Entry("verify-proof", "proofs:verify_proof", PROVE, "Check a proof against a state root, without a chain."),
    Entry(
        "compare",
        "study:compare_mechanisms",
        STUDY,
        "Run one workload through every mechanism and compare the results.",
    ),
)


class _Trailboss(Program):
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
