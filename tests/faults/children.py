"""Child processes that do some work and are killed at it."""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable


def forked(work: Callable[[], object]) -> int:
    """Start a process that does some work and must not come back."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stderr.flush()
        os._exit(status)


def killed(child: int, seconds: float) -> bool:
    """Kill a process after some time; return whether it was still at work.

    Raises:
        AssertionError: If it has failed by itself.
    """
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the child failed: status {status}"
    return os.WIFSIGNALED(status)
