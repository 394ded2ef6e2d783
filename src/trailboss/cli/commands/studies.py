"""``study``: the studies of the simulator, listed, run and reported."""

from pathlib import Path
from typing import Annotated, Final

from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import STUDY_INSTALL, Mistake, installed
from trailboss.cli.lazy import group
from trailboss.cli.options import Number, Text, argument, flag, number, option

study = group("List, run and report studies: simulations that answer a question.")

WHAT: Final = "a study"
FOLDER: Final = Path("studies")
WORKERS_MAX: Final = 1_024
Name = Annotated[str, argument("NAME", "Name of the study; `trailboss study list` has them.")]
Quick = Annotated[bool, flag("--quick", "The quick settings: seconds, wide intervals.")]


@study.command("list")
@command(on_chain=False)
def list_studies(run: Invocation) -> None:
    """List the studies, with the question that each answers.

    Example: trailboss study list
    """
    with installed(WHAT, STUDY_INSTALL):
        from trailboss.cli.study_session import show_studies  # noqa: PLC0415

        show_studies(run)


@study.command("run")
@command(on_chain=False)
def run_study(
    run: Invocation,
    name: Name,
    quick: Quick = False,
    workers: Annotated[int, number("Processes that run replications.", least=1, most=WORKERS_MAX)] = 1,
    ray: Annotated[Text, option("ADDRESS", "Run on a Ray cluster; local starts one on this machine.")] = None,
    output: Annotated[Path, option("DIR", "Where results and figures are written.")] = FOLDER,
    fresh: Annotated[bool, flag("--fresh", "Drop what an unfinished run has left, instead of going on.")] = False,
    replication: Annotated[Number, number("Run this replication alone, write nothing.", least=1)] = None,
    point: Annotated[Text, option("NAME", "With --replication: of this point alone.")] = None,
) -> None:
    """Run a study, write its results and figures, and print them with their intervals.

    A run that is stopped or killed goes on where it was when it is started again. Results are the same to the byte
    with any number of workers, on one machine or several.

    Example: trailboss study run lane-load --quick
    """
    if ray is not None and workers > 1:
        raise Mistake("both --workers and --ray are given", "give one of the two: Ray has workers of its own")
    if point is not None and replication is None:
        raise Mistake("--point is given without --replication", "name the replication of it that is to be run")
    with installed(WHAT, STUDY_INSTALL):
        from trailboss.cli.study_session import run_whole, show_replication  # noqa: PLC0415

        if replication is not None:
            show_replication(run, name, replication, point, quick=quick)
        else:
            run_whole(run, name, output, workers, ray, quick=quick, fresh=fresh)


@study.command("report")
@command(on_chain=False)
def report_study(
    run: Invocation,
    name: Name,
    quick: Quick = False,
    results: Annotated[Path | None, option("FILE", "Results to report.", "those in studies/")] = None,
    page: Annotated[Path | None, option("FILE", "Write the study's page here, in Markdown.")] = None,
    figures: Annotated[Path | None, option("DIR", "Write its figures here.", "with --page, beside the page")] = None,
) -> None:
    """Print the stored results of a study; write its page and its figures.

    Example: trailboss study report lane-load --page docs/studies/lane-load.md
    """
    with installed(WHAT, STUDY_INSTALL):
        from trailboss.cli.study_session import show_report  # noqa: PLC0415

        show_report(run, name, results, FOLDER, page, figures, quick=quick)
