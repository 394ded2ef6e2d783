"""The pages of ``docs/studies``: written from stored results of full runs, never by hand.

python -m tools.studies            # pages and figures, from docs/studies/results
python -m tools.studies --keep DIR # first take the results of full runs from a folder
"""

import argparse
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from trailboss.simulator.study.catalogue import Mode, stem_of, study_names
from trailboss.simulator.study.page import page_of, write_figures
from trailboss.simulator.study.results import read_results

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = ROOT / "docs/studies"
RESULTS: Final = FOLDER / "results"
FIGURES: Final = FOLDER / "figures"
SECONDS: Final = RESULTS / "seconds.json"  # that the full run of each took, on one core
EXAMPLES: Final = frozenset({"lane-load"})  # studies that answer no question of the specification
RECOMMENDATION: Final = re.compile(r"\*\*Recommendation\.\*\* (.+?)\n\n", re.DOTALL)
MADE: Final = "<!-- Written by `python -m tools.studies`; do not edit. -->\n\n"
QUESTION: Final = re.compile(r"\*\*Question\.\*\* (.+)")
INTRO: Final = """
# Answers by simulation

CIP-1 v3 §16 leaves questions to simulation, and others follow from its rules. Each page states one question, how it was
answered, the numbers with their 95 % intervals, what would change the answer, and one recommendation. The simulator
runs the chain's own mechanisms; [what it reproduces](../concepts/simulator-validation.md) says why its numbers can be
trusted, [run a study](../how-to/run-a-study.md) how to run any of them again.

Populations and loads are invented, and most lanes are small; each page says so. Which difference matters,
and which measure counts first, is ours; in five studies (fairness window, shocks of the median, activation, ageing,
mechanisms) that was settled after a first look at results. Intervals are not corrected for the number of comparisons.
Read the tables before the recommendations.

A full run takes what the last column says, on one core of the machine that wrote the page; `--workers N` shares it out.

| study | question | recommendation | full run |
| --- | --- | --- | ---: |
"""


def pages(figures: Path) -> Mapping[Path, str]:
    """Return the pages by path, from the stored results; draw their figures into a folder."""
    found = dict[Path, str]()
    seconds = json.loads(SECONDS.read_text(encoding="utf-8"))
    rows = list[str]()
    for name in sorted({*study_names()} - EXAMPLES):
        results = read_results(RESULTS / f"{stem_of(name, Mode.FULL)}.parquet")
        drawn = [FIGURES / path.name for path in write_figures(results, figures)]
        page = found[FOLDER / f"{name}.md"] = page_of(results, drawn, FOLDER)
        question, recommendation = QUESTION.search(page), RECOMMENDATION.search(page)
        if question is None or recommendation is None:
            raise ValueError(f"the page of study {name} states no question, or no recommendation")
        rows.append(
            f"| [{name}]({name}.md) | {question[1]} | {' '.join(recommendation[1].split())} | {seconds[name]} s |"
        )
    found[FOLDER / "index.md"] = MADE + INTRO.lstrip() + "\n".join(rows) + "\n"
    return found


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a folder with results of full runs")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    if options.keep is not None:
        for name in {*study_names()} - EXAMPLES:
            stored = options.keep / f"{stem_of(name, Mode.FULL)}.parquet"
            if stored.exists():
                shutil.copy(stored, RESULTS)
    for path, text in pages(FIGURES).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
