"""The pictures of ``docs/mechanisms.md``: one a mechanism, drawn from a run of ``examples/scenarios/congested.toml``.

``python -m tools.reference`` writes them; a test holds the committed ones to a fresh run. They are plain SVG of integer
coordinates, so the same run gives the same bytes everywhere.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from trailboss.mechanisms.registry import MECHANISMS
from trailboss.model.timers import TimerEnd
from trailboss.simulator.agents.arrivals import Outage, Poisson
from trailboss.simulator.agents.keeper import KeeperRow
from trailboss.simulator.agents.offers import FixedOffer
from trailboss.simulator.agents.quantities import Uniform
from trailboss.simulator.alone import Alone
from trailboss.simulator.orders import Fire
from trailboss.simulator.scenario import AnyRow, Scenario, read_scenario

ROOT: Final = Path(__file__).resolve().parents[1]
SCENARIO: Final = "examples/scenarios/congested.toml"
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
"""Height of what belongs to one agent."""
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


class PictureBlock(NamedTuple):
    """One block of a run."""

    cycles: int  # of its fires
    oldest: list[int]  # of each agent, by how many blocks the oldest timer is late that waits after it; 0 for none


class PictureRun(Struct):
    """What a mechanism makes of the scenario; agents are those with timers, in its order."""

    mechanism: str
    budget: int = 0  # cycles that the fires of a block may use
    blocks: list[PictureBlock] = field(default_factory=list)
    fires: list[Fire] = field(default_factory=list)
    unfunded: Counter[int] = field(default_factory=Counter)  # agents to how many of their timers ended so
    waiting: Counter[int] = field(default_factory=Counter)  # agents to how many of their timers wait at the end

    def late(self, agent: int) -> list[int]:
        """Return by how many blocks each fire of an agent was late, ascending."""
        return sorted(fire.late for fire in self.fires if fire.plan.agent == agent)


@cache
def measured() -> tuple[Scenario, tuple[PictureRun, ...]]:
    """Return the scenario and what every mechanism makes of it."""
    scenario = read_scenario(ROOT / SCENARIO)
    return scenario, tuple(_run(replace(scenario, mechanism=mechanism)) for mechanism in MECHANISMS)


def _run(scenario: Scenario) -> PictureRun:
    world, run = Alone(scenario.ground()), PictureRun(scenario.mechanism)
    live: list[dict[bytes, int]] = [{} for _ in scenario.agents]  # of each agent, timers to their heights
    for height in range(1, scenario.blocks + 1):
        block = world.build()
        run.budget = block.view.lane_cycles_max
        run.fires += block.fires
        for plan in block.accepted:
            live[plan.agent][plan.timer_id] = plan.order.height
        for plan in (each.plan for ends in (block.fires, block.endings) for each in ends):
            del live[plan.agent][plan.timer_id]
        run.unfunded.update(ending.plan.agent for ending in block.endings if ending.end is TimerEnd.UNFUNDED)
        oldest = [max(0, height - min(heights.values(), default=height)) for heights in live]
        run.blocks.append(PictureBlock(block.timer_cycles, oldest))
    for agent, heights in enumerate(live):
        run.waiting[agent] = sum(height <= scenario.blocks for height in heights.values())
    return run


def pictures() -> Mapping[str, str]:
    """Return every picture by its path below the root."""
    scenario, runs = measured()
    latest = max(fire.late for run in runs for fire in run.fires)
    scale = -(-latest // SCALE) * SCALE
    return {f"{FOLDER}/{run.mechanism}.svg": picture(scenario, run, scale) for run in runs}


def picture(scenario: Scenario, run: PictureRun, scale: int) -> str:
    """Return one mechanism's picture.

    Args:
        scenario: What ran.
        run: What came of it.
        scale: Blocks late at the top of a strip; the same in all pictures, so that they can be compared.
    """
    height = TOP + USE + GAP + len(scenario.agents) * (STRIP + STEP) + BOTTOM
    title = TITLES[run.mechanism]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{title}">',
        f"<title>{title}</title>",
        f"<desc>Drawn by tools/pictures.py from a run of {SCENARIO}, seed {scenario.seed}.</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}" rx="8"/>',
        _text(LEFT, 26, title, "title"),
        *_shade(scenario, height),
        *_use(scenario, run),
        _text(
            LEFT,
            TOP + USE + GAP - 12,
            "blocks late: bars are the latest fire of a block, pale is the oldest timer that waits",
            "dim",
        ),
    ]
    for index, row in enumerate(scenario.agents):
        lines.extend(_strip(scenario, row, run, index, scale))
    lines.extend(_axis(scenario, height))
    return "\n".join([*lines, "</svg>", ""])


def _shade(scenario: Scenario, height: int) -> Iterator[str]:
    """Mark the blocks in which the timers of waves fall due: those that all come in the first block."""
    for row in scenario.agents:
        if isinstance(row, Poisson) and isinstance(row.ahead, Uniform) and isinstance(row.pattern, Outage):
            x, width = _x(scenario, 1 + row.ahead.least) - 2, (row.ahead.most - row.ahead.least + 1) * _pitch(scenario)
            y = TOP - LINE
            yield f'<rect class="due" x="{x}" y="{y}" width="{width}" height="{height - y - BOTTOM - STEP}"/>'
            yield _text(x + width // 2, TOP - SMALL, f"the {row.name} falls due", "dim", "middle")


def _use(scenario: Scenario, run: PictureRun) -> Iterator[str]:
    """Draw the cycles of fires, block by block, against the budget."""
    base, most = TOP + USE, run.budget
    bars = ((at, block.cycles * USE // most) for at, block in enumerate(run.blocks, 1) if block.cycles)
    used = 100 * sum(block.cycles for block in run.blocks) // (most * scenario.blocks)
    yield f'<path class="most" d="M{LEFT} {TOP}H{RIGHT}"/>'
    yield f'<path class="bars use" d="{_bars(scenario, bars, base)}"/>'
    yield f'<path class="rule" d="M{LEFT} {base}H{RIGHT}"/>'
    yield _text(LEFT - 8, base - USE // 2, "cycles", "name", "end")
    yield _text(LEFT - 8, base - USE // 2 + LINE, "of fires", "dim", "end")
    yield _text(RIGHT + 10, TOP + SMALL, f"budget {most:,}", "dim")
    yield _text(RIGHT + 10, base - USE // 2 + SMALL, f"{used} % used")
    yield _text(RIGHT + 10, base - USE // 2 + LINE + SMALL, f"{len(run.fires):,} fires", "dim")


def _strip(scenario: Scenario, row: AnyRow, run: PictureRun, index: int, scale: int) -> Iterator[str]:
    """Draw how late the fires of one agent came, with the numbers beside it."""
    base = TOP + USE + GAP + index * (STRIP + STEP) + STRIP
    latest: dict[int, int] = {}
    for fire in run.fires:
        if fire.plan.agent == index:
            latest[fire.height] = max(latest.get(fire.height, 0), fire.late)
    bars = ((at, max(IN_TIME, late * STRIP // scale)) for at, late in sorted(latest.items()))
    waits = (
        (at, block.oldest[index] * STRIP // scale) for at, block in enumerate(run.blocks, 1) if block.oldest[index]
    )
    yield f'<path class="rule" d="M{LEFT} {base - STRIP}H{RIGHT}M{LEFT} {base}H{RIGHT}"/>'
    yield f'<path class="bars waits s{index}" d="{_bars(scenario, waits, base)}"/>'
    yield f'<path class="bars s{index}" d="{_bars(scenario, bars, base)}"/>'
    yield _text(LEFT - 8, base - STRIP // 2, row.name, "name", "end")
    yield _text(LEFT - 8, base - STRIP // 2 + LINE, _offer(row), "dim", "end")
    yield _text(LEFT + SMALL, base - STRIP + 12, f"{scale} blocks" if index == 0 else str(scale), "dim")
    late, unfunded, waiting = run.late(index), run.unfunded[index], run.waiting[index]
    p95 = late[-(-95 * len(late) // 100) - 1]
    rest = f"{unfunded} unfunded" if unfunded else f"{waiting} waiting" if waiting else ""
    for line, (text, kind) in enumerate(
        ((f"p95 {p95}, max {late[-1]}", ""), (f"{len(late)} fires", "dim"), (rest, "dim"))
    ):
        if text:
            yield _text(RIGHT + 10, base - STRIP + 12 + line * LINE, text, kind)


def _offer(row: AnyRow) -> str:
    offer = row.offer if isinstance(row, KeeperRow) else None
    return f"tip {offer.tip}" if isinstance(offer, FixedOffer) and offer.tip else "no tip"


def _axis(scenario: Scenario, height: int) -> Iterator[str]:
    y = height - BOTTOM - STEP
    yield _text(LEFT, y + LINE + SMALL, "block", "dim")
    for block in range(TICK, scenario.blocks + 1, TICK):
        yield f'<path class="rule" d="M{_x(scenario, block)} {y}v5"/>'
        yield _text(_x(scenario, block), y + LINE + SMALL, str(block), "dim", "middle")


def _bars(scenario: Scenario, bars: Iterator[tuple[int, int]], base: int) -> str:
    return "".join(f"M{_x(scenario, block)} {base}v-{tall}" for block, tall in bars)


def _x(scenario: Scenario, block: int) -> int:
    return LEFT + (block - 1) * _pitch(scenario) + _pitch(scenario) // 2


def _pitch(scenario: Scenario) -> int:
    return PLOT // scenario.blocks


def _text(x: int, y: int, text: str, kind: str = "", anchor: str = "") -> str:
    kinds = f' class="{kind}"' if kind else ""
    anchors = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x}" y="{y}"{kinds}{anchors}>{text}</text>'
