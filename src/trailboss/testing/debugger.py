"""What an actor's ``breakpoint()`` calls, if someone is there to go on from it. Decision: D-118."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from types import BuiltinFunctionType
from typing import Final

CHOICE: Final = "PYTHONBREAKPOINT"
OFF: Final = "0"
DEFAULT: Final = "pdb.set_trace"
PYTEST: Final = "_pytest.debugging"
PLUGIN: Final = "trailboss.testing.plugin"


def find_debugger() -> Callable[..., object] | None:
    """Return what ``breakpoint()`` calls in this process; None without an editor's debugger, a choice or a terminal.

    A program chooses by `sys.breakpointhook`, a person by the variable ``PYTHONBREAKPOINT``.

    Raises:
        ImportError: If that variable names a module that is not there.
        AttributeError: If the module has no such function.
    """
    hook: Callable[..., object] = sys.breakpointhook
    is_pytests = getattr(hook, "__module__", "") == PYTEST
    if not is_pytests and not isinstance(hook, BuiltinFunctionType):
        return hook
    choice = os.environ.get(CHOICE, "")
    if choice == OFF or not (choice or _is_in_terminal()):
        return None
    if is_pytests and not choice:
        return hook
    # Python's own hook would import the debugger as the actor imports, and find none.
    module, _, function = (choice or DEFAULT).rpartition(".")
    found: Callable[..., object] = getattr(import_module(module or "builtins"), function)
    return found


def _is_in_terminal() -> bool:
    # While pytest captures, the standard input is no terminal; its debugger gives it back.
    if PLUGIN in sys.modules:
        return bool(sys.modules[PLUGIN].IN_TERMINAL)
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
