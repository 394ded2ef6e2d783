"""What must be true of every chain, whatever its actors do: money and receipts add up, and no timer is lost."""

from collections import Counter

from trailboss.chain import Chain
from trailboss.model.blocks import Block
from trailboss.model.events import TIMER_ENDINGS, TIMER_SCHEDULED
from trailboss.primitives.errors import InvariantError
from trailboss.primitives.octets import Hash32
from trailboss.testing.base_chain import BaseChain


class TimerBook:
    """All timers of a chain by their events, kept block by block; after a reorg it begins again.

    Attributes:
        live: Timers that no event has ended.
        ended: How timers ended, by id.
        burned: Base units that receipts have burned.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._height = 0
        self._hash = chain.blocks[0].hash
        self.live: set[bytes] = set()
        self.ended: dict[bytes, str] = {}
        self.burned = 0

    def follow(self) -> list[Block]:
        """Take in the blocks since the last call, and return those that hold something.

        Raises:
            InvariantError: If a receipt does not add up, or if a timer begins or ends twice.
        """
        chain = self._chain
        if chain.height < self._height or chain.blocks[self._height].hash != self._hash:
            self._height, self._hash, self.burned = 0, chain.blocks[0].hash, 0
            self.live.clear()
            self.ended.clear()
        blocks = list(chain.blocks.eventful(self._height + 1))
        for block in blocks:
            self._read(block)
        self._height, self._hash = chain.height, chain.head.hash
        return blocks

    def check(self) -> list[Block]:
        """Follow the chain, and check its sums: O(accounts and new events). Returns what `follow` does.

        Raises:
            InvariantError: Naming what does not add up.
        """
        blocks, chain = self.follow(), self._chain
        chain.check_sums(chain.circulating())
        burned, live = chain.economy()[1], chain.timer_count()
        if self.burned != burned:
            raise InvariantError(f"{burned} base units are burned, and receipts burned {self.burned}")
        if len(self.live) != live:
            raise InvariantError(f"{len(self.live)} timers were scheduled and have not ended, and {live} are live")
        return blocks

    def check_all(self) -> None:
        """Check all that `check` does, every timer by itself, and the chain's state and queue: O(state).

        Raises:
            InvariantError: Naming what does not add up.
        """
        self.check()
        for timer_id in self.live:
            if self._chain.timer(timer_id) is None:
                raise InvariantError(f"timer {Hash32(timer_id)} is gone, and no event says how it ended")
        self._chain.check_invariants()

    def _read(self, block: Block) -> None:
        scheduled: list[bytes] = []
        endings: list[tuple[bytes, str]] = []
        for receipt in block.receipts:
            self.burned += receipt.fee_burned
            if receipt.reserved != receipt.fee_paid + receipt.refund:
                what = f"a receipt of block {block.height} reserved {receipt.reserved} and accounts for "
                raise InvariantError(f"{what}{receipt.fee_paid} paid and {receipt.refund} refunded")
        for event in (*(event for receipt in block.receipts for event in receipt.events), *block.events):
            if event.name == TIMER_SCHEDULED:
                scheduled.append(event.timer_id)
            elif event.name in TIMER_ENDINGS:
                endings.append((event.timer_id, TIMER_ENDINGS[event.name]))
        twice = [timer_id for timer_id, count in Counter(scheduled).items() if count > 1 or timer_id in self.live]
        if twice:
            raise InvariantError(f"timer {Hash32(twice[0])} is scheduled in block {block.height}, and is live already")
        self.live.update(scheduled)
        for timer_id, how in endings:
            if timer_id not in self.live:
                before = self.ended.get(timer_id, "nothing")
                raise InvariantError(f"timer {Hash32(timer_id)} is {how} in block {block.height}, after {before}")
            self.live.remove(timer_id)
            self.ended[timer_id] = how


def check_books(chain: BaseChain) -> None:
    """Check all that is always true of a chain, from its first block on: O(blocks and state).

    Raises:
        InvariantError: Naming what does not add up.
    """
    TimerBook(chain.chain).check_all()
