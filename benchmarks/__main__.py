"""The command: ``python -m benchmarks [NAME ...] [--json FILE]``."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks import (
    advance,
    auction,
    check,
    codec,
    commit,
    costs,
    crowd,
    disk,
    frames,
    globalbox,
    in_process,
    lane,
    lane_blocks,
    machine,
    network,
    node,
    peers,
    phases,
    queue,
    readers,
    rest,
    scale,
    simulation,
    simulator,
    startup,
    state_sync,
    storms,
    transfers,
)
from benchmarks.measure import Report
from benchmarks.page import store
from benchmarks.report import document, show

ROUNDS: Final = 9
WIDTH: Final = 132

SUBJECTS: Final[dict[str, Callable[[int, bool], Report]]] = {
    "scale": scale.in_memory,
    "scale-disk": scale.on_disk,
    "crowd": crowd.run,
    "storms": storms.run,
    "lane": lane.run,
    "lane-blocks": lane_blocks.run,
    "auction": auction.run,
    "globalbox": globalbox.run,
    "advance": advance.run,
    "disk": disk.run,
    "rest": rest.run,
    "state-sync": state_sync.run,
    "queue": queue.run,
    "commit": commit.run,
    "transfers": transfers.run,
    "network": network.run,
    "node": node.run,
    "readers": readers.run,
    "peers": peers.run,
    "in-process": in_process.run,
    "startup": startup.run,
    "check": check.run,
    "costs": costs.run,
    "codec": codec.run,
    "frames": frames.run,
    "phases": phases.run,
    "simulation": simulation.run,
    "simulator": simulator.run,
    "machine": machine.run,
}
"""Each takes the number of rounds and whether to measure the sizes that take minutes to build."""


def main() -> None:
    """Run the subjects named, or all of them."""
    parser = ArgumentParser(prog="python -m benchmarks", description="Medians over rounds, ratios within one process.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SUBJECTS))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of each comparison (default {ROUNDS})")
    parser.add_argument("--large", action="store_true", help="also the sizes that take minutes to build")
    parser.add_argument("--json", type=Path, metavar="FILE", help="store every round of every case")
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the tables between the marks of a page")
    parser.add_argument("--commit", default="", help="commit to store with them")
    parser.add_argument("--date", default="", help="date to store with them")
    chosen = parser.parse_args()
    for name in chosen.names:
        if name not in SUBJECTS:
            parser.error(f"unknown subject {name!r}; there are: {', '.join(SUBJECTS)}")
    # Where the width is not that of a terminal, as in a file, the tables get the width they need.
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    reports: dict[str, Report] = {}
    for name in chosen.names or SUBJECTS:
        with Console(stderr=True).status(f"measuring {name}"):
            reports[name] = SUBJECTS[name](chosen.rounds, chosen.large)
        show(console, reports[name])
    if chosen.json is not None:
        text = json.dumps(document(reports, chosen.commit, chosen.date), indent=1, ensure_ascii=False)
        chosen.json.write_text(text + "\n", encoding="utf-8")
    if chosen.page is not None:
        store(chosen.page, reports, chosen.commit, chosen.date)


if __name__ == "__main__":
    main()
