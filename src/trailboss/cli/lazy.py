"""Commands that are imported when they run: the help of the whole program loads none of them.

Help is plain text: what prints coloured help takes longer to import than everything else together.
"""

import gc
from importlib import import_module
from typing import Any

import typer
from msgspec import Struct
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from trailboss.cli.plain_values import read_plainly

HELP = ("--help", "-h")
AS_JSON = "trailboss.as_json"  # key of a context's shared notes: whether the command was given ``--json``
YOUNG_OBJECTS = 10_000  # new objects after which Python looks for garbage among them
SUMMARY_MAX = 400  # characters of a command's summary in a list: more than any has, so that none is cut


class Entry(Struct, frozen=True):
    """A command as the help of the program lists it."""

    name: str  # what people type
    # ``module:attribute`` within `trailboss.cli.commands`: a function, or a `typer.Typer` with commands of its own.
    place: str
    panel: str  # heading under which it is listed
    summary: str  # first sentence of its own help; a test compares the two


def group(summary: str) -> typer.Typer:
    """Return a command that has commands of its own."""
    settings: Any = {"no_args_is_help": True, "add_completion": False, "rich_markup_mode": None, "cls": CommandGroup}
    # With a callback one command stays a command of the group.
    return typer.Typer(callback=lambda: None, help=summary, **settings)


class CommandGroup(TyperGroup):
    """A list of commands."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # as Typer calls it
        """List the commands, below the heading of each panel."""
        commands = list(self.commands.values())
        for panel in dict.fromkeys(getattr(command, "rich_help_panel", None) for command in commands):
            rows = [
                (str(command.name), command.get_short_help_str(SUMMARY_MAX))
                for command in commands
                if getattr(command, "rich_help_panel", None) == panel
            ]
            with formatter.section(panel or "Commands"):
                formatter.write_dl(rows)


class LazyCommand(TyperCommand):
    """Stands for a command in lists; becomes it when it is called or completed."""

    def __init__(self, entry: Entry, **settings: Any) -> None:
        super().__init__(entry.name, help=entry.summary, rich_help_panel=entry.panel, rich_markup_mode=None, **settings)
        self.entry = entry

    def load(self) -> TyperCommand | TyperGroup:
        """Import the command and return it."""
        module, _, attribute = self.entry.place.partition(":")
        found = getattr(import_module(f"trailboss.cli.commands.{module}"), attribute)
        if not gc.isenabled():
            # `__main__` has disabled it: no garbage is among what is imported, which stays.
            gc.freeze()
            # Of a chain most records stay: to look at them after every 700 new objects takes 6 % of a replay.
            gc.set_threshold(YOUNG_OBJECTS)
            gc.enable()
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, rich_markup_mode=None)
            alone.command()(found)
            found = alone
        command: Any = get_command(found)
        command.name = self.name
        for each in (command, *getattr(command, "commands", {}).values()):
            prepare_options(each)
        return command  # type: ignore[no-any-return]  # what Typer builds here is always one of its own two classes

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return a context of the command itself."""
        return self.load().make_context(info_name, args, parent=parent, **extra)


def prepare_options(command: Any) -> None:
    """Show no type behind an option that takes no value, and read plain values without pydantic."""
    for param in (*command.params, command.get_help_option(typer.Context(command, help_option_names=list(HELP)))):
        read_plainly(param)
        if getattr(param, "is_flag", False):
            param.metavar = ""
