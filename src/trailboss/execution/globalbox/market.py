"""Globalbox around the deliveries: what it opens with, and what it leaves for the next block."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from msgspec.structs import replace

from trailboss.execution.globalbox.records import collect_ended, mailbox_entries, read_globalbox, write_globalbox
from trailboss.execution.hooks import OpenMarket
from trailboss.execution.session import BlockSession
from trailboss.execution.timers import load_timer
from trailboss.governance.markets import CARRIED_HITS_KEY
from trailboss.governance.parameters import Read
from trailboss.governance.rules import Rules
from trailboss.mechanisms.base import Rest
from trailboss.mechanisms.context import GlobalboxMarket
from trailboss.model.configs import decode_record, encode_record
from trailboss.model.globalbox import (
    CarriedHit,
    CarriedHits,
    GlobalboxState,
    bid_octets,
    bid_of,
    standing_octets,
    standing_of,
)

AGE_WEIGHT_SHIFT: Final = 64
"""From units of 2⁻³², in which W_age is governed, to those of 2⁻⁹⁶, in which scores are counted."""


def open_globalbox(session: BlockSession) -> OpenMarket:
    """Open Globalbox: the age clock, what is modified, and what the block may materialize.

    Spec: CIP-5old §7.1, CIP-5old §8, CIP-5old §13. Decision: D-61, D-65
    """
    rules = session.context.rules
    params, weight = rules.params.globalbox, age_weight(rules)
    # As of now: the block's transactions have cancelled timers and set others.
    state = read_globalbox(session.overlay.read)
    if weight != bid_of(state.age_weight):
        state = replace(
            state,
            clock=standing_octets(clock_at(state, rules.height, weight)),
            clock_height=rules.height,
            age_weight=bid_octets(weight),
        )
        write_globalbox(session, state)
    # Slots that change from here on count in the next block.
    mark = session.overlay.mark()
    market = GlobalboxMarket(
        max_cycles_per_fire=rules.timer.max_cycles_per_fire,
        age_weight=weight,
        bid_weight=params.bid_weight,
        clock=clock_at(state, rules.height, weight),
        max_fires=params.max_fires_per_block,
        max_fires_per_target=params.max_fires_per_target,
        hits_max=params.hits_max,
        modified=_merged(
            read_carried(session.overlay.read), (CarriedHit(key, 0, rules.height) for key in _changed_keys(session, 0))
        ),
        timer_of=partial(load_timer, session),
        entries=partial(mailbox_entries, session.overlay.read),
    )
    return OpenMarket(market, partial(close_globalbox, session, mark))


def close_globalbox(session: BlockSession, mark: int, rest: Rest) -> None:
    """Carry over what the next block counts as modified, and collect ended timers.

    Spec: CIP-5old §7.1, CIP-5old §14. Decision: D-31, D-64, D-65
    """
    height, is_watched = session.context.height, session.follower.is_watched
    carried = _merged(
        rest.carried, (CarriedHit(key, 0, height + 1) for key in _changed_keys(session, mark) if is_watched(key))
    )
    if carried:
        session.overlay.write(CARRIED_HITS_KEY, encode_record(CarriedHits(carried)))
    elif session.overlay.read(CARRIED_HITS_KEY) is not None:
        session.overlay.delete(CARRIED_HITS_KEY)
    collect_ended(session)


def globalbox_rests(rules: Rules, read: Read) -> bool:
    """Return whether a block without transactions leaves Globalbox as it is while nothing falls due."""
    state = read_globalbox(read)
    is_empty = state.queued == 0 and state.first == state.next and not read_carried(read)
    return is_empty and age_weight(rules) == bid_of(state.age_weight)


def age_weight(rules: Rules) -> int:
    """Return W_age, as in force in a block, in units of 2⁻⁹⁶ a block. Spec: CIP-5old §8.1."""
    return rules.params.globalbox.age_weight << AGE_WEIGHT_SHIFT


def clock_at(state: GlobalboxState, height: int, weight: int) -> int:
    """Return the age clock in a block: the sum of the W_age of all blocks up to it, in units of 2⁻⁹⁶. Decision: D-61.

    The state has the clock as of the last change of W_age, or as of this block; ``weight`` is W_age in this block.
    """
    clock, passed = standing_of(state.clock), height - state.clock_height
    return clock + (bid_of(state.age_weight) * (passed - 1) + weight if passed else 0)


def read_carried(read: Read) -> tuple[CarriedHit, ...]:
    """Return the keys that count as modified in the next block besides, ascending."""
    octets = read(CARRIED_HITS_KEY)
    return () if octets is None else decode_record(octets, CarriedHits).hits


def _changed_keys(session: BlockSession, mark: int) -> list[bytes]:
    """Return the keys, address and slot name, whose values have changed since a mark, ascending."""
    return [address + name for address, name in session.overlay.changed_slots(mark)]


def _merged(old: Iterable[CarriedHit], new: Iterable[CarriedHit]) -> tuple[CarriedHit, ...]:
    """Return both, ascending by key; of a key modified anew all watches hear."""
    by_key = {hit.key: hit for hit in old} | {hit.key: hit for hit in new}
    return tuple(by_key[key] for key in sorted(by_key))
