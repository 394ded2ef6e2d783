"""The program ``trailboss``: the list of its commands."""

from typing import Annotated, Any, Final

import typer

from trailboss import __version__
from trailboss.cli.lazy import HELP, Entry, LazyCommand, Program
from trailboss.testing.sdk_release import DISTRIBUTION, installed_release, release_warning

START, ACT, LOOK, KEEP, PROVE, STUDY = "Start", "Act", "Look", "Keep and check", "Prove", "Study"
DEVELOP: Final = "Develop: on development chains only"
COMMANDS: Final = (
    Entry("demo", "demo:demo", START, "Run six actors for several hundred blocks and tell what became of every timer."),
    Entry(
        "dev",
        "dev:dev",
        START,
        "Run a development chain: funded accounts, an API, an explorer, and calls that change it at will.",
    ),
    Entry(
        "node",
        "dev:node",
        START,
        "Run the chain of a directory: an API and an explorer, without the calls of a development chain.",
    ),
    Entry("init", "init:init", START, "Make a chain in a directory."),
    Entry("status", "status:status", START, "Tell where the chain stands: height, roots, money, timers, size."),
    Entry("deploy", "deploy:deploy", ACT, "Deploy an actor and fund it, in one block."),
    Entry("call", "call:call", ACT, "Call a handler of an actor, in a block of its own."),
    Entry("send", "send:send_money", ACT, "Move money to an account or an actor, in a block of its own."),
    Entry("schedule", "schedule:schedule", ACT, "Schedule a timer without an actor of one's own."),
    Entry("update", "change:update", ACT, "Change what later fires of a timer of yours bring."),
    Entry("cancel", "change:cancel", ACT, "Cancel a timer of yours."),
    Entry("mine", "mine:mine", ACT, "Build blocks without transactions; due timers run in them."),
    Entry("govern", "govern:govern", ACT, "Send system instructions, as the deployer."),
    Entry("activation", "activation:activation", ACT, "Rehearse the activation of the timer lane, and vote for it."),
    Entry("reorg", "reorg:reorg", ACT, "Drop the last blocks: clock, timers, money, everything goes back."),
    Entry("faucet", "develop:faucet", DEVELOP, "Have a node's faucet give an account 5,000 CBY."),
    Entry(
        "set-balance",
        "develop:set_balance",
        DEVELOP,
        "Set what an account or an actor holds; the supply moves with it.",
    ),
    Entry("hold", "develop:hold", DEVELOP, "Hold a timer back."),
    Entry("force", "develop:force", DEVELOP, "Make a timer due as early as can be."),
    Entry("drop", "develop:drop", DEVELOP, "Take a timer away without running it."),
    Entry(
        "snapshot",
        "develop:snapshot",
        DEVELOP,
        "Remember the present point, and print its mark for `trailboss revert`.",
    ),
    Entry("revert", "develop:revert", DEVELOP, "Go back to a snapshot: clock, timers, money, everything."),
    Entry("timers", "timers:timers", LOOK, "List timers: live ones by height, ended ones the latest first."),
    Entry("timer", "timers:timer", LOOK, "Look at one timer."),
    Entry(
        "mailbox",
        "mailbox:mailbox",
        LOOK,
        "List the mailbox of Globalbox in the order of delivery, or the fires that are queued behind it.",
    ),
    Entry(
        "block",
        "block:block",
        LOOK,
        "Look at one block: its header, transactions, receipts and events, or how it chose among its due timers.",
    ),
    Entry("quote", "quote:quote", LOOK, "Say what a timer scheduled now would cost, and how often one would have run."),
    Entry(
        "runway", "runway:runway", LOOK, "Tell how many fires a purse still pays for, and in which block it runs dry."
    ),
    Entry("watch", "watch:watch", LOOK, "Watch which payers run dry first, and raise an alert before they do."),
    Entry("balance", "balance:balance", LOOK, "Tell what accounts and actors hold."),
    Entry("events", "events:events", LOOK, "List what happened, oldest first."),
    Entry("params", "params:params", LOOK, "Tell the parameters in force in the next block, and who set them."),
    Entry("export", "archive:export", KEEP, "Write the whole chain to one file."),
    Entry("import", "archive:import_", KEEP, "Build a chain from an export, in a new directory."),
    Entry("verify", "verify:verify", KEEP, "Replay the whole chain and compare every block, root and sum."),
    Entry("replay", "verify:replay", KEEP, "Replay the chain up to a height, or find where two chains part."),
    Entry("prove", "prove:prove", PROVE, "Prove what the state holds, to somebody who has only its root."),
    Entry("verify-proof", "prove:verify_proof", PROVE, "Check a proof against a state root, without a chain."),
    Entry(
        "compare",
        "compare:compare_mechanisms",
        STUDY,
        "Run one workload through every mechanism, and tell what each made of it.",
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
    help="Cowboy's Actor Message Scheduler, on your machine.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trailboss {__version__}, with {DISTRIBUTION} {installed_release()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[  # noqa: ARG001  # its callback does all
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Cowboy's Actor Message Scheduler, on your machine."""
    warning = release_warning()
    if warning:
        typer.echo(f"warning: {warning}", err=True)
