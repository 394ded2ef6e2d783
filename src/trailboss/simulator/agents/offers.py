"""What an agent offers for a timer: rows of a scenario, and the strategies that they describe.

All prices are base units a cycle. A surplus is what a fire is worth to its owner above the basefee of every fire.
"""

from collections import deque
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from trailboss.simulator.agents.base import Natural, Positive
from trailboss.simulator.orders import View

TIER_UNIT: Final = 10_000  # what 1.0 is for the multipliers of tiers
Percent = Annotated[int, Meta(ge=0, le=10_000)]


class Fees(NamedTuple):
    """A cap, of all that is paid above the basefee of every fire, and a tip within it; None for the default."""

    cap: int | None = None
    tip: int | None = None


class Strategy:
    """What one agent offers; by default what the protocol does for who states no fees."""

    def fees(self, view: View, surplus: int) -> Fees:
        """Return what it offers for a timer with a surplus, at least 0."""
        del view, surplus
        return Fees()

    def see_block(self, view: View) -> None:
        """Note what there is to see before a block."""

    def see_end(self, late: int | None) -> None:
        """Note by how many blocks a fire of its own was late; None for a timer that expired."""


class OfferRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """The field ``offer`` of an agent."""

    @property
    def needs_value(self) -> bool:
        """Whether it follows from what a fire is worth."""
        return False

    def strategy(self) -> Strategy:
        """Return the strategy of one agent."""
        return Strategy()


class DefaultOffer(OfferRow, frozen=True, kw_only=True, tag="default"):
    """States no fees: twice the basefee, and the median tip of the block before. Spec: CIP-1v3 §7.1."""


class TierOffer(OfferRow, frozen=True, kw_only=True, tag="tier"):
    """The median tip of the block before, times the multiplier of a priority tier. Spec: CIP-1v3 §7.3."""

    multiplier: Natural = (
        TIER_UNIT  # in parts of `TIER_UNIT`: economy 8,000, standard 10,000, fast 15,000, urgent 25,000
    )

    def strategy(self) -> Strategy:
        """Return the strategy of one agent."""
        return _Tier(self.multiplier)


class FixedOffer(OfferRow, frozen=True, kw_only=True, tag="fixed"):
    """The same fees always."""

    cap: Natural | None = None
    tip: Natural | None = None

    def strategy(self) -> Strategy:
        """Return the strategy of one agent."""
        return _Fixed(Fees(self.cap, self.tip))


class TruthfulOffer(OfferRow, frozen=True, kw_only=True, tag="truthful"):
    """All that a fire is worth."""

    @property
    def needs_value(self) -> bool:
        """It is the value."""
        return True

    def strategy(self) -> Strategy:
        """Return the strategy of one agent."""
        return _Truthful()


class BestResponse(OfferRow, frozen=True, kw_only=True, tag="best_response"):
    """Just above the least tip that fired in the last blocks if others waited, else above 0; up to its value."""

    above: Positive = 1  # base units a cycle by which it is above
    blocks: Annotated[int, Meta(ge=1, le=1_000)] = 1  # that it looks back; the dearest of them counts

    @property
    def needs_value(self) -> bool:
        """The value bounds it."""
        return True

    def strategy(self) -> Strategy:
        """Return the strategy of one agent."""
        return _BestResponse(self)


class LearnedOffer(OfferRow, frozen=True, kw_only=True, tag="learner"):
    """A tip that rises after a block with a late fire or an expiry of its own, and falls after prompt ones."""

    first: Natural = 0  # tip that it begins with
    step: Positive = 100  # base units by which the tip rises at least
    rise: Percent = 25  # percent of the tip
    fall: Annotated[int, Meta(ge=0, le=100)] = 5  # percent of the tip
    prompt: Natural = 0  # blocks by which a fire may come after its height and is not late to it

    @property
    def needs_value(self) -> bool:
        """The value bounds it."""
        return True

    def strategy(self) -> Strategy:
        """Return the strategy of one agent."""
        return _Learner(self)


AnyOffer = DefaultOffer | TierOffer | FixedOffer | TruthfulOffer | BestResponse | LearnedOffer


class _Tier(Strategy):
    def __init__(self, multiplier: int) -> None:
        self._multiplier = multiplier

    def fees(self, view: View, surplus: int) -> Fees:
        del surplus
        return Fees(None, view.previous_tip * self._multiplier // TIER_UNIT)


class _Fixed(Strategy):
    def __init__(self, fees: Fees) -> None:
        self._fees = fees

    def fees(self, view: View, surplus: int) -> Fees:
        del view, surplus
        return self._fees


class _Truthful(Strategy):
    def fees(self, view: View, surplus: int) -> Fees:
        del view
        return Fees(surplus, surplus)


class _BestResponse(Strategy):
    def __init__(self, row: BestResponse) -> None:
        self._above = row.above
        self._seen = deque([0], row.blocks)

    def fees(self, view: View, surplus: int) -> Fees:
        del view
        return Fees(surplus, min(max(self._seen) + self._above, surplus))

    def see_block(self, view: View) -> None:
        self._seen.append(view.marginal_tip)


class _Learner(Strategy):
    def __init__(self, row: LearnedOffer) -> None:
        self._row, self._tip = row, row.first
        self._most = 0  # greatest surplus so far; no tip above it changes anything
        self._prompt = self._late = False

    def fees(self, view: View, surplus: int) -> Fees:
        del view
        self._most = max(self._most, surplus)
        return Fees(surplus, min(self._tip, surplus))

    def see_block(self, view: View) -> None:
        del view
        # One step a block, however many timers ended in it.
        row, tip = self._row, self._tip
        if self._late:
            self._tip = min(tip + max(row.step, tip * row.rise // 100), self._most)
        elif self._prompt:
            self._tip = tip * (100 - row.fall) // 100
        self._prompt = self._late = False

    def see_end(self, late: int | None) -> None:
        is_prompt = late is not None and late <= self._row.prompt
        self._prompt |= is_prompt
        self._late |= not is_prompt
