"""Simulations: their receipts are those of what really follows, and nothing is left of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.development import MECHANISMS, ordinary_chain
from tests.integration.simulations import CBY, arm, busy
from trailboss.chain.drafts import draft_deployment
from trailboss.model.transactions import CancelTimer, ExecuteActor, SetBalance, Transfer
from trailboss.primitives.errors import Rejection, TrailbossError
from trailboss.primitives.octets import Address, Hash32
from trailboss.rehearsal.run import fork_of
from trailboss.rehearsal.simulate import simulate, simulate_fire, state_after
from trailboss.testing import LocalChain, Receipt

pytestmark = pytest.mark.filterwarnings("ignore::trailboss.testing.parties.ChainWarning")
LIMITS = st.sampled_from((12_000, 60_000, 5_000_000))
CALLS = (
    "hello", "raise/", "spin/", "deep/count/", "deep/raise/", "deep/deep/deep/hello", "cancel/far", "count/",
    "arm/x:90:100000", "arm/past:1:100000",
)  # fmt: skip


def stand(chain: LocalChain) -> tuple[object, ...]:
    """Return all that a simulation must leave as it is."""
    chain.check_invariants()
    nonces = [chain.nonce(account) for account in chain.accounts[:2]]
    return chain.height, chain.state_root, chain.chain.queue.statistics(), nonces, chain.burned


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_receipt_is_that_of_the_transaction_that_follows(mechanism: str) -> None:
    """Every field of it, under every mechanism, whether it ends well or not; with a due timer in the same block."""
    chain = LocalChain(mechanism=mechanism)
    actor = busy(chain, mechanism)
    orders = [f"count/{place}:{chain.height + 2 + place}:100000" for place in range(len(CALLS))]
    arm(actor, "far:80:100000", *orders)
    for word in CALLS:
        before = stand(chain)
        told = actor.simulate("do", word.encode(), sender=chain.accounts[1], max_priority_fee_per_cycle=2)
        assert stand(chain) == before
        real = actor.call("do", word.encode(), sender=chain.accounts[1], max_priority_fee_per_cycle=2)
        assert told == real, word
    assert told.status == "reverted"
    assert real.printed[0].text == "doing b'arm/past:1:100000'"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("word", ["hello", "raise/", "spin/", "deep/raise/", "again/", "count/"])
def test_receipt_is_that_of_the_fire_that_follows(mechanism: str, word: str) -> None:
    """Ten blocks ahead, with the price of its own block, and after what another timer does before it."""
    chain = LocalChain(mechanism=mechanism)
    actor = busy(chain, mechanism)
    _, timer_id = arm(actor, f"count/first:{chain.height + 6}:100000", f"{word}:{chain.height + 11}:100000")
    before = stand(chain)
    told = chain.simulate_fire(timer_id)
    assert stand(chain) == before
    chain.mine(12)
    [real] = [receipt for receipt in chain.receipts(origin="timer") if receipt.timer_id == timer_id]
    assert told == real
    assert told.block_height == before[0] + 10  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
@settings(max_examples=12, deadline=None)
@given(words=st.lists(st.sampled_from((*CALLS, "again/")), min_size=1, max_size=6), data=st.data())
def test_whatever_is_simulated_follows(mechanism: str, words: list[str], data: st.DataObject) -> None:
    """Any calls by anyone, with any limit, and blocks between them; then the next fire of every timer."""
    chain = LocalChain(mechanism=mechanism)
    actor = busy(chain, mechanism)
    arm(actor, f"far:{chain.height + 60}:100000", f"again/:{chain.height + 3}:100000")
    for word in words:
        options = {"sender": data.draw(st.sampled_from(chain.accounts[:3])), "cycles_limit": data.draw(LIMITS)}
        before = stand(chain)
        told = actor.simulate("do", word.encode(), **options)
        assert stand(chain) == before
        assert told == actor.call("do", word.encode(), **options)
        if data.draw(st.booleans()):
            chain.mine(data.draw(st.integers(1, 4)))
    before = stand(chain)
    told_fires = {timer.timer_id: chain.simulate_fire(timer.timer_id) for timer in chain.timers()}
    assert stand(chain) == before
    chain.advance_to(max(receipt.block_height for receipt in told_fires.values()))
    receipts = list(chain.receipts(since=before[0] + 1, origin="timer"))  # type: ignore[operator]
    real = {receipt.timer_id: receipt for receipt in reversed(receipts)}
    for timer_id, receipt in told_fires.items():
        assert receipt == real.get(timer_id, receipt)
        assert (receipt.status == "refused") == (timer_id not in real)


def test_receipt_is_that_of_every_kind_of_instruction() -> None:
    """Deployments, transfers, system instructions, and those that no block takes."""
    chain = LocalChain()
    deployer, first = chain.deployer, chain.accounts[0]
    deployment, _ = draft_deployment(first.address, b"def init(payload):\n    return b'made'\n", b"salt")
    refused, _ = draft_deployment(first.address, b"import os\n", b"salt")
    sent: tuple[tuple[Any, Any], ...] = (
        (deployment, first),
        (refused, first),
        (Transfer(Address(b"\x42" * 20), 5), first),
        (Transfer(Address(b"\x42" * 20), 10**30), first),
        (SetBalance(first.address, 7 * CBY), deployer),
        (SetBalance(first.address, 7 * CBY), first),
        (CancelTimer(Hash32(bytes(32))), deployer),
    )
    for instruction, sender in sent:
        before = stand(chain)
        told = chain.simulate(instruction, sender=sender)
        assert stand(chain) == before
        assert told == chain.send(instruction, sender=sender), instruction


def test_anyone_can_be_the_sender_on_a_chain_that_takes_no_unsigned_transaction() -> None:
    """Nothing is signed, so nothing is forged; a system actor sends nothing there either."""
    chain = ordinary_chain()
    sender = LocalChain().accounts[3].address
    told = simulate(chain, chain.engine, Transfer(Address(b"\x42" * 20), 5), sender)
    assert (told.status, told.payer, chain.height) == ("ok", sender, 0)
    system = simulate(chain, chain.engine, Transfer(Address(b"\x42" * 20), 5), Address(bytes(19) + b"\x05"))
    assert system.error is not None
    assert system.error.what.endswith("nobody acts for a system actor")


def test_earlier_height_gives_what_really_followed_it() -> None:
    """By the undo journal: state, prices, clock and nonce are those of that block."""
    chain = LocalChain(mechanism="lane")
    actor = busy(chain, "lane")
    real = [actor.call("do", b"count/", sender=chain.accounts[1]) for _ in range(4)]
    [timer_id] = arm(actor, f"count/:{chain.height + 3}:100000")
    armed = chain.height
    chain.mine(8)
    for receipt in real:
        told = actor.simulate("do", b"count/", sender=chain.accounts[1], height=receipt.block_height - 1)
        assert told == receipt
    [fire] = chain.receipts(origin="timer")
    assert chain.simulate_fire(timer_id, height=armed) == fire
    with pytest.raises(Rejection, match=f"there is no live timer .* after block {chain.height}"):
        chain.simulate_fire(timer_id)
    with pytest.raises(Rejection, match="there is no block 99"):
        actor.simulate("do", b"count/", sender=chain.accounts[1], height=99)


def test_state_below_the_floor_is_built_again_from_genesis() -> None:
    """A fork cannot go back below its beginning; its blocks can be replayed."""
    chain = LocalChain()
    actor = busy(chain, "fifo")
    real = actor.call("do", b"count/", sender=chain.accounts[1])
    chain.mine(3)
    fork = fork_of(chain.chain)
    assert real.block_height < fork.floor
    past = state_after(fork, real.block_height - 1)
    told = simulate(past, fork.engine, ExecuteActor(actor.address, "do", b"count/"), chain.accounts[1].address)
    assert told == real


def test_overrides_hold_for_the_simulation_alone() -> None:
    """Money, slots, code and basefees; the receipt shows each, and the state none."""
    chain = LocalChain(mechanism="lane")
    actor = busy(chain, "lane")
    poor, sender = Address(b"\x77" * 20), chain.accounts[1]
    before = stand(chain)
    assert actor.simulate("do", b"hi", sender=poor).status == "refused"
    assert actor.simulate("do", b"hi", sender=poor, balances={poor: 10**15}).payer == poor
    held = {actor: {b"count": b"41", b"at:7": b"x", b"at:8": None}}
    assert actor.simulate("do", b"count/", sender=sender, slots=held).return_value == b"2"
    code = "def do(payload):\n    return b'other'\n"
    assert actor.simulate("do", b"hi", sender=sender, code={actor: code}).return_value == b"other"
    assert actor.simulate("do", b"hi", sender=sender, code={poor: code}).ok
    free = actor.simulate("do", b"hi", sender=sender, cycle_basefee=0, cell_basefee=0)
    dear = actor.simulate("do", b"hi", sender=sender, cycle_basefee=50_000)
    assert (free.fee_paid, free.status) == (0, "ok")
    assert dear.fee_paid > 50_000 * dear.cycles_used
    assert stand(chain) == before


def test_overrides_hold_until_a_timer_fires() -> None:
    """A payer without money, another price of the lane, other code."""
    chain = LocalChain(mechanism="lane")
    actor = busy(chain, "lane")
    [timer_id] = arm(actor, f"hello:{chain.height + 4}:100000")
    before = stand(chain)
    unpaid = chain.simulate_fire(timer_id, balances={actor: 1})
    assert (unpaid.status, unpaid.timer_id, unpaid.origin) == ("refused", timer_id, "timer")
    assert unpaid.error is not None
    assert "does not fire: it is removed unfunded in block 5, its payer" in unpaid.error.what
    dear, cheap = (chain.simulate_fire(timer_id, lane_basefee=price) for price in (19_000, 10_000))
    assert dear.fee_paid > cheap.fee_paid
    fixed = chain.simulate_fire(timer_id, code={actor: "def handle_timer(payload):\n    return b'fixed'\n"})
    assert fixed.return_value == b"fixed"
    assert stand(chain) == before


@pytest.mark.parametrize(
    ("override", "what"),
    [
        (
            {"balances": {b"\x42" * 20: -1}},
            r"balance of 0x4242\w+ is -1, it must be an integer within 0\.\.=2\*\*128 - 1",
        ),
        ({"balances": {b"\x42" * 20: 2**128}}, "is 129 bits, it must be"),
        ({"balances": {b"\x42" * 20: 2**128 - 1}}, "makes the supply .* more than 128 bits"),
        ({"balances": {b"\x42" * 20: "5cby"}}, "is '5cby', it must be"),
        (
            {"balances": {bytes(19) + b"\x05": 5}},
            "the override of system actor .* is impossible: the chain keeps its records",
        ),
        ({"slots": {b"\x42" * 20: {b"": b""}}}, "slot name of 0x4242"),
        ({"slots": {b"\x42" * 20: {b"a": bytes(2**20 + 1)}}}, "value of a slot of 0x4242"),
        ({"code": {b"\x42" * 20: "import os\n"}}, "would not be deployed: line 1, column 1: import of os"),
        ({"cycle_basefee": 2**127}, "cycle_basefee is .*, it must be an integer within"),
        ({"lane_basefee": 5}, "the override of lane_basefee has no effect: the timer lane is not active"),
    ],
)
def test_override_is_refused_by_name_when_it_cannot_be(override: dict[str, Any], what: str) -> None:
    """And nothing has changed."""
    chain = LocalChain()
    before = stand(chain)
    with pytest.raises(Rejection, match=what):
        chain.simulate(Transfer(chain.deployer.address, 1), sender=chain.accounts[0], **override)
    assert stand(chain) == before


def test_misspelt_override_and_open_block_are_refused() -> None:
    """A transaction that is gathered has not changed anything yet, so a simulation after it would say nothing of it."""
    chain = LocalChain()
    with pytest.raises(TypeError, match="a simulation takes no balance; what can be otherwise is balances, slots"):
        chain.simulate(Transfer(chain.deployer.address, 1), sender=chain.accounts[0], balance={})
    with chain.one_block(), pytest.raises(TrailbossError, match="cannot simulate while a block is open"):
        chain.simulate(Transfer(chain.deployer.address, 1), sender=chain.accounts[0])


def test_fire_that_does_not_come_is_said_so() -> None:
    """A timer that expires before its turn, one that an earlier fire cancels, one that lies too far ahead."""
    chain = LocalChain(params={"timers.max_ttl_blocks": 400_000})
    actor = busy(chain, "fifo")
    doomed, _, far = arm(
        actor,
        f"doomed:{chain.height + 9}:100000",
        f"cancel/doomed:{chain.height + 4}:100000",
        f"far:{chain.height + 300_000}:100000",
    )
    cancelled = chain.simulate_fire(doomed)
    assert cancelled.error is not None
    assert cancelled.error.what.endswith("does not fire: it is cancelled in block 5")
    with pytest.raises(
        Rejection, match=r"due at height 300\d+, has not fired by block 1000\d\d: a simulation builds at"
    ):
        chain.simulate_fire(far)


def test_simulation_is_the_same_on_both_engines() -> None:
    """And equals the real receipt on each."""
    told: list[tuple[Receipt, Receipt]] = []
    for vm in ("native", "sandbox"):
        with LocalChain(vm=vm) as chain:
            actor = busy(chain, "fifo")
            [timer_id] = arm(actor, f"deep/raise/:{chain.height + 3}:100000")
            call, fire = actor.simulate("do", b"deep/count/", sender=chain.accounts[1]), chain.simulate_fire(timer_id)
            chain.mine(4)
            assert fire == chain.receipts(origin="timer")[0]
            told.append((call, fire))
    assert told[0] == told[1]


def test_view_of_another_thread_can_be_simulated_with_an_engine_of_its_own() -> None:
    """As a node does: the chain goes on meanwhile."""
    chain = LocalChain()
    actor = busy(chain, "fifo")
    [timer_id] = arm(actor, f"count/:{chain.height + 6}:100000")
    view = chain.chain.publish()
    chain.mine(20)
    with LocalChain() as other:
        call = ExecuteActor(actor.address, "do", b"count/")
        told = simulate(view, other.chain.engine, call, chain.accounts[1].address)
        assert (told.return_value, told.block_height) == (b"1", view.height + 1)
        assert simulate_fire(view, other.chain.engine, timer_id) == chain.receipts(origin="timer")[0]
