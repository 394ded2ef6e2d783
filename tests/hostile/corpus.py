"""The hostile programs by class. Each class is a module of `tests.hostile.programs`."""

from importlib import import_module
from pathlib import Path
from typing import Final

from tests.hostile.program import HostileProgram

CLASSES: Final = tuple(sorted(path.stem for path in (Path(__file__).parent / "programs").glob("*.py")))


def load_corpus() -> dict[str, tuple[HostileProgram, ...]]:
    """Return the programs by class."""
    return {name: import_module(f"tests.hostile.programs.{name}").PROGRAMS for name in CLASSES}


def all_programs() -> dict[str, HostileProgram]:
    """Return the programs by name."""
    return {program.name: program for programs in load_corpus().values() for program in programs}
