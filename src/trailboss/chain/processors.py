"""How many processors there are for work that is worth sharing, or for a thread that does not sleep."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

CONTAINER_SHARE: Final = Path("/sys/fs/cgroup/cpu.max")  # microseconds, of how many


def usable_processors() -> int:
    """Return how many processors this process may use: of the machine's, or of its container's share."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # there is no such file, or its share is "max"
        share, period = map(int, CONTAINER_SHARE.read_text(encoding="ascii").split())
        count = min(count, max(1, share // period))
    return count
