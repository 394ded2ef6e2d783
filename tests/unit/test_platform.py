"""Where Trailboss runs."""

import subprocess
import sys

PROGRAM = 'import sys; sys.platform = "win32"; import trailboss.cli.main'


def test_import_says_which_systems_there_are_when_it_is_another() -> None:
    """The last line of what a user of Windows sees is what to do, not a missing module."""
    found = subprocess.run((sys.executable, "-c", PROGRAM), capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1].startswith("ImportError: Trailboss needs Linux or macOS")
    assert "WSL" in found.stderr
