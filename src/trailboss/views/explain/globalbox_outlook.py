"""What comes next for a live timer of Globalbox: where its fire stands, what is before it, whether it can be paid for.

Spec: CIP-5old §8.3, CIP-5old §10
"""

from collections.abc import Sequence

from trailboss.chain.reader import ChainReader
from trailboss.execution.globalbox.records import is_executing
from trailboss.fees.settlement import Prices, max_cost
from trailboss.governance.rules import Rules
from trailboss.model.globalbox import FRACTION_BITS, bid_of
from trailboss.model.terms import GlobalboxTerms, QueuedFire, Trigger
from trailboss.model.timers import Timer
from trailboss.primitives.octets import Address
from trailboss.primitives.units import Cycles, Price, format_cby
from trailboss.views.mechanism.globalbox_records import MailboxView, globalbox_of, key_words, mailbox_of


def globalbox_outlook(chain: ChainReader, timer: Timer, terms: GlobalboxTerms) -> str:
    """Return what comes next for a live timer of Globalbox, in words.

    Complexity: O(live timers) if a fire of it is queued, for its place; O(entries of the mailbox) if one is there.
    """
    rules, parts = chain.rules(), []
    if terms.in_mailbox:
        parts.append(_in_mailbox(rules, timer, mailbox_of(chain)))
    if terms.fire is not None:
        parts.append(_in_queue(chain, rules, timer, terms.fire))
    if not parts:
        parts.append(_to_come(chain, rules, timer, terms))
    if is_executing(timer):
        parts.append(f"it has been paid for, and what it does not use returns to {Address(timer.fee_payer)}")
    else:
        parts.append(_money_words(chain, rules, timer, terms))
    return "; ".join(parts)


def _in_mailbox(rules: Rules, timer: Timer, entries: Sequence[MailboxView]) -> str:
    own = [entry.deliver_seq for entry in entries if entry.timer_id == timer.timer_id]
    ahead = [entry for entry in entries if entry.deliver_seq < own[0]]
    cycles = sum(entry.gas_limit for entry in ahead)
    which = f"delivery {own[0]}" if len(own) == 1 else f"{len(own):,} deliveries, the first of them {own[0]},"
    behind = f"behind {len(ahead):,} with up to {cycles:,} cycles" if ahead else "as the first"
    return (
        f"{which} waits in the mailbox {behind}: they run strictly in order, and one block has "
        f"{rules.timer_cycles_max():,} cycles for them"
    )


def _in_queue(chain: ChainReader, rules: Rules, timer: Timer, fire: QueuedFire) -> str:
    views, box = globalbox_of(chain), rules.params.globalbox
    own = next(view for view in views if view.timer_id == timer.timer_id)
    blocks = max(-(-own.place // box.max_fires_per_block), own.ahead_of_target // box.max_fires_per_target + 1)
    hit = f", hit by a change of {', '.join(map(key_words, fire.matched_keys))}" if fire.matched_keys else ""
    return (
        f"its fire {own.fire_seq}{hit}, stands at place {own.place:,} of {len(views):,} in Globalbox since block "
        f"{fire.queued_at}, {own.ahead_of_target:,} of those before it for the same target: a block moves at most "
        f"{box.max_fires_per_block:,} to the mailbox, {box.max_fires_per_target:,} for one target, so that it leaves "
        f"in block {chain.height + blocks} if no fire comes before it"
    )


def _to_come(chain: ChainReader, rules: Rules, timer: Timer, terms: GlobalboxTerms) -> str:
    if timer.expires_at < rules.height:
        return f"is removed as expired: it could fire up to height {timer.expires_at}"
    if terms.kind is Trigger.STATE_WATCH:
        keys = ", ".join(map(key_words, terms.watch_keys))
        return f"fires when {keys} changes, up to height {timer.expires_at}"
    if timer.expires_at < timer.height:
        end = timer.expires_at + 1
        return f"expires unfired at height {end}: it may fire up to {timer.expires_at}, and is due at {timer.height}"
    if timer.height > chain.height:
        return f"enters Globalbox at height {timer.height}"
    return "is due and enters Globalbox in a later block: one block takes only so many"


def _money_words(chain: ChainReader, rules: Rules, timer: Timer, terms: GlobalboxTerms) -> str:
    bid, gas_limit = (terms.bid, timer.gas_limit) if terms.fire is None else (terms.fire.bid, terms.fire.gas_limit)
    cycle_basefee, cell_basefee = rules.timer_basefees()
    prices = Prices(cycle_basefee, cell_basefee, cycle_tip=Price(bid_of(bid) >> FRACTION_BITS))
    cost = max_cost(Cycles(gas_limit), rules.timer.max_cells_per_fire, prices)
    balance = chain.balance(timer.fee_payer)
    short = ", too little: at its turn the timer would end" if balance < cost else ""
    return (
        f"a fire costs up to {format_cby(cost)} CBY, {Address(timer.fee_payer)} holds {format_cby(balance)} CBY{short}"
    )
