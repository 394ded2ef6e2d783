"""Scenarios: which agents do what, under which parameters, for how long; the same for every mechanism.

A scenario is a TOML file: the fields of `Scenario`, and a table ``[[agents]]`` for each kind of agent, whose ``kind``
names one of `AGENTS`.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, ValidationError, convert, field
from msgspec.structs import replace

from trailboss.mechanisms.registry import MECHANISMS
from trailboss.params import load_params
from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.agents.arrivals import Poisson
from trailboss.simulator.agents.base import ACTORS_MAX, Agent
from trailboss.simulator.agents.crowds import Crowd
from trailboss.simulator.agents.loops import ClosedLoop, StateTrigger
from trailboss.simulator.agents.transactions import UserTraffic
from trailboss.simulator.ground import Ground
from trailboss.simulator.streams import SEED_MAX, stream

BLOCKS_MAX: Final = 10_000_000
MULTIPLIER_MAX: Final = 10_000_000
ROOM: Final = {"limits.block_cycles_max": 10**12, "limits.block_cells_max": 10**12}
"""Room for the orders of all agents in one block: a scenario is about timers, not about transactions."""
STEP: Final = re.compile(r"\.([^.[\]]+)|\[(\d+)\]")  # a step of a path such as ``$.agents[0].funds``

AnyRow = Poisson | Crowd | ClosedLoop | StateTrigger | UserTraffic
"""Kinds of agents."""


class Scenario(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One scenario."""

    name: Annotated[str, Meta(min_length=1, max_length=80)]  # its title
    blocks: Annotated[int, Meta(ge=1, le=BLOCKS_MAX)]  # that are measured
    agents: tuple[AnyRow, ...]
    mechanism: str = "lane"
    preset: str = "mainnet"
    seed: Annotated[int, Meta(ge=0, le=SEED_MAX)] = 1
    warm_up: Annotated[int, Meta(ge=0, le=BLOCKS_MAX)] = 0  # blocks before those, which no measure sees
    # The lane fee multiplier of timers, in parts of 10,000; None for 1.0. Spec: CIP-1v3 §5.
    timer_multiplier: Annotated[int, Meta(ge=1, le=MULTIPLIER_MAX)] | None = None
    params: Mapping[str, int] = field(default_factory=dict)  # parameters that differ from the preset, by dotted path

    def overrides(self) -> dict[str, int]:
        """Return the parameters that differ from the preset."""
        return {**ROOM, **self.params}

    def ground(self) -> Ground:
        """Return the ground of one run: its agents have seen nothing."""
        agents, funds = list[Agent](), list[int]()
        for row in self.agents:
            for number in range(row.count):
                name = row.name if row.count == 1 else f"{row.name} {number}"
                actors = range(len(funds) + 1, len(funds) + 1 + row.actors)
                agents.append(row.agent(name, actors, lambda *names, name=name: stream(self.seed, name, *names)))
                funds += [row.funds] * row.actors
        return Ground(
            mechanism=self.mechanism,
            preset=self.preset,
            overrides=self.overrides(),
            funds=funds,
            agents=agents,
            timer_multiplier=self.timer_multiplier,
        )


def check_scenario(scenario: Scenario) -> None:
    """Check the rules between the values of a scenario, and between them and the parameters.

    Raises:
        ConfigurationError: Naming field, value and rule.
    """
    if scenario.mechanism not in MECHANISMS:
        raise ConfigurationError(f"mechanism = {scenario.mechanism!r} must be one of {', '.join(MECHANISMS)}")
    if not scenario.agents:
        raise ConfigurationError("agents is empty: a scenario has at least one table [[agents]]")
    names = [row.name for row in scenario.agents]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigurationError(f"agents.name = {twice[0]!r} stands for more than one table; each has its own")
    actors = sum(row.count * row.actors for row in scenario.agents)
    if actors > ACTORS_MAX:
        raise ConfigurationError(f"agents have {actors:,} actors; they may have {ACTORS_MAX:,}")
    for at, row in enumerate(scenario.agents):
        if (problem := row.problem(scenario.blocks)) is not None:
            raise ConfigurationError(f"agents[{at}].{problem}")
    load_params(scenario.preset, scenario.overrides())


def at_load(scenario: Scenario, load: float) -> Scenario:
    """Return a scenario whose agents together ask for a share of what fires may use in a block.

    The shares of its agents are multiplied; agents without a share stay as they are.
    """
    shares = [row.share * row.count for row in scenario.agents if isinstance(row, Poisson | Crowd) and row.share]
    factor = load / sum(shares) if shares else 1.0
    agents: tuple[AnyRow, ...] = tuple(
        replace(row, share=row.share * factor) if isinstance(row, Poisson | Crowd) and row.share else row
        for row in scenario.agents
    )
    scaled: Scenario = replace(scenario, agents=agents)
    return scaled


def read_scenario(path: Path) -> Scenario:
    """Read a scenario from a file.

    Raises:
        ConfigurationError: Naming file, field, value and rule.
    """
    try:
        return parse_scenario(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"cannot read the scenario {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"the scenario {path} is not UTF-8: {error.reason} at byte {error.start}") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def parse_scenario(text: str) -> Scenario:
    """Read a scenario from TOML; raises as `read_scenario`."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"this is not TOML: {error}") from None
    scenario: Scenario = converted(table, Scenario)
    check_scenario(scenario)
    return scenario


def converted(table: Mapping[str, Any], kind: type[Any]) -> Any:
    """Return a record of a table; `ConfigurationError` names field, value and rule."""
    try:
        return convert(table, kind)
    except ValidationError as error:
        raise ConfigurationError(_explained(table, str(error))) from None


def _explained(table: Mapping[str, Any], message: str) -> str:
    """Return the refusal of a value with its field and itself: ``seed = -1: expected `int` >= 0``."""
    rule, _, path = message.partition(" - at `$")
    found: Any = table
    for key, index in STEP.findall(path.rstrip("`")):
        found = found[int(index)] if index else found.get(key)
    name = path.rstrip("`").lstrip(".") or "it"
    shown = name if isinstance(found, dict) else f"{name} = {found!r}"
    return f"{shown}: {rule[:1].lower()}{rule[1:]}"
