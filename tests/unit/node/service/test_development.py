"""What may be done to a development chain: its clock, its branches, its balances, its timers, and the faucet."""

import asyncio

import pytest
from msgspec.structs import replace

from tests.unit.node.service.conftest import on_node
from tests.unit.node.service.world import AT_ONCE, PATIENCE, Notes, gift, person
from trailboss.chain import Chain
from trailboss.chain.development import DEPLOYER, account_name, development_account
from trailboss.chain.drafts import draft_deployment, draft_transaction
from trailboss.chain.opening import GenesisOptions, new_genesis
from trailboss.mempool import Mempool
from trailboss.model.blocks import Origin
from trailboss.model.transactions import ExecuteActor, FundActor, SetBalance, Transfer
from trailboss.node.block_builder import ADVANCE_MAX, Clocks
from trailboss.node.dev_controls import FAUCET, FAUCET_AMOUNT, FAUCET_FILLED, SNAPSHOTS_MAX
from trailboss.node.options import NodeOptions
from trailboss.node.service import Node
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import BASE_UNITS_PER_CBY
from trailboss.views.records import receipt_view

NOBODY = Address(b"\x77" * 20)
CLOCK = b"""
def start(payload):
    return pvm_host.schedule_timer_ex(pvm_host.block_height() + 10, payload, gas_limit=50_000)


def handle_timer(payload):
    pvm_host.set_state(b"fired", str(pvm_host.block_height()).encode())
"""


async def receipt_of(node: Node, tx_hash: Hash32):
    """Return the receipt of a transaction that is in a block, or will soon be."""
    outcome = await node.outcome(tx_hash, PATIENCE * 1_000)
    assert outcome.rejection is None, outcome.rejection
    records = [each for each in node.view.blocks[outcome.place.height].receipts if each.origin is Origin.TRANSACTION]
    return receipt_view(records[outcome.place.position], outcome.place.height)


async def start_clock(node: Node) -> tuple[Address, Hash32]:
    """Deploy an actor with a timer ten blocks ahead, under the pace auto, and return both."""
    account = development_account(account_name(0))
    deploy, actor = draft_deployment(account.address, CLOCK, b"")
    steps = (deploy, FundActor(actor, 1_000 * BASE_UNITS_PER_CBY), ExecuteActor(actor, "start", b""))
    for instruction in steps:
        [verdict] = await node.submit([draft_transaction(node.view, instruction, account.private_key)])
        receipt = await receipt_of(node, verdict.hash)
        assert receipt.ok, receipt.error
    return actor, Hash32(receipt.return_value)


@pytest.mark.parametrize("blocks", [0, -3, ADVANCE_MAX + 1])
@on_node()
async def test_mining_is_refused_when_the_number_cannot_be(node: Node, blocks: int) -> None:
    """The message names it."""
    with pytest.raises(Rejection, match=f"cannot (mine|advance to height) {blocks}"):
        await node.development.mine(blocks)
    assert node.view.height == 0


@on_node()
async def test_snapshots_have_numbers_and_later_ones_go_when_one_is_reverted_to(node: Node) -> None:
    """The one that was gone back to stays, and so do those before it."""
    development = node.development
    marks = []
    for _ in range(3):
        marks.append(await development.snapshot())
        await development.mine(2)
    assert marks == [1, 2, 3]
    assert await development.revert(2) == 2
    with pytest.raises(Rejection, match="there is no snapshot 3"):
        await development.revert(3)
    await development.mine(5)
    assert await development.revert(2) == 2
    assert await development.snapshot() == 4
    assert await development.revert(1) == 0


@on_node()
async def test_oldest_snapshot_makes_room_when_there_are_too_many(node: Node) -> None:
    """A test suite that never reverts fills no memory."""
    for _ in range(SNAPSHOTS_MAX + 1):
        await node.development.snapshot()
    with pytest.raises(Rejection, match="there is no snapshot 1"):
        await node.development.revert(1)
    assert await node.development.revert(2) == 0


@on_node(NodeOptions(pace=AT_ONCE))
async def test_transactions_come_back_when_their_blocks_are_dropped(node: Node) -> None:
    """Mined at once again under the pace auto, and gone when nobody wants them."""
    key = development_account(account_name(0)).private_key
    [verdict] = await node.submit([draft_transaction(node.view, gift(), key)])
    await receipt_of(node, verdict.hash)
    await node.development.mine(3)
    assert await node.development.reorg(4) == 0
    assert (await receipt_of(node, verdict.hash)).block_height == 1
    assert await node.development.reorg(1, keep_transactions=False) == 0
    assert len(node.mempool) == 0
    assert node.view.height == 0


@on_node()
async def test_requests_that_come_together_take_a_nonce_each(node: Node) -> None:
    """All of them are in one block."""
    addresses = [Address(bytes([index]) * 20) for index in range(1, 21)]
    calls = (node.development.interfere(SetBalance(address, index)) for index, address in enumerate(addresses))
    names = await asyncio.gather(*calls)
    await node.development.mine()
    assert len({*names}) == len(addresses)
    assert [node.view.balance(address) for address in addresses] == list(range(20))


@on_node()
async def test_impersonation_is_refused_when_the_account_cannot_pay(node: Node) -> None:
    """As the mempool would refuse it from its owner."""
    with pytest.raises(Rejection) as caught:
        await node.development.impersonate(NOBODY, Transfer(person(1), 5))
    assert caught.value.reason is RejectionReason.INSUFFICIENT_GAS_BALANCE


@on_node(NodeOptions(pace=AT_ONCE))
async def test_timer_never_fires_when_it_is_dropped(node: Node) -> None:
    """It has ended, and what concerns it is refused from then on."""
    actor, timer_id = await start_clock(node)
    assert (await receipt_of(node, await node.development.drop(timer_id))).ok
    await node.development.mine(30)
    assert node.view.storage(actor) == {}
    for call in (node.development.drop, node.development.force, node.development.hold):
        with pytest.raises(Rejection, match="there is no live timer"):
            await call(timer_id)


@on_node(NodeOptions(pace=AT_ONCE))
async def test_faucet_gives_and_fills_itself(node: Node) -> None:
    """First from the deployer's account, then from its own, which the deployer fills whenever it is low."""
    faucet, deployer = development_account(FAUCET).address, development_account(DEPLOYER).address
    start = node.view.balance(deployer)
    receipt = await receipt_of(node, await node.development.faucet(NOBODY))
    assert (receipt.ok, receipt.payer) == (True, deployer)
    assert node.view.balance(NOBODY) == FAUCET_AMOUNT
    assert node.view.balance(faucet) == FAUCET_FILLED
    receipt = await receipt_of(node, await node.development.faucet(NOBODY))
    assert receipt.payer == faucet
    await receipt_of(node, await node.development.interfere(SetBalance(faucet, 7)))
    receipt = await receipt_of(node, await node.development.faucet(NOBODY))
    assert receipt.payer == deployer
    assert node.view.balance(faucet) == FAUCET_FILLED
    assert node.view.balance(NOBODY) == 3 * FAUCET_AMOUNT
    assert node.view.balance(deployer) < start - 2 * FAUCET_AMOUNT


@on_node()
async def test_faucet_is_filled_once_when_many_ask_before_a_block_comes(node: Node) -> None:
    """The filling waits as they do."""
    for _ in range(5):
        await node.development.faucet(NOBODY)
    assert len(node.mempool) == 6


def test_faucet_is_empty_when_nobody_funds_it() -> None:
    """On a chain that knows neither the deployer nor balances that are set."""
    found = replace(new_genesis(GenesisOptions()), development=False, accounts={person(0): 10**15})

    async def story() -> None:
        node = Node(Chain(found), Mempool(), Notes(), NodeOptions(pace=AT_ONCE), Clocks(lambda: 0, lambda: 0))
        node.start()
        try:
            with pytest.raises(Rejection, match="the faucet is empty: neither its account 0x") as caught:
                await node.development.faucet(NOBODY)
            assert caught.value.reason is RejectionReason.INSUFFICIENT_BALANCE
        finally:
            await node.close()

    asyncio.run(story())
