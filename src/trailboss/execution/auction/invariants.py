"""What must hold of the auction's records after every block, checked the slow way."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from trailboss.execution.auction.standings import find_actors, read_epoch
from trailboss.execution.hooks import ReadableChain
from trailboss.model.auction import AuctionActor, AuctionEpoch
from trailboss.model.configs import is_outside
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Address


def check_auction(chain: ReadableChain) -> None:
    """Raise `InvariantError` unless the actors' records fit the timers that wait."""
    rules = chain.rules()
    outside = partial(is_outside, rules.gaps or (), rules.barred)
    due = chain.timers(last=chain.store.height)
    joined = (timer for timer in due if not outside(timer.fee_payer, (timer.height, timer.sequence)))
    waiting = Counter(timer.actor for timer in joined)
    check_standings(dict(find_actors(chain)), waiting, partial(read_epoch, chain.store.read))


def check_standings(
    actors: Mapping[bytes, AuctionActor], waiting: Mapping[bytes, int], epoch_of: Callable[[int], AuctionEpoch]
) -> None:
    """Raise `InvariantError` unless the actors' records fit their waiting timers, and the epochs' sums the records.

    Decision: D-58, D-59
    """
    for address in sorted(actors.keys() | waiting.keys()):
        counts = actors[address].waiting if address in actors else 0
        if counts != waiting.get(address, 0):
            raise InvariantError(
                f"the auction counts {counts} waiting timers of {Address(address)} and has {waiting.get(address, 0)}"
            )
    for epoch, places in sorted(Counter(record.epoch for record in actors.values()).items()):
        sums = epoch_of(epoch)
        if sums.actors != places:
            raise InvariantError(f"the auction's epoch {epoch} counts {sums.actors} actors and has {places}")
        used = sum(record.cycles_used for record in actors.values() if record.epoch == epoch)
        if used > sums.cycles_used:
            raise InvariantError(
                f"actors used {used} cycles of the auction's epoch {epoch}, which counts {sums.cycles_used}"
            )
