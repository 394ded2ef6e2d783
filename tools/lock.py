"""Print the lock: every package that development and documentation need, at the version that pip resolves now.

Names and versions only, so that any index or mirror can serve it. Run through ``make lock``.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

HEADER: Final = "# Exact versions of everything that `make` installs. Written by `make lock`; do not edit."
PIP: Final = (sys.executable, "-m", "pip", "-qq", "install", "--dry-run", "--ignore-installed", "--report", "-")


def main(root: Path) -> int:
    """Resolve the project with its groups ``dev`` and ``docs``, and print one ``name==version`` a line."""
    answer = subprocess.run([*PIP, f"{root}[dev,docs]"], check=True, capture_output=True, text=True)
    resolved = [each["metadata"] for each in json.loads(answer.stdout)["install"]]
    lines = sorted(f"{each['name'].lower()}=={each['version']}" for each in resolved if each["name"] != "trailboss")
    print("\n".join([HEADER, *lines]))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
