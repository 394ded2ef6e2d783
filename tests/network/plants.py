"""Faults to plant in one member of a network: each must be noticed by a schedule."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from tests.network.members import RestartingMember, with_params
from trailboss.network.application import OK
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.timer_queue.queue import TimerQueue

LATE_NS = 999_999
NO = Rejection(RejectionReason.INVALID_DATA, "no")


class _BackwardQueue(TimerQueue):
    """Walks what is due from its end."""

    __slots__ = ()

    def due(self, *args: Any, **named: Any) -> Iterator[tuple[int, int, bytes]]:
        return iter([*super().due(*args, **named)][::-1])


class _StubbornQueue(TimerQueue):
    """Does not go back with its chain."""

    __slots__ = ()

    def rewind(self, _: int) -> None:
        """Keep what a forgotten block has changed."""


def _fee_account(member: RestartingMember) -> None:
    """Pay all tips to one validator."""
    accounts = member.application._fee_accounts
    accounts.update(dict.fromkeys(accounts, next(iter(accounts.values()))))


def _later_time(member: RestartingMember) -> None:
    """Round the time up to whole milliseconds."""
    finalize = member.application.finalize
    member.application.finalize = lambda height, time_ns, *rest: finalize(height, time_ns + LATE_NS, *rest)


def _own_results(member: RestartingMember) -> None:
    """Answer that what has reverted went well."""
    finalize = member.application.finalize

    def answer(*args: Any) -> Any:
        results, app_hash = finalize(*args)
        return [replace(each, code=OK) for each in results], app_hash

    member.application.finalize = answer


def _own_mempool(member: RestartingMember) -> None:
    """Leave out of a block what this member has not seen before."""
    application = member.application
    decode = application._decode

    def known(transactions: Any) -> Any:
        results, decoded = decode(transactions)
        return results, [(place, each) for place, each in decoded if application.still_waits(transactions[place])]

    application._decode = known


def _own_randomness(member: RestartingMember) -> None:
    """Draw from another state than the one before the block."""
    chain = member.chain
    next_context = chain.next_context
    chain.next_context = lambda *args, **named: replace(next_context(*args, **named), parent_state_root=bytes(32))


def _hasty_seal(member: RestartingMember) -> None:
    """Make a block durable in FinalizeBlock."""
    chain = member.chain
    stage, seal = chain.stage, chain.seal

    def stage_and_seal(*args: Any, **named: Any) -> Any:
        applied = stage(*args, **named)
        seal(applied)
        return applied

    chain.stage, chain.seal = stage_and_seal, lambda _: None


def _stale_standing(member: RestartingMember) -> None:
    """Forget the last block when asked for it after a start."""
    height, app_hash = member.application.standing()
    standing = member.application.standing
    answers = [(height - 1, app_hash)] if height > 1 else []
    member.application.standing = lambda: answers.pop() if answers else standing()


def _lying_chunks(member: RestartingMember) -> None:
    """Offer snapshots of which no chunk is right."""
    load = member.snapshots.load_chunk

    def load_wrong(request: Any, answer: Any) -> None:
        load(request, answer)
        answer.chunk = bytes(len(answer.chunk))

    member.snapshots.load_chunk = load_wrong


def _other_snapshot(member: RestartingMember) -> None:
    """List snapshots of another state."""
    list_snapshots = member.snapshots.list_snapshots

    def list_others(request: Any, answer: Any) -> None:
        list_snapshots(request, answer)
        for each in answer.snapshots:
            each.hash = bytes(len(each.hash))

    member.snapshots.list_snapshots = list_others


def _set(part: str, name: str, value: Any) -> Callable[[RestartingMember], None]:
    return lambda member: setattr(getattr(member, part), name, value)


PLANTS: Mapping[str, tuple[Callable[[RestartingMember], object], str]] = MappingProxyType(
    {
        "a price": (lambda member: with_params(member, costs={"transfer": 5_001}), "gives the (app hash|results)"),
        "a price of every frame": (
            lambda member: with_params(member, costs={"frame_base": 10_001}),
            "gives the (app hash|results)",
        ),
        "a life": (lambda member: with_params(member, timers={"max_ttl_blocks": 11}), "gives the (app hash|results)"),
        "fee account": (_fee_account, "gives the app hash"),
        "time": (_later_time, "gives the app hash"),
        "order of fires": (lambda member: setattr(member.chain.queue, "__class__", _BackwardQueue), "app hash"),
        "randomness": (_own_randomness, "gives the app hash"),
        "results": (_own_results, "gives the results"),
        "mempool": (_own_mempool, "gives the (app hash|results)|StopIteration"),
        "signatures": (_set("application", "still_waits", lambda _: True), "gives the (app hash|results)"),
        "votes": (_set("application", "check_proposal", lambda _: None), "votes for a hostile proposal"),
        "refusals": (_set("application", "check_proposal", lambda _: NO), "votes against an honest|reasons differ"),
        "durable before Commit": (_hasty_seal, "gives the app hash|has committed block"),
        "no way back": (_set("builder", "forget", lambda: None), "InvariantError"),
        "queue": (lambda member: setattr(member.chain.queue, "__class__", _StubbornQueue), "InvariantError|app hash"),
        "memory": (lambda member: setattr(member.chain._mechanisms, "rewind", lambda: None), "InvariantError|app hash"),
        "standing": (_stale_standing, "stands at|finalizes block"),
        "chunks of a snapshot": (_lying_chunks, "answers 3 to chunk"),
        "snapshots": (_other_snapshot, "has another snapshot of block"),
        "silence": (_set("builder", "_announce", lambda _: None), "ended because None"),
    }
)
"""What is done to a member whenever its process starts, and how the failure of a schedule names it."""
