"""Which studies there are, and a study with its settings as a run takes it: a case."""

import tomllib
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Final, cast

import numpy as np
from msgspec import Struct, defstruct, json

import trailboss
from trailboss.primitives.errors import ConfigurationError
from trailboss.simulator import studies
from trailboss.simulator.scenario import converted
from trailboss.simulator.study.base import Point, Settings, Study

PLACE: Final = f"{studies.__name__}."
SOURCES: Final = ("execution", "fees.py", "governance", "mechanisms", "model", "params", "simulator", "timer_queue")
"""What of the package decides the results of a simulation."""


class Mode(StrEnum):
    """Which table of a study's file holds."""

    FULL = "full"
    QUICK = "quick"


class Case(Struct, frozen=True, kw_only=True):
    """A study with settings."""

    module: str  # by which it is imported
    mode: Mode
    settings: Settings
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        """Name of the study, as people type it."""
        return self.module.rpartition(".")[2].replace("_", "-")

    @property
    def stem(self) -> str:
        """What the names of its files begin with."""
        return stem_of(self.name, self.mode)

    @property
    def study(self) -> Study:
        """The study itself."""
        return study_of(self.module)

    def point(self, name: str) -> Point:
        """Return a point by name; `ConfigurationError` if there is none."""
        for point in self.points:
            if point.name == name:
                return point
        there = ", ".join(point.name for point in self.points)
        raise ConfigurationError(f"{self.name} has no point {name!r}; there are: {there}")


class Provenance(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What results follow from; equal provenance, equal results."""

    study: str
    module: str
    mode: Mode
    settings: dict[str, Any]
    settings_digest: str  # SHA-256 of the settings as JSON, hexadecimal
    source_digest: str  # SHA-256 of the sources that decide, hexadecimal; see `source_digest`
    points: tuple[Point, ...]
    version: str  # of the package
    numpy: str  # version of what draws


def stem_of(name: str, mode: Mode) -> str:
    """Return what the names of a study's files begin with: a quick run leaves those of the full one alone."""
    return name if mode is Mode.FULL else f"{name}-{mode}"


def study_names() -> list[str]:
    """Return the names of all studies, ascending."""
    return sorted(each.name.replace("_", "-") for each in iter_modules(studies.__path__))


def study_of(module: str) -> Study:
    """Import a study."""
    return cast(Study, import_module(module))


def find_case(name: str, mode: Mode) -> Case:
    """Return a study by name, with its settings; `ConfigurationError` if there is none, or as `read_case`."""
    names = study_names()
    if name not in names:
        raise ConfigurationError(f"there is no study {name!r}; there are: {', '.join(names)}")
    return read_case(PLACE + name.replace("-", "_"), mode)


def read_case(module: str, mode: Mode, path: Path | None = None) -> Case:
    """Return a study with the settings of its file, or of another one.

    Raises:
        ConfigurationError: Naming file, field, value and rule.
    """
    study = study_of(module)
    path = path or Path(str(import_module(module).__file__)).with_suffix(".toml")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        kinds = [(each.value, study.Settings) for each in Mode]
        both = converted(table, defstruct("Tables", kinds, forbid_unknown_fields=True))
        points = {each: _checked(study, each, getattr(both, each)) for each in Mode}
    except OSError as error:
        raise ConfigurationError(f"cannot read the settings {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f"{path}: this is not TOML: {error}") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    return Case(module=module, mode=mode, settings=getattr(both, mode), points=tuple(points[mode]))


def _checked(study: Study, mode: Mode, settings: Settings) -> Sequence[Point]:
    least, most = settings.replications_min, settings.replications_max
    if least > most:
        raise ConfigurationError(f"{mode}.replications_min = {least} must be at most replications_max = {most}")
    try:
        points = study.points(settings)
    except ConfigurationError as error:
        raise ConfigurationError(f"{mode}.{error}") from None
    names = [point.name for point in points]
    if not names or len(set(names)) < len(names):
        raise ConfigurationError(f"{mode} gives the points {names}: there must be one at least, each with its own name")
    return points


def provenance_of(case: Case) -> Provenance:
    """Return what the results of a case follow from."""
    settings = json.decode(json.encode(case.settings))  # as files hold them: a list where there is a tuple
    return Provenance(
        study=case.name,
        module=case.module,
        mode=case.mode,
        settings=settings,
        settings_digest=sha256(json.encode(settings, order="deterministic")).hexdigest(),
        source_digest=source_digest(case.module),
        points=case.points,
        version=trailboss.__version__,
        numpy=np.__version__,
    )


@cache
def source_digest(module: str) -> str:
    """Return the digest of what decides the results of a study, as this process found it: see `SOURCES`.

    Of the studies it covers this one alone, and not the settings: those have a digest of their own.
    """
    root = Path(trailboss.__file__).parent
    paths = [path for name in SOURCES for path in [root / name, *(root / name).rglob("*")]]
    chosen = [path for path in paths if path.suffix in {".py", ".toml"} and path.parent.name != "studies"]
    digest = sha256()
    for path in sorted({path.relative_to(root).as_posix() for path in chosen}):
        digest.update(f"{path}\0".encode() + sha256(root.joinpath(path).read_bytes()).digest())
    digest.update(Path(str(import_module(module).__file__)).read_bytes())
    return digest.hexdigest()
