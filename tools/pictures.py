"""The pictures of ``docs/mechanisms.md``: one a mechanism, drawn from a run of ``examples/workloads/congested.toml``.

``python -m tools.reference`` writes them; a test holds the committed ones to a fresh run. They are plain SVG of integer
coordinates, so the same run gives the same bytes everywhere.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from trailboss.simulator.measures import MechanismResult
from trailboss.simulator.run import MECHANISMS, compare
from trailboss.simulator.workload import ActorGroup, Workload
from trailboss.simulator.workload_file import read_workload

ROOT: Final = Path(__file__).resolve().parents[1]
WORKLOAD: Final = "examples/workloads/congested.toml"
FOLDER: Final = "docs/pictures"
TITLES: Final = {
    "fifo": "FIFO: in the order of the heights, and of scheduling",
    "lane": "The timer lane: tip × W, at a price that follows use",
    "auction": "The auction: what an agent bids, block by block",
    "globalbox": "Globalbox: a bid buys a head start, and age catches up",
}

WIDTH: Final = 700
LEFT: Final = 70
PLOT: Final = 480
RIGHT: Final = LEFT + PLOT
TOP: Final = 62
USE: Final = 60
"""Height of the upper part, the use of the budget."""
GAP: Final = 34
STRIP: Final = 52
"""Height of what belongs to one group of actors."""
STEP: Final = 12
"""Between two strips."""
BOTTOM: Final = 24
TICK: Final = 20
"""Blocks between two marks of the axis."""
SCALE: Final = 10
"""The scale of lateness ends at a multiple of so many blocks."""
IN_TIME: Final = 2
"""Height of the bar of a block in which all fires were in time."""
LINE: Final = 16
SMALL: Final = 4

STYLE: Final = """
svg { font: 12px system-ui, sans-serif; --ground: #fdfcfa; --ink: #2b2622; --dim: #6f6861; --rule: #d9d4cd;
  --due: #f1ece4; --use: #8d6e63; --a: #0b66a8; --b: #c2500a; --c: #0a7d5a; --d: #a33f86; }
@media (prefers-color-scheme: dark) {
  svg { --ground: #23252f; --ink: #e8e6e3; --dim: #a7a39c; --rule: #454854; --due: #2e313d;
    --use: #bca399; --a: #62b5f0; --b: #f0954f; --c: #45c79b; --d: #e08cc6; }
}
.ground { fill: var(--ground); } .due { fill: var(--due); } text { fill: var(--ink); } .dim { fill: var(--dim); }
.title { font-size: 15px; font-weight: 600; } .name { font-weight: 600; }
.rule { stroke: var(--rule); } .most { stroke: var(--dim); stroke-dasharray: 4 3; }
.bars { fill: none; stroke-width: 3; } .waits { stroke-width: 4; opacity: .28; } .use { stroke: var(--use); }
.s0 { stroke: var(--a); } .s1 { stroke: var(--b); } .s2 { stroke: var(--c); } .s3 { stroke: var(--d); }
"""


@cache
def measured() -> tuple[Workload, tuple[MechanismResult, ...]]:
    """Return the workload and what every mechanism made of it."""
    workload = read_workload(ROOT / WORKLOAD, MECHANISMS)
    return workload, compare(workload)


def pictures() -> Mapping[str, str]:
    """Return every picture by its path below the root."""
    workload, results = measured()
    latest = max(fire.late for result in results for fire in result.fires)
    scale = -(-latest // SCALE) * SCALE
    return {f"{FOLDER}/{result.mechanism}.svg": picture(workload, result, scale) for result in results}


def picture(workload: Workload, result: MechanismResult, scale: int) -> str:
    """Return one mechanism's picture.

    Args:
        workload: What ran.
        result: What came of it.
        scale: Blocks late at the top of a strip; the same in all pictures, so that they can be compared.
    """
    height = TOP + USE + GAP + len(workload.actors) * (STRIP + STEP) + BOTTOM
    title = TITLES[result.mechanism]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{title}">',
        f"<title>{title}</title>",
        f"<desc>Drawn by tools/pictures.py from a run of {WORKLOAD}, state root {result.state_root}.</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}" rx="8"/>',
        _text(LEFT, 26, title, "title"),
        *_shade(workload, height),
        *_use(workload, result),
        _text(
            LEFT,
            TOP + USE + GAP - 12,
            "blocks late: bars are the latest fire of a block, pale is the oldest timer that waits",
            "dim",
        ),
    ]
    for index, group in enumerate(workload.actors):
        lines.extend(_strip(workload, group, result, index, scale))
    lines.extend(_axis(workload, height))
    return "\n".join([*lines, "</svg>", ""])


def _shade(workload: Workload, height: int) -> Iterator[str]:
    """Mark the blocks in which the timers of groups fall due that fire once."""
    for group in workload.actors:
        if not group.period:
            x, width = _x(workload, group.first) - 2, (group.spread + 1) * _pitch(workload)
            y = TOP - LINE
            yield f'<rect class="due" x="{x}" y="{y}" width="{width}" height="{height - y - BOTTOM - STEP}"/>'
            yield _text(x + width // 2, TOP - SMALL, f"the {group.name} falls due", "dim", "middle")


def _use(workload: Workload, result: MechanismResult) -> Iterator[str]:
    """Draw the cycles of fires, block by block, against the budget."""
    base, most = TOP + USE, result.budget_cycles
    bars = ((line.block, line.timer_cycles * USE // most) for line in result.timeline if line.timer_cycles)
    used = 100 * result.outcome.cycles_used // (most * workload.blocks)
    yield f'<path class="most" d="M{LEFT} {TOP}H{RIGHT}"/>'
    yield f'<path class="bars use" d="{_bars(workload, bars, base)}"/>'
    yield f'<path class="rule" d="M{LEFT} {base}H{RIGHT}"/>'
    yield _text(LEFT - 8, base - USE // 2, "cycles", "name", "end")
    yield _text(LEFT - 8, base - USE // 2 + LINE, "of fires", "dim", "end")
    yield _text(RIGHT + 10, TOP + SMALL, f"budget {most:,}", "dim")
    yield _text(RIGHT + 10, base - USE // 2 + SMALL, f"{used} % used")
    yield _text(RIGHT + 10, base - USE // 2 + LINE + SMALL, f"{result.outcome.delivered:,} fires", "dim")


def _strip(workload: Workload, group: ActorGroup, result: MechanismResult, index: int, scale: int) -> Iterator[str]:
    """Draw how late the fires of one group came, with the numbers beside it."""
    base = TOP + USE + GAP + index * (STRIP + STEP) + STRIP
    latest: dict[int, int] = {}
    for fire in result.fires:
        if fire.group == index:
            latest[fire.block] = max(latest.get(fire.block, 0), fire.late)
    bars = ((block, max(IN_TIME, late * STRIP // scale)) for block, late in sorted(latest.items()))
    waits = ((line.block, line.oldest[index] * STRIP // scale) for line in result.timeline if line.oldest[index])
    yield f'<path class="rule" d="M{LEFT} {base - STRIP}H{RIGHT}M{LEFT} {base}H{RIGHT}"/>'
    yield f'<path class="bars waits s{index}" d="{_bars(workload, waits, base)}"/>'
    yield f'<path class="bars s{index}" d="{_bars(workload, bars, base)}"/>'
    yield _text(LEFT - 8, base - STRIP // 2, group.name, "name", "end")
    yield _text(LEFT - 8, base - STRIP // 2 + LINE, f"tip {group.tip}" if group.tip else "no tip", "dim", "end")
    yield _text(LEFT + SMALL, base - STRIP + 12, f"{scale} blocks" if index == 0 else str(scale), "dim")
    of = result.groups[index].outcome
    rest = f"{of.unfunded} unfunded" if of.unfunded else f"{of.overdue} overdue" if of.overdue else ""
    for line, (text, kind) in enumerate(
        ((f"p95 {of.late_p95}, max {of.late_max}", ""), (f"{of.delivered} of {of.asked} fires", "dim"), (rest, "dim"))
    ):
        if text:
            yield _text(RIGHT + 10, base - STRIP + 12 + line * LINE, text, kind)


def _axis(workload: Workload, height: int) -> Iterator[str]:
    y = height - BOTTOM - STEP
    yield _text(LEFT, y + LINE + SMALL, "block", "dim")
    for block in range(TICK, workload.blocks + 1, TICK):
        yield f'<path class="rule" d="M{_x(workload, block)} {y}v5"/>'
        yield _text(_x(workload, block), y + LINE + SMALL, str(block), "dim", "middle")


def _bars(workload: Workload, bars: Iterator[tuple[int, int]], base: int) -> str:
    return "".join(f"M{_x(workload, block)} {base}v-{tall}" for block, tall in bars)


def _x(workload: Workload, block: int) -> int:
    return LEFT + (block - 1) * _pitch(workload) + _pitch(workload) // 2


def _pitch(workload: Workload) -> int:
    return PLOT // workload.blocks


def _text(x: int, y: int, text: str, kind: str = "", anchor: str = "") -> str:
    kinds = f' class="{kind}"' if kind else ""
    anchors = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x}" y="{y}"{kinds}{anchors}>{text}</text>'
