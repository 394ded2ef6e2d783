"""Tests that are coroutines."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

Test = Callable[..., Coroutine[Any, Any, None]]
SECONDS = 60
"""After so long a test fails: only a fault lets it come to that."""


def on_loop(test: Test, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> Callable[..., None]:
    """Have a test run on an event loop of its own, with workers that end with it."""

    @wraps(test)
    def run(*arguments: Any, **keywords: Any) -> None:
        async def begin() -> None:
            await asyncio.wait_for(test(*arguments, **keywords), SECONDS)

        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(begin())

    return run
