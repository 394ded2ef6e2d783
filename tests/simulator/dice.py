"""A study of nothing, which is over at once, and whose replications can last, fail, or kill their process."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import sleep
from typing import Any

from matplotlib.figure import Figure

from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator.streams import stream
from trailboss.simulator.study import base
from trailboss.simulator.study.base import Point, Results
from trailboss.simulator.study.text import interval_text, markdown_table

TITLE = "Where do dice fall?"


class DiceSettings(base.Settings, frozen=True, kw_only=True):
    spreads: tuple[float, ...]
    pause: float = 0.0  # seconds that each replication lasts
    fails_at: int = 0  # replication that raises
    deadly: int = 0  # replication that kills its process
    deaths: int = 0  # how often
    graves: str = ""  # folder in which it counts


Settings = DiceSettings


def points(settings: DiceSettings) -> Sequence[Point]:
    if min(settings.spreads) < 0:
        raise ConfigurationError(f"spreads = {min(settings.spreads)} must be at least 0")
    return [Point(f"spread {spread:g}", {"spread": spread}) for spread in settings.spreads]


def replicate(settings: DiceSettings, point: Point, seed: int) -> Mapping[str, float]:
    sleep(settings.pause)
    if seed == settings.fails_at:
        raise ValueError("the dice are lost")
    if seed == settings.deadly:
        graves = Path(settings.graves)
        count = len(list(graves.glob(f"{point.name} *")))
        if count < settings.deaths:
            graves.joinpath(f"{point.name} {count}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    thrown = stream(seed, "dice").normal(size=settings.blocks).mean()
    return {"thrown": float(point.facts["spread"]) * thrown, "nothing": -float("nan"), "highest": float(seed)}


def table(results: Results) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    names = [point.name for point in results.points]
    return ["spread", "thrown"], [[name, interval_text(results.interval(name, "thrown"))] for name in names]


def figures(results: Results) -> Mapping[str, Any]:
    figure = Figure()
    figure.subplots().plot(results.values(results.points[-1].name, "thrown"))
    return {"thrown": figure}


def page(results: Results) -> str:
    first, *_, last = [point.name for point in results.points]
    return f"{markdown_table(*table(results))}\n\n{interval_text(results.difference(last, first, 'thrown'))} apart."
