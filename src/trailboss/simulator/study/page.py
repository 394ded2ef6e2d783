"""Figures and the page of a study, written from its results."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

from trailboss.simulator.study.catalogue import Mode, Provenance, stem_of, study_of
from trailboss.simulator.study.results import StoredResults

MADE: Final = "<!-- Written by `trailboss study report {name} --page`; do not edit. -->"
PLAIN: Final[Any] = {"svg.fonttype": "none", "svg.hashsalt": "trailboss"}
"""Text stays text, and the ids within a figure are the same each time."""
SHOWN_DIGITS: Final = 16  # of a digest


def write_figures(results: StoredResults, folder: Path) -> list[Path]:
    """Draw the figures of a study into a folder, as SVG; equal results give equal bytes. Return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = stem_of(results.provenance.study, results.provenance.mode)
    paths = list[Path]()
    with mpl.rc_context(PLAIN):
        for name, figure in study_of(results.provenance.module).figures(results).items():
            paths.append(folder / f"{stem}-{name}.svg")
            figure.savefig(paths[-1], format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    return paths


def page_of(results: StoredResults, figures: Sequence[Path], folder: Path) -> str:
    """Return the page of a study, in Markdown, for a folder: question, method, what the study says, figures."""
    provenance = results.provenance
    study = study_of(provenance.module)
    title = provenance.study.replace("-", " ").capitalize()
    links = (f"![{path.stem.replace('-', ' ')}]({Path(os.path.relpath(path, folder)).as_posix()})" for path in figures)
    parts = [
        MADE.format(name=provenance.study),
        f"# {title}",
        f"**Question.** {study.TITLE}",
        f"**Method.** {method_text(results)}",
        study.page(results).strip(),
        *links,
    ]
    return "\n\n".join(parts) + "\n"


def method_text(results: StoredResults) -> str:
    """Return how the results came to be: how much was run, with which settings, and what they follow from."""
    provenance, settings = results.provenance, results.settings
    counts = sorted({results.count(point.name) for point in results.points})
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    own = ", ".join(f"{name} = {_setting_text(value)}" for name, value in provenance.settings.items())
    return (
        f"{len(results.points)} points, {each} replications of each, whose seeds are their numbers from 1 on; each is "
        f"{settings.blocks:,} blocks long, after {settings.warm_up:,} that no measure sees. What stands behind ± is "
        f"half of a 95 % confidence interval. Settings ({provenance.mode}): {own}. Written by Trailboss "
        f"{provenance.version} with numpy {provenance.numpy}; digest of the settings "
        f"`{provenance.settings_digest[:SHOWN_DIGITS]}`, of the sources `{provenance.source_digest[:SHOWN_DIGITS]}`. "
        f"{again_text(provenance)}"
    )


def again_text(provenance: Provenance) -> str:
    """Return how to run a study again, and one replication of it."""
    line = f"trailboss study run {provenance.study}" + (" --quick" if provenance.mode is Mode.QUICK else "")
    return f"Again: `{line}`; one replication: `{line} --replication N --point NAME`."


def _setting_text(value: Any) -> str:
    match value:
        case dict():
            return _braced(value)
        case list():
            return f"[{', '.join(map(_setting_text, value))}]"
        case int() if not isinstance(value, bool):
            return f"{value:,}"
        case _:
            return str(value)


def _braced(table: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name} = {_setting_text(value)}" for name, value in table.items()) + "}"
