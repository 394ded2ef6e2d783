"""What comes next for a live timer, as things stand: prices, its payer's money, what it offers or where it stands.

Decision: D-96
"""

from msgspec import Struct

from trailboss.chain.reader import ChainReader
from trailboss.execution.globalbox.records import is_executing
from trailboss.fees.settlement import Prices, max_cost, offered_cell_tip, offered_tip
from trailboss.governance.markets import is_active
from trailboss.governance.rules import Rules
from trailboss.model.markets import MarketKind
from trailboss.model.terms import AuctionTerms, GlobalboxTerms
from trailboss.model.timers import Timer, asks_agent
from trailboss.primitives.errors import ErrorObject
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import Cycles, Price, format_cby
from trailboss.views.explain.globalbox_outlook import globalbox_outlook
from trailboss.views.mechanism.lane_records import lane_cap, lane_gas_limit
from trailboss.views.text import failure_words


class Trial(Struct, frozen=True):
    """What the handler of a live timer came to when it was tried on the present state.

    Attributes:
        failure: What its fire would revert with; None if it would end well.
    """

    failure: ErrorObject | None


class _Money(Struct, frozen=True):
    """What a fire costs at most, and what its payer holds, in base units."""

    cost: int
    balance: int
    words: str


def outlook(chain: ChainReader, timer: Timer, trial: Trial | None) -> str:
    """Return what comes next for a live timer, in words.

    Args:
        chain: Where.
        timer: The timer.
        trial: What its handler came to when it was tried; None if nobody has tried it.
    """
    words, failure = _course(chain, timer, trial), None if trial is None else trial.failure
    return words if failure is None else f"{words}; run as things stand, its handler reverts: {failure_words(failure)}"


def _course(chain: ChainReader, timer: Timer, trial: Trial | None) -> str:
    """Return what the chain will do with a timer, whatever its handler does."""
    rules, terms = chain.rules(), timer.terms
    if isinstance(terms, GlobalboxTerms):
        return globalbox_outlook(chain, timer, terms)
    when = max(timer.height, chain.height + 1)
    if timer.expires_at < when:
        return f"expires unfired at height {when}: it may fire up to {timer.expires_at} only"
    if isinstance(terms, AuctionTerms):
        return _in_auction(chain, rules, timer, when)
    if is_active(rules.params, when):
        return _in_lane(chain, rules, timer, when)
    money = _money(chain, timer, timer.gas_limit, Prices(*rules.timer_basefees()))
    if money.balance < money.cost:
        return f"removed unfunded at height {when} as things stand: {money.words}"
    waits = f"; it waits because of {timer.deferred_for}" if timer.deferred_for else ""
    fires = "is due" if trial is None else "fires" if trial.failure is None else "fires and reverts"
    return f"{fires} at height {when} as things stand: {money.words}{waits}"


def reserve_of(rules: Rules, timer: Timer) -> int:
    """Return what the next fire of a live timer reserves at the present basefees without a tip, base units.

    One that waits in the mailbox of Globalbox reserves nothing: it has been paid for.
    """
    if is_executing(timer):
        return 0
    terms = timer.terms
    fire = terms.fire if isinstance(terms, GlobalboxTerms) else None
    gas_limit = timer.gas_limit if fire is None else fire.gas_limit
    if rules.market.kind is MarketKind.LANE:
        gas_limit = Cycles(lane_gas_limit(rules, gas_limit, timer.schedule_block))
    lane_basefee = rules.market.surcharge
    prices = Prices(*rules.timer_basefees(), lane_basefee=lane_basefee)
    return max_cost(gas_limit, rules.timer.max_cells_per_fire, prices)


def unpaid_words(chain: ChainReader, timer: Timer) -> str:
    """Return that the payer of a live timer holds less than its fire reserves, and how much; empty if it does not."""
    cost, balance = reserve_of(chain.rules(), timer), chain.balance(timer.fee_payer)
    if balance >= cost:
        return ""
    return (
        f"timer {Hash32(timer.timer_id)} cannot be paid as things stand: a fire costs up to {format_cby(cost)} CBY, "
        f"{Address(timer.fee_payer)} holds {format_cby(balance)} CBY"
    )


def _in_lane(chain: ChainReader, rules: Rules, timer: Timer, when: int) -> str:
    """Return what comes next under the lane, which may begin only later. Spec: CIP-1v3 §3."""
    cap, gas_limit = lane_cap(rules), lane_gas_limit(rules, timer.gas_limit, timer.schedule_block)
    basefee, previous_tip = rules.market.basefee, rules.market.previous_tip
    if gas_limit > cap:
        return (
            f"waits until it expires after height {timer.expires_at}: its gas limit of {gas_limit:,} is above the "
            f"{cap:,} cycles that one fire may use in the timer lane; cancel it and schedule it again with less"
        )
    max_fee, priority = timer.frozen_fees() or (2 * basefee, previous_tip)
    if max_fee < basefee:
        return (
            f"priced out as things stand: its max_fee of {max_fee:,} is below the lane basefee of {basefee:,}; it "
            f"waits for a lower one until it expires after height {timer.expires_at}"
        )
    account = chain.account(timer.actor)
    agent = timer.own_agent or (b"" if account is None else account.agent)
    is_asked = asks_agent(timer.fees) and bool(agent)
    tip = Price(0 if is_asked else min(priority, max_fee - basefee))
    cycle_basefee, cell_basefee = rules.timer_basefees()
    prices = Prices(cycle_basefee, cell_basefee, cycle_tip=tip, lane_basefee=basefee)
    money = _money(chain, timer, gas_limit, prices, besides=" and the tip" if is_asked else "")
    if money.balance < money.cost:
        return f"removed unfunded at its turn, at height {when} or later, as things stand: {money.words}"
    offer = "what its agent answers" if is_asked else f"a tip of {tip:,} a cycle"
    price = f"a cycle costs {cycle_basefee:,} + {basefee:,} for the lane + {'the tip' if is_asked else f'{tip:,} tip'}"
    return f"competes at height {when} with {offer}, as things stand: {price}, {money.words}"


def _in_auction(chain: ChainReader, rules: Rules, timer: Timer, when: int) -> str:
    """Return what comes next under the auction, in which nothing expires. Spec: CIP-1v1 §3. Decision: D-57, D-60."""
    cycle_basefee, cell_basefee = rules.timer_basefees()
    standing = timer.frozen_fees()
    max_fee, priority = standing or (2 * cycle_basefee, 0)
    whose = "its standing bid" if standing else "the default bid"
    if max_fee < cycle_basefee:
        return (
            f"priced out as things stand: {whose} of up to {max_fee:,} a cycle is below the cycle basefee of "
            f"{cycle_basefee:,}; it waits for a lower one, or for its agent to bid more when it is asked again"
        )
    cell_fees = timer.cell_fees()
    cell_tip = offered_cell_tip(cell_fees, cell_basefee)
    if cell_fees is not None and cell_tip < 0:
        return (
            f"priced out as things stand: {whose} of up to {cell_fees[0]:,} a cell is below the cell basefee of "
            f"{cell_basefee:,}; it waits for its agent to bid more when it is asked again"
        )
    tip = Price(offered_tip(max_fee, priority, cycle_basefee))
    money = _money(chain, timer, timer.gas_limit, Prices(cycle_basefee, cell_basefee, tip, cell_tip))
    if money.balance < money.cost:
        return f"waits at height {when} as things stand, until its owner can pay: {money.words}"
    late = "; it is late, and has been told so" if isinstance(timer.terms, AuctionTerms) and timer.terms.is_late else ""
    offer = f"{whose} of up to {max_fee:,} a cycle, {tip:,} of it as a tip, unless its agent bids otherwise before"
    return f"competes at height {when} with {offer}, as things stand: {money.words}{late}"


def _money(chain: ChainReader, timer: Timer, gas_limit: int, prices: Prices, besides: str = "") -> _Money:
    cost = max_cost(Cycles(gas_limit), chain.rules().timer.max_cells_per_fire, prices)
    balance = chain.balance(timer.fee_payer)
    holds = f"{Address(timer.fee_payer)} holds {format_cby(balance)} CBY"
    return _Money(cost, balance, f"a fire costs up to {format_cby(cost)} CBY{besides}, {holds}")
