"""The fairness window in state: how often each actor, or each deployer's actors, fired within the last blocks.

Every block with a fire leaves one record of who fired how often. The records of the window are numbered without gaps;
the oldest goes when its block has left the window. An actor's total is kept with its account, and how many actors have
each total in one histogram, from which the network median is read. Spec: CIP-1v3 §8. Decision: D-52.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from trailboss.execution.session import BlockSession, ReadableChain
from trailboss.governance.markets import FAIRNESS_KEY, SMOOTHED_KEY
from trailboss.governance.parameters import Read
from trailboss.governance.rules import Rules
from trailboss.mechanisms.fee_lane.weight import WHOLE, lower_median, smoothed
from trailboss.model.configs import BlockFires, FairnessTotals, SmoothedMedian, encode_record, held, stored
from trailboss.params.records import LaneParams
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Address
from trailboss.state.keys import config_key

_RECORD: Final = b"system:lane:fires:"


def fires_key(number: int) -> bytes:
    """Return the state key of the window's block record of that number."""
    return config_key(_RECORD + number.to_bytes(8, "big"))


def read_totals(read: Read) -> FairnessTotals:
    """Return the window's sums as the state has them."""
    return stored(read, FAIRNESS_KEY, FairnessTotals) or FairnessTotals()


def read_fires(read: Read, number: int) -> BlockFires:
    """Return the window's block record of that number, which the state holds."""
    return held(read, fires_key(number), BlockFires, f"block record {number} of the fairness window")


def leave_window(session: BlockSession) -> FairnessTotals:
    """Remove the blocks that have left the window, and return its sums. Spec: CIP-1v3 §3 step 10.

    Complexity: O(1) a fire that leaves, and O(distinct totals) a block; at most ``window_blocks_left_max`` blocks.
    """
    lane = session.context.rules.params.lane
    last_outside = session.context.height - lane.fairness_window_blocks
    totals = read_totals(session.overlay.read)
    counts = Counter(dict(totals.counts))
    first = totals.first
    while first < min(totals.next, totals.first + lane.window_blocks_left_max):
        record = read_fires(session.overlay.read, first)
        if record.height > last_outside:
            break
        for actor, fires in record.fires:
            _add(session, counts, actor, -fires)
        session.overlay.delete(fires_key(first))
        first += 1
    if first != totals.first:
        totals = FairnessTotals(first, totals.next, _sorted(counts))
        session.overlay.write(FAIRNESS_KEY, encode_record(totals))
    return totals


def count_fires(session: BlockSession, fires: Mapping[bytes, int]) -> None:
    """Count the block's fires, by the accounts that they count for, after them. Spec: CIP-1v3 §3 step 10.

    Complexity: as `leave_window`.
    """
    if not fires:
        return
    totals = read_totals(session.overlay.read)
    counts = Counter(dict(totals.counts))
    for actor, count in fires.items():
        _add(session, counts, actor, count)
    record = BlockFires(session.context.height, tuple(sorted(fires.items())))
    session.overlay.write(fires_key(totals.next), encode_record(record))
    totals = FairnessTotals(totals.first, totals.next + 1, _sorted(counts))
    session.overlay.write(FAIRNESS_KEY, encode_record(totals))


def counted_for(session: BlockSession, actor: bytes) -> bytes:
    """Return the account that the fires of an actor count for: itself, or its deployer. Decision: D-106."""
    if not session.context.rules.params.lane.weight_per_deployer:
        return actor
    return session.ledger.account(actor).owner or actor


def next_median(lane: LaneParams, read: Read) -> int:
    """Return the network median of fires in the next block if nothing leaves, smoothed, in parts of 10⁻⁹."""
    before = _smoothed_before(read) if lane.fires_median_blocks > 1 else 0
    return smoothed(before, lower_median(read_totals(read).counts), lane.fires_median_blocks)


def move_median(session: BlockSession) -> int:
    """Return the network median of fires as this block weighs by it, to a whole fire, and keep it if it is smoothed.

    Spec: CIP-1v3 §8. Decision: D-106
    """
    lane, read = session.context.rules.params.lane, session.overlay.read
    median = next_median(lane, read)
    if lane.fires_median_blocks > 1 and median != _smoothed_before(read):
        session.overlay.write(SMOOTHED_KEY, encode_record(SmoothedMedian(median)))
    return whole_fires(median)


def whole_fires(median: int) -> int:
    """Return a median of fires in parts of 10⁻⁹ to the nearest whole fire, from which W(actor) follows."""
    return (median + WHOLE // 2) // WHOLE


def median_rests(rules: Rules, read: Read) -> bool:
    """Return whether a block without fires leaves the smoothed median as it is, if nothing leaves the window."""
    lane = rules.params.lane
    return lane.fires_median_blocks == 1 or next_median(lane, read) == _smoothed_before(read)


def _smoothed_before(read: Read) -> int:
    return (stored(read, SMOOTHED_KEY, SmoothedMedian) or SmoothedMedian(0)).fires


def first_to_leave(rules: Rules, read: Read) -> int | None:
    """Return the height of the block in which the oldest record leaves the window; None if there is no record."""
    totals = read_totals(read)
    if totals.first == totals.next:
        return None
    return read_fires(read, totals.first).height + rules.params.lane.fairness_window_blocks


def check_fairness(chain: ReadableChain) -> None:
    """Raise `InvariantError` unless the window fits the accounts."""
    read = chain.store.read
    totals = read_totals(read)
    records = [read_fires(read, number) for number in range(totals.first, totals.next)]
    counts = {address: account.recent_fires for address, account in chain.accounts() if account.recent_fires}
    check_window(totals, counts, records)


def _sorted(counts: Counter[int]) -> tuple[tuple[int, int], ...]:
    """Return how many actors have fired how often, ascending; those that have not fired are in no count."""
    return tuple(sorted((fires, actors) for fires, actors in counts.items() if fires and actors))


def _add(session: BlockSession, counts: Counter[int], actor: bytes, fires: int) -> None:
    account = session.ledger.account(actor)
    before, after = account.recent_fires, account.recent_fires + fires
    if after < 0:
        raise InvariantError(f"{Address(actor)} has {before} fires in the window, and {-fires} of them leave")
    session.ledger.put(actor, replace(account, recent_fires=after))
    counts[before] -= 1
    counts[after] += 1
    session.follower.recount(actor, after)


def check_window(totals: FairnessTotals, actors: dict[bytes, int], records: list[BlockFires]) -> None:
    """Raise `InvariantError` unless the window's sums fit its block records and the accounts' fires, zeros left out."""
    summed = Counter[bytes]()
    for record in records:
        summed.update(dict(record.fires))
    if summed != actors:
        actor = min(actor for actor in summed.keys() | actors.keys() if summed.get(actor) != actors.get(actor))
        raise InvariantError(
            f"{Address(actor)} has {actors.get(actor, 0)} fires in its account and {summed.get(actor, 0)} in the window"
        )
    if _sorted(Counter(actors.values())) != totals.counts:
        raise InvariantError(f"the fairness histogram {totals.counts} is not that of the accounts")
    heights = [record.height for record in records]
    if heights != sorted(heights):
        raise InvariantError("the block records of the fairness window are not in order of height")
