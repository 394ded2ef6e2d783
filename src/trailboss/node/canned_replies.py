"""Replies to runner jobs that a development node knows beforehand, from a TOML file.

```toml
[[reply]]
kind = "llm"             # only jobs of this kind
contains = "weather"     # only jobs whose prompt or URL has this text in it
value = "sunny"

[[reply]]
kind = "http"
failure = "no_replacement_available"

[[reply]]                # no condition: every other job
value = { text = "nothing" }
```

The first reply that fits a job answers it; a job that none fits stays open. Decision: D-113
"""

import tomllib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from trailboss.chain.jobs import JOBS_MAX, JobAnswer, check_kind, read_answer, runner_of
from trailboss.chain.view import ChainView
from trailboss.codec.canonical import encode_canonical
from trailboss.node.block_builder import StoppingError
from trailboss.node.logs import log
from trailboss.primitives.errors import ConfigurationError, Rejection
from trailboss.primitives.octets import Hash32
from trailboss.views.jobs import OPEN, JobView, list_jobs

_CONDITIONS: Final = ("kind", "contains")


class CannedReply(Struct, frozen=True):
    """One reply, and the jobs that it answers: all of them without a condition."""

    answer: JobAnswer
    kind: str | None = None
    contains: str | None = None

    def fits(self, job: JobView) -> bool:
        """Return whether it answers a job."""
        return self.kind in (None, job.kind) and (self.contains is None or self.contains in job.text)


def read_replies(path: Path) -> tuple[CannedReply, ...]:
    """Return the replies of a file, in order; `ConfigurationError` names the file, the reply and the rule."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"cannot read the replies {path}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigurationError(f"the replies {path} are not TOML: {error}") from None
    replies = table.get("reply")
    if table.keys() != {"reply"} or not isinstance(replies, list) or any(type(each) is not dict for each in replies):
        raise ConfigurationError(f"the replies {path} hold something else than tables [[reply]]")
    return tuple(_read(f"{path}: reply {number}", reply) for number, reply in enumerate(replies, 1))


def _read(place: str, reply: Any) -> CannedReply:
    try:
        conditions = msgspec.convert({name: reply[name] for name in _CONDITIONS if name in reply}, dict[str, str])
        if "kind" in conditions:
            check_kind(conditions["kind"])
        answer = read_answer({name: reply[name] for name in reply if name not in _CONDITIONS})
        if not isinstance(answer, Struct):
            encode_canonical(answer)
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"{place}: {error}; it has kind and contains, texts, and a value or a failure"
        ) from None
    except Rejection as rejection:
        raise ConfigurationError(f"{place}: {rejection.what}") from None
    return CannedReply(answer, **conditions)


class Replier:
    """Replies to the jobs of a node's chain with what it knows. It belongs to the event loop."""

    def __init__(
        self,
        replies: tuple[CannedReply, ...],
        start_runner: Callable[[int], Awaitable[Hash32]],
        reply: Callable[[int, JobAnswer], Awaitable[Hash32]],
    ) -> None:
        """Take the replies, and what sends them."""
        self._replies = replies
        self._start_runner = start_runner
        self._reply = reply
        self._known: set[int] = set()

    def answers(self, view: ChainView, *, has_gone_back: bool = False) -> dict[int, CannedReply]:
        """Return what answers the open jobs of a view, by their numbers; each once, unless the chain has gone back."""
        if has_gone_back:
            self._known.clear()
        if not runner_of(view).waiting:
            return {}
        fresh = [job for job in list_jobs(view, OPEN) if job.job not in self._known]
        self._known.update(job.job for job in fresh)
        fitting = ((job.job, next((each for each in self._replies if each.fits(job)), None)) for job in fresh)
        return {number: reply for number, reply in fitting if reply is not None}

    async def send(self, answers: Mapping[int, CannedReply], *, starts_runner: bool = False) -> None:
        """Give the chain a runner, if it is to, and send replies in order; what is refused is logged."""
        with suppress(StoppingError):
            if starts_runner:
                await self._start_runner(JOBS_MAX)
            for number, canned in answers.items():
                try:
                    await self._reply(number, canned.answer)
                except Rejection as rejection:
                    log().warning("runner job without a reply", job=number, reason=rejection.what)
