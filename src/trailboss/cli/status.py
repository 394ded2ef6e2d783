"""``trailboss status``: where a chain stands."""

from datetime import UTC, datetime
from pathlib import Path

from trailboss.cli.directory import size_of
from trailboss.cli.opening import is_url, open_chain
from trailboss.cli.options import DIRECTORY, AsJson, Place
from trailboss.cli.output import print_facts, print_json
from trailboss.primitives.units import format_cby
from trailboss.views.json_values import plain
from trailboss.views.mechanism.auction_records import AuctionStatus
from trailboss.views.mechanism.globalbox_records import GlobalboxStatus
from trailboss.views.mechanism.lane_records import LaneStatus
from trailboss.views.status import ChainStatus, TimerCounts, status_of
from trailboss.views.text import counted

MILLISECONDS = 1_000


def status(place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Tell where the chain stands: height, roots, money, timers, size."""
    with open_chain(place) as chain:
        found = status_of(chain)
        size = None if is_url(place) else size_of(Path(place))
    if as_json:
        where = {"url": place} if size is None else {"directory": place}
        print_json({**where, **plain(found), **({} if size is None else {"bytes": size})})
    else:
        print_facts(_facts(found, place if size is None else f"{place}, {size:,} bytes"))


def _facts(found: ChainStatus, where: str) -> dict[str, str | int | None]:
    genesis = found.genesis
    return {
        "chain": where,
        "height": found.height,
        "time": time_words(found.timestamp_ms),
        "block": str(found.block_hash),
        "state root": str(found.state_root),
        "genesis": str(genesis.block_hash),
        "rules": f"chain id {genesis.chain_id}, preset {genesis.preset}, mechanism {_mechanism_words(found)}",
        "basefees": f"{found.basefees.cycle:,} a cycle, {found.basefees.cell:,} a cell",
        "lane": _lane_words(found.lane),
        "auction": _auction_words(found.auction),
        "Globalbox": _globalbox_words(found.globalbox),
        "money": f"{format_cby(found.supply)} CBY at genesis, {format_cby(found.burned)} burned since",
        "timers": _timer_words(found.timers, has_watches=found.globalbox is not None),
    }


def _timer_words(timers: TimerCounts, *, has_watches: bool) -> str:
    ended = (
        f"{timers.fired:,} fired, {timers.expired:,} expired, {timers.unfunded:,} unfunded, "
        f"{timers.cancelled:,} cancelled"
    )
    if not has_watches:
        return f"{timers.live:,} live; of {timers.scheduled:,} scheduled {ended}"
    # A state watch fires any number of times, and no fire ends it.
    return f"{timers.live:,} live, {counted(timers.fires, 'fire')}; of {timers.scheduled:,} set have ended: {ended}"


def _mechanism_words(found: ChainStatus) -> str:
    first, present = found.genesis.mechanism, found.mechanism
    return present if first == present else f"{present} since {found.lane.activation_height}, {first} before"


def _lane_words(lane: LaneStatus) -> str | None:
    if lane.basefee is None or lane.previous_tip is None:
        return f"begins at height {lane.activation_height}" if lane.activation_height else None
    burned = format_cby(lane.burned)
    return f"basefee {lane.basefee:,} a cycle, median tip {lane.previous_tip:,}, {burned} CBY burned by it"


def _auction_words(found: AuctionStatus | None) -> str | None:
    if found is None:
        return None
    return (
        f"epoch {found.epoch:,}, the next one begins at {found.next_epoch_at}; "
        f"{counted(found.waiting, 'timer')} {'waits' if found.waiting == 1 else 'wait'}, "
        f"{counted(found.actors, 'actor')} {'has' if found.actors == 1 else 'have'} a weight; "
        f"{found.budget_cycles:,} cycles a block"
    )


def _globalbox_words(found: GlobalboxStatus | None) -> str | None:
    if found is None:
        return None
    return (
        f"{counted(found.queued, 'fire')} queued, {found.mailbox:,} in the mailbox, of "
        f"{found.next_deliver_seq:,}; {counted(found.ended_remembered, 'ended timer')} remembered; "
        f"governance epoch {found.governance_epoch:,}, the next one begins at {found.next_governance_epoch_at}"
    )


def time_words(timestamp_ms: int) -> str:
    """Return a point in time as people write it; as a number if it lies in no year that the calendar has."""
    try:
        return f"{datetime.fromtimestamp(timestamp_ms // MILLISECONDS, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms:,} ms since 1970"
