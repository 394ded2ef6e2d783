"""The consensus engine's program on this machine: where it is, and whether it is of the release that we speak with."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trailboss.primitives.errors import ConfigurationError

VARIABLE: Final = "TRAILBOSS_ENGINE"
PROGRAM: Final = "cometbft"
FOLDER: Final = ".engine"  # of a project, where `make engine` installs
RELEASES: Final = "0.38."
ANSWER_SECONDS: Final = 20
INSTALL: Final = "install it with `make engine`, which needs Go, or name it with the variable TRAILBOSS_ENGINE"


def find_engine() -> Path:
    """Return the engine's program: the one that TRAILBOSS_ENGINE names, else the project's, else the one on the PATH.

    Raises:
        ConfigurationError: If there is none, or it is of a release that speaks another protocol.
    """
    named = os.environ.get(VARIABLE)
    found = Path(named) if named else next(_candidates(), None)
    if found is None or not found.is_file():
        place = f"at {named}, which {VARIABLE} names" if named else f"in {FOLDER}/ or on the PATH"
        raise ConfigurationError(f"there is no consensus engine, {PROGRAM} {RELEASES}x, {place}: {INSTALL}")
    release = engine_release(found)
    if not release.startswith(RELEASES):
        raise ConfigurationError(f"{found} is release {release!r} of the engine, and {RELEASES}x is needed: {INSTALL}")
    return found.absolute()


def engine_release(program: Path) -> str:
    """Return the release that an engine's program says it is; empty if it says nothing."""
    try:
        answer = subprocess.run(
            [program, "version"], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip()


def _candidates() -> Iterator[Path]:
    source = Path(__file__).resolve().parents[3]
    for folder in (Path.cwd() / FOLDER, source / FOLDER):
        if (folder / PROGRAM).is_file():
            yield folder / PROGRAM
    found = shutil.which(PROGRAM)
    if found is not None:
        yield Path(found)
