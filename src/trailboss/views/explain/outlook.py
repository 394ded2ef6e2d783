"""What comes next for a live timer, as things stand: prices, its payer's money, what it offers or where it stands.

Decision: D-96
"""

from trailboss.chain.reader import ChainReader
from trailboss.fees import Prices, max_cost
from trailboss.model.timers import Timer
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import format_cby
from trailboss.views.mechanism.base import Outlook, OutlookKind, Trial, next_block_for
from trailboss.views.mechanism.registry import views_at, views_for
from trailboss.views.text import failure_words


def outlook(chain: ChainReader, timer: Timer, trial: Trial | None) -> Outlook:
    """Return what comes next for a live timer.

    Args:
        chain: Where.
        timer: The timer.
        trial: What its handler came to when it was tried; None if it was not.
    """
    found = views_at(chain, next_block_for(chain, timer)).outlook(chain, timer, trial)
    if trial is None or trial.failure is None:
        return found
    text = f"{found.text}; run as things stand, its handler reverts: {failure_words(trial.failure)}"
    return Outlook(OutlookKind.REVERTS, text)


def reserve_of(chain: ChainReader, timer: Timer) -> int:
    """Return what the next fire of a live timer reserves at the present basefees without a tip, base units.

    A fire that waits in the mailbox of Globalbox reserves nothing: it has been paid for.
    """
    rules, views = chain.rules(), views_for(chain)
    if views.is_paid(timer):
        return 0
    prices = Prices(*rules.timer_basefees(), lane_basefee=rules.market.surcharge)
    return max_cost(views.next_fire(rules, timer).gas_limit, rules.timer.max_cells_per_fire, prices)


def unpaid_words(chain: ChainReader, timer: Timer) -> str:
    """Return that the payer of a live timer holds less than its fire reserves, and how much; empty if it does not."""
    cost, balance = reserve_of(chain, timer), chain.balance(timer.fee_payer)
    if balance >= cost:
        return ""
    return (
        f"timer {Hash32(timer.timer_id)} cannot be paid as things stand: a fire costs up to {format_cby(cost)} CBY, "
        f"{Address(timer.fee_payer)} holds {format_cby(balance)} CBY"
    )
