"""The cost baseline of each template of `trailboss new`, as its tests save it."""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from trailboss.cli.commands.new import TEMPLATES

FOLDER: Final = "src/trailboss/cli/templates"
NAME: Final = "costed"
FILE: Final = "costs.json"


def scaffold_costs() -> dict[str, str]:
    """Return the text of each template, by its path."""
    return {f"{FOLDER}/{each}/{FILE}.template": _saved(each) for each in TEMPLATES}


def _saved(template: str) -> str:
    with TemporaryDirectory() as folder:
        for command in (
            ["trailboss", "new", NAME, "--template", template],
            ["pytest", "-q", "-p", "no:cacheprovider", "--trailboss-vm=native", f"--rootdir={NAME}", NAME,
             "--trailboss-costs-save"],
        ):  # fmt: skip
            subprocess.run([sys.executable, "-m", *command], cwd=folder, check=True, capture_output=True)
        return Path(folder, NAME, FILE).read_text(encoding="utf-8").replace(NAME, "${module}")
