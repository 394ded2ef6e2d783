"""Who gets and who pays: burn, the proposer's revenue, and what fires pay beyond what they had to."""

from typing import Final

from trailboss.simulator.metrics.statistics import Moments
from trailboss.simulator.orders import BlockResult, Fire, Schedule

BLOCKS_KEPT: Final = 1_024  # whose lowest offers are known to later fires


def worth(order: Schedule, late: int) -> int:
    """Return what a fire is worth to its owner, base units; one that is drawn to fail is worth nothing."""
    return 0 if order.fails else max(order.value - order.decay * late, 0)


def worth_of(fire: Fire) -> int:
    """Return what a fire was worth to its owner, base units; one that reverted was worth nothing."""
    return worth(fire.plan.order, fire.late) if fire.is_ok else 0


class MoneyMeasure:
    """What blocks burn, and what they bring their proposers."""

    def __init__(self) -> None:
        self._burned, self._tips = Moments(), Moments()

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        self._burned.add(block.burned)
        self._tips.add(block.tips)

    def values(self) -> dict[str, float]:
        """Return mean and variance of a block."""
        return {
            "burn_mean": self._burned.mean,
            "burn_variance": self._burned.variance,
            "revenue_mean": self._tips.mean,
            "revenue_variance": self._tips.variance,
        }


class Offers:
    """The lowest offers that won in each of the last blocks: payment and cycles of the fire that made them."""

    def __init__(self) -> None:
        self.tips: dict[int, tuple[int, int]] = {}  # heights to the lowest tip a cycle
        self.payments: dict[int, tuple[int, int]] = {}  # heights to the lowest payment a cycle, what is burned included

    def see(self, block: BlockResult) -> None:
        """Note the lowest offers of a block, if it has a fire that used anything."""
        height = block.view.height
        self.tips.pop(height - BLOCKS_KEPT, None)
        self.payments.pop(height - BLOCKS_KEPT, None)
        tips, payments = list[tuple[float, int, int]](), list[tuple[float, int, int]]()
        for fire in block.fires:
            cycles, tip = fire.cycles_used, fire.tip
            if cycles:
                paid = fire.burned + tip
                tips.append((tip / cycles, tip, cycles))
                payments.append((paid / cycles, paid, cycles))
        if tips:
            self.tips[height], self.payments[height] = min(tips)[1:], min(payments)[1:]


class BidMeasure:
    """What fires pay, and what they would have had for the lowest offers that won.

    A fire overpays what its tip is above the lowest tip a cycle of a fire of its block. Its regret is what its owner
    would have had more, worth less payment, had it paid the lowest payment a cycle of its block, or that of the block
    in which it was due and not been late, whichever is better; the fires of 1,024 blocks are known.
    """

    def __init__(self, offers: Offers | None = None) -> None:
        """Let it read the lowest offers of others, which see each block first; or keep its own."""
        self._reads = offers
        self._offers = offers or Offers()
        self._fires = self._burned = self._tips = 0
        self._overpayment = self._regret = 0.0

    def see(self, block: BlockResult) -> None:
        """Count a block."""
        if self._reads is None:
            self._offers.see(block)
        payments, height = self._offers.payments, block.view.height
        lowest_tip, lowest = self._offers.tips.get(height), payments.get(height)
        for fire in block.fires:
            cycles, tip = fire.cycles_used, fire.tip
            self._fires += 1
            self._burned += fire.burned
            self._tips += tip
            if lowest_tip is None or lowest is None or not cycles:
                continue
            self._overpayment += tip - cycles * lowest_tip[0] / lowest_tip[1]
            paid = fire.burned + tip
            regret = paid - cycles * lowest[0] / lowest[1]
            if fire.height > fire.due and (earlier := payments.get(fire.due)) is not None and fire.is_ok:
                order = fire.plan.order
                gain = worth(order, 0) - worth(order, fire.late)
                regret = max(regret, gain + paid - cycles * earlier[0] / earlier[1])
            self._regret += regret

    def values(self) -> dict[str, float]:
        """Return sums, and means of a fire; 0 without fires."""
        fires = self._fires or 1
        return {
            "paid": self._burned + self._tips,
            "paid_mean": (self._burned + self._tips) / fires,
            "overpayment": self._overpayment / fires,
            "regret": self._regret / fires,
        }
