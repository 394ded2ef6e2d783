"""Views read by several threads while another one builds blocks, goes back, and writes its tables."""

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest

from trailboss.chain import Chain, ChainView
from trailboss.chain.development import account_name, development_account, development_genesis
from trailboss.chain.drafts import draft_deployment, draft_transaction
from trailboss.crypto.signatures import address_of
from trailboss.model.transactions import ExecuteActor, Instruction, Transfer
from trailboss.primitives.errors import ViewGoneError
from trailboss.state import view
from trailboss.state.commitment import build_roots, state_root
from trailboss.state.disk.store import StoreSettings
from trailboss.state.keys import KEY_WIDTHS
from trailboss.views.records import build_block

SETTINGS = StoreSettings(flush_interval=2, kept_journal=1_000, map_size=1 << 16)
"""A store that writes its flat tables all the time, in a file that has to grow."""
STEPS = 60
READERS = 3
READ_AGAIN = 3
BLOCKS_BACK = 12
SWITCH_SECONDS = 1e-5
SOURCE = b"""
def go(payload):
    for ahead in range(1, 4):
        pvm_host.schedule_timer(pvm_host.block_height() + ahead, payload)
    pvm_host.set_state(payload, b"set")


def handle_timer(payload):
    pvm_host.set_state(b"fired", payload)
    if pvm_host.get_state(payload):
        pvm_host.delete_state(payload)
        pvm_host.schedule_timer(pvm_host.block_height() + 2, payload)
"""


@pytest.fixture(autouse=True)
def _switching_all_the_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let threads take turns so often that they meet everywhere, and views make tables of what has changed."""
    monkeypatch.setattr(view, "FOLLOWED_MAX", 1)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    yield
    sys.setswitchinterval(usual)


class Reader(Thread):
    """Takes the published view again and again, and checks all of it.

    Attributes:
        views: How many it has checked.
        gone: How often blocks were gone.
        fault: What went wrong, if anything did.
    """

    def __init__(self, world: "World") -> None:
        super().__init__()
        self._world = world
        self.views = self.gone = 0
        self.fault: BaseException | None = None

    def run(self) -> None:
        """Check views until the world has ended, and then its last one."""
        try:
            while not self._world.has_ended.is_set():
                self._read(self._world.view)
            self._read(self._world.view)
        except BaseException as error:  # noqa: BLE001 - the test raises it in its own thread
            self.fault = error

    def _read(self, seen: ChainView) -> None:
        for _ in range(READ_AGAIN):
            check_state(seen)
            try:
                check_blocks(seen)
            except ViewGoneError:
                self.gone += 1
            self.views += 1


def check_state(seen: ChainView) -> None:
    """Check that everything that a view tells of the state is of one block: its values give its root."""
    values = (item for namespace in KEY_WIDTHS for item in seen.store.iterate(namespace))
    assert state_root(build_roots(values)) == seen.state_root == seen.head.header.state_root
    assert (seen.height, seen.rules().height) == (seen.head.height, seen.head.height + 1)
    supply, burned = seen.economy()
    assert seen.circulating() + burned == supply
    timers = list(seen.timers())
    assert len(timers) == seen.timer_count()
    assert [seen.timer(timer.timer_id) for timer in timers] == timers
    seen.check_invariants()


def check_blocks(seen: ChainView) -> None:
    """Check that blocks are those that lead to the head of a seen."""
    block = seen.head
    for height in range(seen.height - 1, max(seen.height - BLOCKS_BACK, -1), -1):
        assert (block.header.parent, seen.blocks[height].height) == (seen.blocks[height].hash, height)
        block = seen.blocks[height]
    run = seen.blocks[-BLOCKS_BACK:]
    assert run[-1] == seen.head
    assert all(block.header.parent == parent.hash for parent, block in pairwise(run))
    assert [block.height for block in seen.blocks.eventful(seen.height)] in ([seen.height], [])


class World:
    """A chain and the thread that drives it.

    Attributes:
        chain: The chain.
        view: What it has published last.
        has_ended: Set when nothing more will happen.
    """

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.has_ended = Event()
        self._keys = [development_account(account_name(number)).private_key for number in range(4)]
        # Block 1, below which nobody goes back.
        deployment, self._actor = draft_deployment(address_of(self._keys[0]), SOURCE, b"")
        self._build([(self._keys[0], deployment)])
        self.view = chain.publish()

    def _build(self, instructions: list[tuple[bytes, Instruction]]) -> None:
        made = [draft_transaction(self.chain, instruction, key) for key, instruction in instructions]
        assert all(receipt.ok for receipt in build_block(self.chain, made))

    def live(self, dice: Random) -> None:
        """Let a random thing happen: blocks with transfers and timers, idle ones, or a way back."""
        match dice.randrange(5):
            case 0:
                list(self.chain.advance_to(self.chain.height + dice.randrange(1, 9)))
            case 1 if self.chain.height > 1:
                self.chain.reorg(min(dice.randrange(1, 7), self.chain.height - 1))
            case 2:
                mark = self.chain.snapshot()
                self._pay_and_call(dice)
                self.chain.publish()
                self.chain.revert(mark)
            case _:
                self._pay_and_call(dice)
        self.view = self.chain.publish()

    def _pay_and_call(self, dice: Random) -> None:
        first, second, third = dice.sample(self._keys, k=3)
        payload = bytes([dice.randrange(1, 6)])
        self._build(
            [
                (first, Transfer(to=address_of(second), amount=dice.randrange(1, 10**6))),
                (third, ExecuteActor(self._actor, "go", payload)),
            ]
        )


def live_and_read(chain: Chain) -> None:
    """Let a chain live through its steps while others read, and raise what went wrong there."""
    world, dice = World(chain), Random(74)
    readers = [Reader(world) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(STEPS):
            world.live(dice)
    finally:
        world.has_ended.set()
        for reader in readers:
            reader.join()
    for reader in readers:
        if reader.fault is not None:
            raise reader.fault
        assert reader.views >= READ_AGAIN
    chain.check_invariants()
    check_state(world.view)
    check_blocks(world.view)


def test_views_are_whole_when_other_threads_read_a_chain_in_memory() -> None:
    """Values, totals, rules, head and blocks of a view belong together, whatever the chain is doing."""
    chain = Chain(development_genesis(preset="minimal"))
    live_and_read(chain)
    chain.close()


def test_views_are_whole_when_other_threads_read_a_chain_on_disk(tmp_path: Path) -> None:
    """The same while tables are written, grow, and take blocks back."""
    genesis = development_genesis(preset="minimal")
    with Chain.create(tmp_path / "chain", genesis, durable=False, settings=SETTINGS) as chain:
        live_and_read(chain)
