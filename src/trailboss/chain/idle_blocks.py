"""Until when nothing can happen on a chain, so that its blocks need not be opened."""

from trailboss.chain.reader import ChainReader
from trailboss.execution.mailbox import nothing_waits
from trailboss.execution.markets import MARKETS
from trailboss.mechanisms.base import Mechanism
from trailboss.timer_queue.queue import TimerQueue


def idle_until(chain: ChainReader, queue: TimerQueue, mechanism: Mechanism, limit: int) -> int:
    """Return the last height, up to a limit, until which nothing can happen without transactions.

    Nothing happens while no timer is due that could run and none ends, no message waits, the basefees rest, the lane is
    not activated and no block leaves its fairness window, and while Globalbox has nothing queued, carried, to collect
    or to change. The limit is not below the present height; the result is that height, or
    less, if the next block is not idle.
    """
    rules, height = chain.rules(), chain.store.height
    if not (rules.basefees_rest() and nothing_waits(chain.store.read)):
        return height
    hooks = MARKETS[rules.market.kind]
    if not hooks.rests(rules, chain.store.read):
        return height
    happens = [limit + 1, rules.changes_at]
    if queue.due_count:
        # Timers that no block can run any more, such as those above the lane's cap, wait for their expiry.
        expires_after = queue.next_expiry()
        if expires_after is None or not mechanism.only_wait(queue.due_count):
            return height
        happens.append(expires_after + 1)
    events = (queue.next_height_to_come(), mechanism.next_end(), hooks.next_event(rules, chain.store.read))
    happens += [each for each in events if each is not None]
    return min(happens) - 1


def awaits_blocks(chain: ChainReader) -> bool:
    """Return whether blocks are awaited that no transaction asks for: a timer lives, or a message waits.

    Decision: D-95
    Complexity: O(1).
    """
    return chain.timer_count() > 0 or not nothing_waits(chain.store.read)
