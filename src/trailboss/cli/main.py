"""The program ``trailboss``."""

from typing import Annotated

import typer

from trailboss import __version__
from trailboss.cli.demo import demo

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Cowboy's Actor Message Scheduler, on your machine.")
app.command()(demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trailboss {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Cowboy's Actor Message Scheduler, on your machine."""
