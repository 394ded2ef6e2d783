"""The measures once more, from lists of everything and straight from their definitions."""

from collections.abc import Sequence
from statistics import fmean, stdev, variance

from trailboss.simulator.orders import BlockResult, Fire, PlannedTimer

BOUNDS = (0, 1, 2, 5, 10, 50, 100)


def worth(fire: Fire, late: int) -> int:
    order = fire.plan.order
    return max(order.value - order.decay * late, 0) if fire.is_ok else 0


class History:
    """All that some blocks hold."""

    def __init__(self, blocks: Sequence[BlockResult]) -> None:
        self.blocks = blocks
        self.first, self.last = blocks[0].view.height, blocks[-1].view.height
        self.fires = [fire for block in blocks for fire in block.fires]
        plans = [plan for block in blocks for plan in block.accepted]
        self.cohort = [plan for plan in plans if plan.order.watches is None]
        self.fired_at = {fire.plan.timer_id: fire.height for fire in self.fires}
        endings = [ending for block in blocks for ending in block.endings]
        self.ended_at = {ending.plan.timer_id: ending.height for ending in endings}

    def gone_at(self, plan: PlannedTimer) -> int:
        """Return the height at which a timer fired or ended, or the height after the last one."""
        return self.fired_at.get(plan.timer_id, self.ended_at.get(plan.timer_id, self.last + 1))

    def delays(self) -> dict[str, float]:
        late = sorted(fire.height - fire.due for fire in self.fires)
        values: dict[str, float] = {"late_mean": fmean(late), "late_max": late[-1]}
        for percent in (50, 95, 99):
            values[f"late_p{percent}"] = min(x for x in late if sum(y <= x for y in late) * 100 >= percent * len(late))
        for bound in BOUNDS:
            values[f"late_over_{bound}"] = fmean(x > bound for x in late)
        return values | self.survival()

    def survival(self) -> dict[str, float]:
        seen: list[tuple[int, bool]] = []
        waiting = 0
        for plan in self.cohort:
            is_fired, gone = plan.timer_id in self.fired_at, self.gone_at(plan)
            is_waiting = gone > self.last and plan.order.height <= self.last
            waiting += is_waiting
            if (at := min(gone, self.last) - plan.order.height) >= 0:
                seen.append((at, is_fired))
        values: dict[str, float] = {"waiting": waiting, "censored": fmean(not is_fired for _, is_fired in seen)}
        for bound in BOUNDS:
            left = 1.0
            for time in range(bound + 1):
                at_risk = sum(at >= time for at, _ in seen)
                left *= 1 - sum(at == time and is_fired for at, is_fired in seen) / max(at_risk, 1)
            values[f"survival_{bound}"] = left
        return values

    def starvation(self) -> int:
        longest = 0
        for actor in {plan.order.actor for plan in self.cohort}:
            own = [plan for plan in self.cohort if plan.order.actor == actor]
            stretch = 0
            for block in self.blocks:
                height = block.view.height
                is_due = any(plan.order.height <= height < self.gone_at(plan) for plan in own)
                has_fire = any(fire.plan.order.actor == actor for fire in block.fires)
                stretch = stretch + 1 if is_due and not has_fire else 0
                longest = max(longest, stretch)
        return longest

    def evenness(self, owners: dict[int, int]) -> tuple[list[float], list[int]]:
        """Return what each owner got of what it asked for, and cycles of each owner."""
        due = [
            plan
            for plan in self.cohort
            if plan.order.height <= self.last and self.ended_at.get(plan.timer_id, self.last) >= plan.order.height
        ]
        shares, cycles = [], []
        for owner in sorted(set(owners.values())):
            asked = [plan for plan in due if owners[plan.order.actor] == owner]
            if asked:
                shares.append(fmean(plan.timer_id in self.fired_at for plan in asked))
            cycles.append(sum(fire.cycles_used for fire in self.fires if owners[fire.plan.order.actor] == owner))
        return shares, cycles

    def money(self) -> dict[str, float]:
        burned, tips = [block.burned for block in self.blocks], [block.tips for block in self.blocks]
        use = [block.timer_cycles / block.view.lane_cycles_max for block in self.blocks]
        return {
            "burn_mean": fmean(burned),
            "burn_variance": variance(burned),
            "revenue_mean": fmean(tips),
            "revenue_variance": variance(tips),
            "use_mean": fmean(use),
            "use_sd": stdev(use),
            "full": fmean(each >= 0.9 for each in use),
            "empty": fmean(each == 0 for each in use),
            "backlog_mean": fmean(block.waiting for block in self.blocks),
            "backlog_max": max(block.waiting for block in self.blocks),
            "block_cycles": fmean(block.cycles for block in self.blocks),
            "welfare": sum(worth(fire, fire.late) for fire in self.fires),
        }

    def bids(self) -> dict[str, float]:
        lowest_tip, lowest = {}, {}
        for block in self.blocks:
            if fires := [fire for fire in block.fires if fire.cycles_used]:
                lowest_tip[block.view.height] = min(fire.tip / fire.cycles_used for fire in fires)
                lowest[block.view.height] = min(fire.paid / fire.cycles_used for fire in fires)
        over = regret = 0.0
        for fire in self.fires:
            cycles = fire.cycles_used
            if not cycles:
                continue
            over += fire.tip - lowest_tip[fire.height] * cycles
            ways = [worth(fire, fire.late) - lowest[fire.height] * cycles]
            if fire.due in lowest and fire.is_ok:
                ways.append(worth(fire, 0) - lowest[fire.due] * cycles)
            regret += max(ways) - worth(fire, fire.late) + fire.paid
        paid = sum(fire.paid for fire in self.fires)
        count = len(self.fires)
        return {"paid": paid, "paid_mean": paid / count, "overpayment": over / count, "regret": regret / count}


def basefee_values(series: Sequence[int]) -> dict[str, float]:
    half = series[len(series) // 2 :]
    median = sorted(half)[(len(half) - 1) // 2]
    outside = [at for at, each in enumerate(series) if not median * 0.9 <= each <= median * 1.1]
    settled = outside[-1] + 1 if outside else 0
    return {
        "min": min(series),
        "max": max(series),
        "mean": fmean(series),
        "amplitude": max(half) / min(half) if min(half) else 1.0,
        "settling": settled if settled <= len(series) // 2 else -1,
    }
