"""Development chains: storage and code that are set, and calls that mocks answer."""

from pathlib import Path

import pytest

from tests.integration import boxes
from tests.integration.development import assert_reverted, of_deployer, open_local, ordinary_chain
from trailboss.chain.export import export_chain, load_chain
from trailboss.chain.replay import verify_chain
from trailboss.execution.development import MOCKS_MAX
from trailboss.model.transactions import ClearMocks, Instruction, SetCode, SetMock, SetStorage
from trailboss.primitives.octets import Address, system_address
from trailboss.testing import ActorHandle, LocalChain, RevertedError

NOBODY = Address(b"\x77" * 20)
"""An address without account or actor."""
ASKER = """
def ask(payload):
    return pvm_host.call_actor(payload[:20], "price", payload[20:], 60_000)

def ask_twice(payload):
    return b"|".join(pvm_host.call_actor(payload[:20], "price", payload[20:], 60_000) for _ in range(2))

def try_it(payload):
    try:
        return ask(payload)
    except pvm_host.HostError as error:
        return f"{error.code} {error}"

def handle_timer(payload):
    pvm_host.set_state(b"seen", ask(payload))

def later(payload):
    return pvm_host.schedule_timer_ex(pvm_host.block_height() + 3, payload, gas_limit=200_000)
"""
PRICE = """
def price(payload):
    return b"real " + payload
"""


@pytest.fixture
def asker(chain: LocalChain) -> ActorHandle:
    """Return an actor that asks another one for its price."""
    return chain.deploy(ASKER, sender=chain.accounts[0], value=10**11)


def ask(asker: ActorHandle, target: bytes, payload: bytes = b"", handler: str = "ask") -> bytes:
    """Return what the asker is answered."""
    return asker.call(handler, target + payload, sender=asker.chain.accounts[0], check=True).return_value


# Mocks


def test_mock_answers_where_there_is_no_actor_and_where_there_is_one(chain: LocalChain, asker: ActorHandle) -> None:
    """It goes before the actor, whose code does not run; without it everything is as before."""
    oracle = chain.deploy(PRICE, sender=chain.accounts[0])
    for target in (NOBODY, oracle.address):
        chain.mock_call(target, "price", returns=b"5")
        assert ask(asker, target) == b"5"
    chain.clear_mocks()
    assert ask(asker, oracle.address, b"x") == b"real x"
    assert not asker.call("ask", NOBODY, sender=chain.accounts[0]).ok


@pytest.mark.parametrize(
    ("value", "octets"), [(b"\x00", b"\x00"), ("five", b"five"), ({"a": 1}, b"\xa1aa\x01"), (None, b"")]
)
def test_answer_is_encoded_as_a_handler_returns_it(
    chain: LocalChain, asker: ActorHandle, value: object, octets: bytes
) -> None:
    """The same value returned by an actor gives the same bytes."""
    real = chain.deploy(f"def price(payload):\n    return {value!r}\n", sender=chain.accounts[0])
    chain.mock_call(NOBODY, "price", returns=value)
    code = "def ask(payload):\n    return pvm_host.call_actor(payload, 'price', b'', 60_000) or b''\n"
    reader = chain.deploy(code, sender=chain.accounts[0])
    assert ask(reader, NOBODY) == ask(reader, real.address) == octets


def test_mock_costs_the_base_of_a_frame(chain: LocalChain, asker: ActorHandle) -> None:
    """An actor that does nothing costs more than the mock, whose call costs what that of a missing actor does."""
    missing = asker.call("try_it", NOBODY, sender=chain.accounts[0])
    chain.mock_call(NOBODY, "price", reverts=f"there is no actor at {NOBODY}")
    mocked = asker.call("try_it", NOBODY, sender=chain.accounts[0])
    base = chain.chain.params.costs.frame_base
    assert abs(mocked.cycles_used - missing.cycles_used) < base // 10
    tight = "def ask(payload):\n    return pvm_host.call_actor(payload, 'price', b'', %d)\n"
    chain.mock_call(NOBODY, "price", returns=b"5")
    enough = chain.deploy(tight % base, sender=chain.accounts[0])
    short = chain.deploy(tight % (base - 1), sender=chain.accounts[0])
    assert ask(enough, NOBODY) == b"5"
    assert "out_of_cycles" in str(short.call("ask", NOBODY, sender=chain.accounts[0]).error)


def test_mock_for_a_payload_goes_before_one_for_all(chain: LocalChain, asker: ActorHandle) -> None:
    """Whichever was set first."""
    chain.mock_call(NOBODY, "price", returns=b"all")
    chain.mock_call(NOBODY, "price", b"x", returns=b"x alone")
    assert (ask(asker, NOBODY, b"x"), ask(asker, NOBODY, b"y")) == (b"x alone", b"all")


def test_mocks_of_the_same_calls_answer_one_after_the_other(chain: LocalChain, asker: ActorHandle) -> None:
    """Each so many times, also within one transaction; a later one ends one without times."""
    chain.mock_call(NOBODY, "price", returns=b"1", times=1)
    chain.mock_call(NOBODY, "price", returns=b"2", times=2)
    chain.mock_call(NOBODY, "price", returns=b"3")
    assert ask(asker, NOBODY, handler="ask_twice") == b"1|2"
    assert [mock.times for mock in chain.mocks()] == [1, None]
    assert ask(asker, NOBODY, handler="ask_twice") == b"2|3"
    chain.mock_call(NOBODY, "price", returns=b"4")
    assert ask(asker, NOBODY) == b"4"
    assert chain.mocks() == [SetMock(NOBODY, "price", None, b"4")]


def test_failure_can_be_caught_and_names_the_mock(chain: LocalChain, asker: ActorHandle) -> None:
    """It is the failure of a callee like any other."""
    chain.mock_call(NOBODY, "price", reverts="no price")
    assert ask(asker, NOBODY, handler="try_it").decode() == (
        f"1210 call of price on {NOBODY} failed: E1210 pvm_error: no price (mocked)"
    )
    receipt = asker.call("ask", NOBODY, sender=chain.accounts[0])
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.what[-17:]) == (1210, "no price (mocked)")


def test_times_stay_used_when_the_transaction_reverts(chain: LocalChain, asker: ActorHandle) -> None:
    """So an actor that lets a failure through can fail once and then work."""
    chain.mock_call(NOBODY, "price", reverts="no price", times=1)
    chain.mock_call(NOBODY, "price", returns=b"5")
    assert asker.call("ask", NOBODY, sender=chain.accounts[0]).status == "reverted"
    assert ask(asker, NOBODY) == b"5"


def test_read_only_calls_are_mocked_and_use_no_times(chain: LocalChain, asker: ActorHandle) -> None:
    """A view changes nothing, the mocks included."""
    chain.mock_call(NOBODY, "price", returns=b"5", times=1)
    assert [asker.view("ask", NOBODY).return_value for _ in range(3)] == [b"5"] * 3
    assert [mock.times for mock in chain.mocks()] == [1]


def test_fire_is_mocked_and_says_so(chain: LocalChain, asker: ActorHandle) -> None:
    """Its receipt has the event, and the life of the timer the sentence."""
    asker.call("later", NOBODY + b"x", sender=chain.accounts[0], check=True)
    chain.mock_call(NOBODY, "price", returns=b"5", times=1)
    [timer] = asker.timers()
    chain.mine(3)
    assert asker.storage[b"seen"] == b"5"
    [event] = chain.events("development.call_mocked")
    assert (event.emitter, event.timer_id) == (asker.address, timer.timer_id)
    assert event.data == {"target": NOBODY, "handler": "price", "payload": b"x", "ok": True}
    said = f"its call of price of {NOBODY} is answered by a mock, as only a development chain does"
    assert said in str(chain.explain(timer.timer_id))


def test_transactions_reach_the_actor_itself(chain: LocalChain) -> None:
    """Only calls by other actors are mocked."""
    oracle = chain.deploy(PRICE, sender=chain.accounts[0])
    chain.mock_call(oracle, "price", returns=b"5")
    assert oracle.call("price", b"x", sender=chain.accounts[0]).return_value == b"real x"


@pytest.mark.parametrize(
    ("mock", "what"),
    [
        (SetMock(NOBODY, ""), "a mock is for a handler, and its name is empty"),
        (SetMock(NOBODY, "price", None, b"5", "no"), "a mock of price either returns or reverts, not both"),
        (SetMock(NOBODY, "price", times=0), "times is 0, outside 1..=4294967295"),
    ],
)
def test_mock_is_refused_when_it_makes_no_sense(chain: LocalChain, mock: SetMock, what: str) -> None:
    """With the value and the rule."""
    assert_reverted(chain.system(mock), 1202, what)
    assert chain.mocks() == []


@pytest.mark.parametrize("name", ["payload", "returns"])
def test_mock_is_refused_when_a_value_cannot_be_encoded(chain: LocalChain, name: str) -> None:
    """At the call, and nothing is sent."""
    with pytest.raises(TypeError, match=f"mock_call.{name}=<object object at .* cannot be encoded"):
        chain.mock_call(NOBODY, "price", **{name: object()})
    assert chain.height == 0


def test_mocks_are_limited(chain: LocalChain) -> None:
    """A nested call looks through all of them."""
    with chain.one_block():
        for index in range(MOCKS_MAX):
            chain.mock_call(NOBODY, f"price_{index}")
    receipt = chain.system(SetMock(NOBODY, "price"))
    assert_reverted(receipt, 1202, "there are 256 mocks, the most that there can be: clear them first")


# Storage and code


def test_storage_is_set_and_deleted(chain: LocalChain, asker: ActorHandle) -> None:
    """The actor reads what it finds, of any name that a slot can have."""
    chain.set_storage(asker, b"seen", b"1")
    chain.set_storage(asker, b"__INITIALIZED__", b"")
    assert dict(asker.storage) == {b"seen": b"1", b"__INITIALIZED__": b""}
    chain.set_storage(asker, b"seen", None)
    chain.set_storage(asker, b"never", None)
    assert dict(asker.storage) == {b"__INITIALIZED__": b""}
    chain.check_invariants()


def test_state_watch_is_hit_when_storage_is_set() -> None:
    """As by a change that the actor makes itself."""
    with boxes.open_box() as chain:
        box = boxes.deploy_box(chain)
        watching = boxes.watch(box, boxes.key(box, b"a"))
        chain.set_storage(box, b"a", b"1")
        chain.mine(3)
        assert [event.timer_id for event in chain.events("TimerFireReceipt")] == [watching]


def test_code_is_set_and_everything_else_stays(chain: LocalChain, asker: ActorHandle) -> None:
    """Storage, money, owner and timers; the new code is what runs, also in a fire."""
    chain.set_storage(asker, b"seen", b"1")
    asker.call("later", b"", sender=chain.accounts[0], check=True)
    held = asker.balance
    changed = chain.set_code(asker, "def handle_timer(payload):\n    pvm_host.set_state(b'new', b'2')\n")
    assert (asker.balance, changed.address, asker.storage[b"seen"]) == (held, asker.address, b"1")
    chain.mine(3)
    assert asker.storage[b"new"] == b"2"
    assert chain.chain.account(asker.address).owner == chain.accounts[0].address


def test_code_makes_an_actor_of_any_address(chain: LocalChain, asker: ActorHandle) -> None:
    """Of none and of a plain account, whose money stays; it is found as one that was deployed."""
    for address in (NOBODY, chain.accounts[5].address):
        held = chain.balance(address)
        oracle = chain.set_code(address, PRICE)
        assert ask(asker, address, b"x") == b"real x"
        assert (chain.balance(address), chain.actor(address).receipt) == (held, oracle.receipt)
        assert chain.chain.account(address).owner == chain.deployer.address


def test_code_is_checked_as_at_a_deployment(chain: LocalChain) -> None:
    """Line and reason; nothing changes."""
    with pytest.raises(RevertedError, match="non_deterministic_code"):
        chain.set_code(NOBODY, "import random\n")
    assert chain.chain.account(NOBODY) is None


@pytest.mark.trailboss(preset="public")
def test_code_has_the_entitlements_that_come_with_it(chain: LocalChain) -> None:
    """On a chain that enforces them."""
    actor = chain.set_code(NOBODY, ASKER, entitlements=["timer.schedule"])
    chain.set_balance(actor, 10**11)
    actor.call("later", b"", sender=chain.accounts[0], check=True)


@pytest.mark.parametrize(
    ("instruction", "what"),
    [
        (SetStorage(system_address(2), b"k", b"v"), "the storage of system actor 0x{:040x} is not set"),
        (SetCode(system_address(2), b"def a(): ...\n"), "the code of system actor 0x{:040x} is not set"),
    ],
)
def test_system_actors_are_left_alone(chain: LocalChain, instruction: Instruction, what: str) -> None:
    """The chain keeps its parameters there."""
    assert_reverted(chain.system(instruction), 1202, f"{what.format(2)}: the chain keeps it")


def test_storage_is_refused_when_no_program_could_have_it(chain: LocalChain, asker: ActorHandle) -> None:
    """Of an address without code, and by size."""
    assert_reverted(chain.system(SetStorage(NOBODY, b"k", b"v")), 1220, f"there is no actor at {NOBODY}")
    assert_reverted(chain.system(SetStorage(asker.address, b"", b"v")), 1202, "slot name has 0 bytes, outside 1..=1024")


@pytest.mark.parametrize(
    "instruction", [SetStorage(NOBODY, b"k", b"v"), SetCode(NOBODY, b"x = 1\n"), SetMock(NOBODY, "f"), ClearMocks()]
)
def test_other_chains_execute_none_of_it(instruction: Instruction) -> None:
    """They say what does."""
    chain = ordinary_chain()
    [record] = chain.build([of_deployer(chain, instruction)]).block.receipts
    assert record.error is not None
    assert record.error.what == (
        f"{instruction.name} is executed by development chains only, which say so in their genesis"
    )


def test_only_system_deployers_do_it(chain: LocalChain, asker: ActorHandle) -> None:
    """Also on a development chain."""
    receipt = chain.send(SetMock(NOBODY, "price"), sender=chain.accounts[0])
    assert receipt.error is not None
    assert receipt.error.slug == "unauthorized"


# The chain afterwards


@pytest.mark.parametrize("mechanism", ["fifo", "lane", "auction", "globalbox"])
def test_chain_replays_and_is_exported_after_all_of_it(mechanism: str, tmp_path: Path) -> None:
    """With the same roots; and so after a reorganization and after going back to a snapshot."""
    chain = open_local(mechanism)
    asker = chain.deploy(ASKER, sender=chain.accounts[0], value=10**12)
    mark = chain.snapshot()
    chain.mock_call(NOBODY, "price", returns=b"gone")
    chain.revert(mark)
    assert chain.mocks() == []
    with chain.one_block():
        chain.mock_call(NOBODY, "price", reverts="no", times=2)
        chain.mock_call(NOBODY, "price", b"x", returns=b"5")
        chain.set_storage(asker, b"seen", b"0")
        for payload in (b"", b"x"):
            asker.call("ask", NOBODY + payload, sender=chain.accounts[1])
    assert [(mock.payload, mock.times) for mock in chain.mocks()] == [(b"x", None), (None, 1)]
    chain.set_code(NOBODY, PRICE)
    asker.call("try_it", NOBODY, sender=chain.accounts[1])
    blocks = list(chain.chain.blocks)
    chain.reorg(3)
    assert chain.mocks() == []
    for block in blocks[chain.height + 1 :]:
        chain.chain.build(block.transactions)
    assert [block.hash for block in chain.chain.blocks] == [block.hash for block in blocks]
    chain.clear_mocks()
    chain.check_invariants()
    assert verify_chain(chain.chain).ok
    export_chain(chain.chain, tmp_path / "export")
    loaded = load_chain(tmp_path / "export")
    assert loaded.state_root == chain.state_root
