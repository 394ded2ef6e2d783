"""Sessions of ``trailboss`` on the pages: every ``console`` block that types such commands shows what they print now.

The commands of a page run in its order, in one folder of their own that has the examples. One that may fail says so in
a comment: ``$ trailboss send 1 99_999_999cby  # more than it holds``.
"""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from typer.testing import CliRunner

from trailboss.cli.main import app

ROOT: Final = Path(__file__).resolve().parents[1]
BLOCK: Final = re.compile(r"(?<=^```console\n)(?=\$ trailboss ).*?(?=^```$)", re.MULTILINE | re.DOTALL)
COMMAND: Final = re.compile(r"^\$ trailboss (?P<arguments>.*)$", re.MULTILINE)
WIDTH: Final = "100"
"""Columns of the sessions."""


def with_sessions(page: str) -> str:
    """Return a page with what the commands of its sessions print now.

    Raises:
        ValueError: If a command fails without saying that it may.
    """
    with _folder():
        return BLOCK.sub(lambda match: _session(match[0]), page)


def _session(block: str) -> str:
    return "\n".join(_printed(match[0], match["arguments"]) for match in COMMAND.finditer(block))


def _printed(line: str, arguments: str) -> str:
    result = CliRunner().invoke(app, shlex.split(arguments, comments=True), env={"COLUMNS": WIDTH})
    if result.exit_code != 0 and "#" not in arguments:
        raise ValueError(f"{line}\n{result.output}")
    return "".join(f"{each.rstrip()}\n" for each in (line, *result.output.splitlines()))


@contextmanager
def _folder() -> Iterator[None]:
    before = Path.cwd()
    with TemporaryDirectory() as name:
        Path(name, "examples").symlink_to(ROOT / "examples")
        os.chdir(name)
        try:
            yield
        finally:
            os.chdir(before)
