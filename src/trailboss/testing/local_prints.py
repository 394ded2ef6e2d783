"""What actors print on a local chain: shown where tests look for it."""

import sys
import warnings
from collections.abc import Iterable

from trailboss.views.records import Printed


class ChainWarning(UserWarning):
    """What an actor did goes well on this chain, and will not on a public one."""


def show_printed(lines: Iterable[Printed]) -> None:
    """Write what actors have printed to the standard output, which pytest captures, and give the chain's warnings.

    Decision: D-89, D-91
    """
    for line in lines:
        if line.is_warning:
            warnings.warn(f"{line.handler}: {line.text}", ChainWarning, stacklevel=1)
        else:
            sys.stdout.write(f"{line}\n")
