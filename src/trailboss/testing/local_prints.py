"""What actors print on a local chain: shown where tests look for it."""

import sys
from collections.abc import Iterable

from trailboss.chain.views import Printed


def show_printed(lines: Iterable[Printed]) -> None:
    """Write what actors have printed to the standard output, which pytest captures. Decision: D-89."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
