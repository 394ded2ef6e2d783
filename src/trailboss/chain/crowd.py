"""Crowds on a development chain: strangers whose timers fill the cycles that fires share, or fall due all at once."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import count
from math import ceil
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain.development import DEPLOYER, development_account
from trailboss.chain.drafts import Terms, draft_deployment
from trailboss.chain.reader import ChainReader
from trailboss.chain.stock_timers import TimerOrder, booking_of, stock_source
from trailboss.codec.canonical import encode_canonical
from trailboss.execution.checks import gas_limit_bounds, invalid
from trailboss.model.actors import TIMER_SCHEDULE
from trailboss.model.transactions import DeployActor, ExecuteActor, Instruction, SetBalance
from trailboss.primitives.octets import Address
from trailboss.primitives.units import BASE_UNITS_PER_CBY

FUNDS: Final = 10**9 * BASE_UNITS_PER_CBY  # base units that each actor of a crowd gets
BOOKED_MAX: Final = 100  # timers that one transaction sets
BOOKING_CYCLES: Final = 40_000  # of a transaction that sets timers, without them
TIMER_CYCLES: Final = 4_000  # of each timer that it sets, at most
SPARE_CYCLES: Final = 2_000  # of a fire's gas limit that it leaves unused
TIMERS_MAX: Final = 4_000  # timers of one crowd: as many as one block can set
SMALL_FIRE: Final = 25_000  # gas limit of each timer of a storm at one height
BLOCKS: Final = 10  # blocks that a congestion fills by default
LOAD: Final = 2.0  # cycles that a crowd asks for, as a multiple of those that a block's fires may use
STORM_BLOCKS: Final = 10  # how many blocks' cycles a storm asks for, all at once
NUMBER: Final = 8  # bytes of a number in a payload


class Storm(StrEnum):
    """What falls due all at once."""

    EXPIRY = "expiry"  # more timers than a block can run, all of which expire after it
    UNFUNDED = "unfunded"  # timers whose payer has nothing
    SAME_HEIGHT = "same_height"  # many small timers
    OUTAGE = "outage"  # what should have fired in several blocks


class Wave(Struct, frozen=True, kw_only=True):
    """Timers of a crowd that are due at one height."""

    height: int
    count: int
    gas_limit: int  # cycles of each, of which it uses nearly all
    expires_at: int | None = None  # last height at which they may fire; None for the farthest


class Draft(Struct, frozen=True):
    """One transaction of a crowd."""

    instruction: Instruction
    terms: Terms = Terms()
    sender: str = DEPLOYER  # name of the development account that sends it

    @property
    def books(self) -> bool:
        """Whether it sets timers, whose ids it returns."""
        return isinstance(self.instruction, ExecuteActor)


def congestion(chain: ChainReader, blocks: int = BLOCKS, load: float = LOAD, start: int | None = None) -> list[Wave]:
    """Return waves that ask for ``load`` times the cycles of fires in each of some blocks.

    ``start`` is the first height; None for the first that the next block can schedule for.

    Raises:
        Rejection: ``INVALID_INPUT`` for no block, no load, more than `TIMERS_MAX` timers, or a height that is past.
    """
    if blocks < 1:
        raise invalid(f"a crowd of {blocks} blocks: at least 1")
    first, gas_limit = _first_height(chain, start), _gas_limit(chain)
    number = ceil(load * chain.rules().market.timer_cycles_max / gas_limit)
    return _checked([Wave(height=first + at, count=number, gas_limit=gas_limit) for at in range(blocks)])


def storm(chain: ChainReader, kind: str, blocks: int = STORM_BLOCKS, height: int | None = None) -> list[Wave]:
    """Return the wave of a storm: timers at one height that ask for the cycles of fires in so many blocks.

    Raises:
        Rejection: ``INVALID_INPUT`` for an unknown kind; otherwise as `congestion`.
    """
    if kind not in list(Storm):
        raise invalid(f"there is no storm {kind!r:.80}; there are {', '.join(Storm)}")
    if blocks < 1:
        raise invalid(f"a crowd of {blocks} blocks: at least 1")
    at = _first_height(chain, height)
    gas_limit = SMALL_FIRE if kind == Storm.SAME_HEIGHT else _gas_limit(chain)
    number = blocks * ceil(chain.rules().market.timer_cycles_max / gas_limit)
    expires_at = at if kind == Storm.EXPIRY else None
    return _checked([Wave(height=at, count=number, gas_limit=gas_limit, expires_at=expires_at)])


def draft_crowd(
    chain: ChainReader, waves: list[Wave], offer: Mapping[str, Any] | None = None, *, funded: bool = True
) -> list[Draft]:
    """Return the transactions that set the timers of waves, for one block, in order.

    The offer has fields of `TimerOrder` such as ``max_priority_fee_per_cycle``, ``max_fee_per_cycle`` and ``bid``. The
    actors of the crowd pay for their fires; with ``funded`` false they have nothing left when these are due.

    Raises:
        Rejection: ``INVALID_INPUT`` for an option that timers do not have under the chain's mechanism.
    """
    drafts: list[Draft] = []
    used: list[Address] = []
    most = chain.rules().timer.max_timers_per_actor
    actors = _actors(chain, most)
    deployment, actor, room = next(actors)
    for part in (part for wave in waves for part in _parts(wave, min(most, BOOKED_MAX))):
        while room < part.count:
            deployment, actor, room = next(actors)
        room -= part.count
        if actor not in used:
            used.append(actor)
            drafts += [] if deployment is None else [Draft(deployment)]
            drafts.append(Draft(SetBalance(actor, FUNDS)))
        drafts.append(_booking(chain, actor, part, offer or {}))
    if not funded:
        drafts += [Draft(SetBalance(actor, 0)) for actor in used]
    return drafts


def _actors(chain: ChainReader, most: int) -> Iterator[tuple[DeployActor | None, Address, int]]:
    """Yield a crowd's actors: the deployment that is missing, the address, and how many timers it may still set."""
    owner = development_account(DEPLOYER).address
    for number in count():
        source = stock_source("crowd.py")
        deployment, actor = draft_deployment(owner, source, b"crowd %d" % number, entitlements=[TIMER_SCHEDULE])
        account = chain.account(actor)
        is_there = account is not None and bool(account.code_hash)
        live = 0 if account is None else account.timer_count
        yield None if is_there else deployment, actor, most - live


def _booking(chain: ChainReader, actor: Address, wave: Wave, offer: Mapping[str, Any]) -> Draft:
    payload = fire_payload(wave.gas_limit, wave.gas_limit - SPARE_CYCLES)
    order = TimerOrder(
        height=wave.height, payload=payload, gas_limit=wave.gas_limit, expires_at=wave.expires_at, **offer
    )
    return draft_booking(chain, actor, order, wave.count)


def fire_payload(gas_limit: int, cycles: int, cells: int = 0, *, fails: bool = False) -> bytes:
    """Return the payload of a fire that uses so many cycles and cells, and may fail at its end."""
    return b"".join(each.to_bytes(NUMBER, "big") for each in (gas_limit, cycles, cells, fails))


def draft_booking(
    chain: ChainReader, actor: Address, order: TimerOrder, number: int = 1, *, owner: str = DEPLOYER
) -> Draft:
    """Return the owner's transaction that has an actor of a crowd set a timer, or several that are alike.

    Raises:
        Rejection: ``INVALID_INPUT`` for an option that timers do not have under the chain's mechanism.
    """
    booked = {**booking_of(chain, order, actor), "heights": [order.height] * number}
    cycles = BOOKING_CYCLES + TIMER_CYCLES * number
    return Draft(ExecuteActor(actor, "book", encode_canonical(booked)), Terms(cycles_limit=cycles), owner)


def _parts(wave: Wave, most: int) -> Iterator[Wave]:
    """Yield a wave in parts of so many timers at most, each for one transaction."""
    for booked in range(0, wave.count, most):
        yield replace(wave, count=min(most, wave.count - booked))


def _first_height(chain: ChainReader, height: int | None) -> int:
    least = chain.height + 2  # the next block sets them
    if height is None:
        return least
    if height < least:
        raise invalid(
            f"a crowd's timers are due from height {least} on, after the block that sets them, not at {height}"
        )
    return height


def _gas_limit(chain: ChainReader) -> int:
    """Return the greatest gas limit by which the cycles of a block's fires can be divided without much rest."""
    rules = chain.rules()
    most = min(gas_limit_bounds(rules)[1], rules.market.max_cycles_per_fire)
    return rules.market.timer_cycles_max // ceil(rules.market.timer_cycles_max / most)


def _checked(waves: list[Wave]) -> list[Wave]:
    total = sum(wave.count for wave in waves)
    if not 1 <= total <= TIMERS_MAX:
        raise invalid(f"a crowd has 1 to {TIMERS_MAX:,} timers, not {total:,}: ask for other blocks, or another load")
    return waves
