"""Running out of cycles, cells or depth: reverted, charged, and beyond the reach of the actor's own code."""

import pytest

from tests.integration.helpers import BASEFEE, FUNDS, answers, deploy_puppet, fired_ids, perform, script, step, world
from trailboss.model.transactions import ExecuteActor
from trailboss.testing import LocalChain

LIMIT = 200_000

EVASIONS = {
    "infinite loop": """
def go(payload):
    while True:
        pass
""",
    "catches BaseException": """
def go(payload):
    pvm_host.set_state(b"before", b"1")
    try:
        while True:
            pass
    except BaseException:
        pvm_host.set_state(b"after", b"1")
    pvm_host.schedule_timer(100, b"after")
    return b"survived"
""",
    "acts in finally": """
def go(payload):
    try:
        while True:
            pass
    finally:
        pvm_host.set_state(b"after", b"1")
        pvm_host.schedule_timer(100, b"after")
""",
    "swallows in a context manager": """
class Swallow:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        pvm_host.set_state(b"after", b"1")
        return True


def go(payload):
    with Swallow():
        while True:
            pass
    pvm_host.schedule_timer(100, b"after")
    return b"survived"
""",
}


@pytest.mark.spec("E-02", "F-33", "F-64")
@pytest.mark.parametrize("how", sorted(EVASIONS))
def test_transaction_reverts_and_pays_its_whole_limit_when_it_runs_out_of_cycles(chain: LocalChain, how: str) -> None:
    """No construct of the language survives exhaustion, and nothing that it did afterwards remains."""
    actor = chain.deploy(EVASIONS[how], sender=chain.accounts[0], value=FUNDS)
    sender = chain.accounts[1]
    before, balance, nonce = world(chain, without=(sender.address,)), chain.balance(sender), chain.nonce(sender)
    receipt = actor.call("go", sender=sender, cycles_limit=LIMIT)
    assert receipt.status == "reverted"
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.slug) == (1005, "out_of_cycles")
    assert receipt.error.context["limit"] == LIMIT
    assert receipt.cycles_used == LIMIT
    assert receipt.return_value == b""
    assert receipt.events == ()
    assert receipt.fee_paid == (LIMIT + receipt.cells_used) * BASEFEE
    assert world(chain, without=(sender.address,)) == before
    assert chain.balance(sender) == balance - receipt.fee_paid
    assert chain.nonce(sender) == nonce + 1


CELL_EVASIONS = {
    "writes on": """
def go(payload):
    for number in range(1000):
        pvm_host.set_state(b"slot%d" % number, bytes(1000))
""",
    "catches BaseException": """
def go(payload):
    try:
        pvm_host.set_state(b"slot", bytes(100_000))
    except BaseException:
        pass
    pvm_host.set_state(b"after", b"1")
    return b"survived"
""",
    "acts in finally": """
def go(payload):
    try:
        pvm_host.schedule_timer(100, bytes(100_000))
    finally:
        pvm_host.emit_event("after", b"1")
        pvm_host.schedule_timer(100, b"")
""",
}


@pytest.mark.spec("E-01", "E-02")
@pytest.mark.parametrize("how", sorted(CELL_EVASIONS))
def test_transaction_reverts_and_pays_all_its_cells_when_it_runs_out_of_them(chain: LocalChain, how: str) -> None:
    """The other meter ends a frame the same way, however many cycles are left."""
    actor = chain.deploy(CELL_EVASIONS[how], sender=chain.accounts[0], value=FUNDS)
    sender = chain.accounts[1]
    before = world(chain, without=(sender.address,))
    receipt = actor.call("go", sender=sender, cells_limit=5_000)
    assert receipt.status == "reverted"
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.slug) == (1006, "out_of_cells")
    assert receipt.cells_used == receipt.error.context["limit"] == 5_000
    assert receipt.fee_paid == (receipt.cycles_used + 5_000) * BASEFEE
    assert receipt.events == ()
    assert world(chain, without=(sender.address,)) == before


ENDLESS_RECURSIONS = {
    "plain": "def go(payload):\n    return go(payload)\n",
    "catches BaseException": """
def go(payload):
    try:
        return go(payload)
    except BaseException:
        return b"survived"
""",
}


@pytest.mark.spec("E-02")
@pytest.mark.parametrize("how", sorted(ENDLESS_RECURSIONS))
def test_transaction_reverts_when_it_recurses_without_end(chain: LocalChain, how: str) -> None:
    """Depth is bounded by the rules, not by the machine, and cannot be caught any more than exhaustion can."""
    actor = chain.deploy(ENDLESS_RECURSIONS[how], sender=chain.accounts[0])
    sender = chain.accounts[1]
    before = world(chain, without=(sender.address,))
    receipt = actor.call("go", sender=sender)
    assert receipt.status == "reverted"
    assert receipt.error is not None
    assert (receipt.error.code, receipt.error.slug) == (1227, "out_of_memory")
    assert receipt.error.what == "more than 256 calls within one another"
    assert receipt.return_value == b""
    assert 0 < receipt.fee_paid == (receipt.cycles_used + receipt.cells_used) * BASEFEE
    assert world(chain, without=(sender.address,)) == before


@pytest.mark.parametrize(("further", "status"), [(255, "ok"), (256, "reverted")])
def test_recursion_has_256_calls_when_counted_exactly(chain: LocalChain, further: int, status: str) -> None:
    """The handler and 255 calls within one another are accepted, one more is not."""
    source = "def go(payload, depth=0):\n    return go(payload, depth + 1) if depth < int(payload) else b'deep'\n"
    actor = chain.deploy(source, sender=chain.accounts[0])
    assert actor.call("go", b"%d" % further, sender=chain.accounts[0]).status == status


@pytest.mark.spec("E-02")
def test_callee_is_bounded_by_what_its_caller_grants_and_the_caller_goes_on(chain: LocalChain) -> None:
    """A nested call that exhausts its own limit fails as a call; what it used is the caller's to pay."""
    outer, inner = deploy_puppet(chain), deploy_puppet(chain)
    granted = step("call_actor", bytes(inner.address), "perform", script(step("spin")), 50_000, 0)
    receipt = perform(outer, step("attempt", granted), step("set_state", b"after", b"1"))
    assert answers(receipt)[0] == [1210, "pvm_error"]
    assert outer.storage[b"after"] == b"1"
    assert 50_000 < receipt.cycles_used < 80_000


@pytest.mark.spec("E-02")
def test_transaction_is_out_of_cycles_when_its_callee_uses_up_the_callers_last(chain: LocalChain) -> None:
    """A callee cannot be granted more than its caller has, and the caller cannot catch its own exhaustion."""
    outer, inner = deploy_puppet(chain), deploy_puppet(chain)
    everything = step("call_actor", bytes(inner.address), "perform", script(step("spin")), 10**9, 0)
    receipt = perform(outer, step("attempt", everything), step("set_state", b"after", b"1"), cycles_limit=LIMIT)
    assert receipt.status == "reverted"
    assert receipt.error is not None
    assert receipt.error.slug == "out_of_cycles"
    assert receipt.cycles_used == LIMIT
    assert dict(outer.storage) == {}


@pytest.mark.spec("E-02", "F-50", "F-64")
@pytest.mark.parametrize("how", ["catches BaseException", "acts in finally", "swallows in a context manager"])
def test_fire_reverts_and_pays_its_whole_gas_limit_when_it_runs_out(chain: LocalChain, how: str) -> None:
    """What holds for a transaction holds for a fire, and the timer is gone."""
    source = EVASIONS[how].replace("def go(", "def handle_timer(") + (
        "\n\ndef arm(payload):\n    pvm_host.schedule_timer_ex(pvm_host.block_height() + 2, b'', gas_limit=60_000)\n"
    )
    actor = chain.deploy(source, sender=chain.accounts[0], value=FUNDS)
    actor.call("arm", sender=chain.accounts[0], check=True)
    chain.mine(2)
    (receipt,) = chain.receipts(chain.height)
    assert (receipt.status, receipt.cycles_used) == ("reverted", 60_000)
    assert receipt.error is not None
    assert receipt.error.slug == "out_of_cycles"
    assert actor.balance == FUNDS - (60_000 + receipt.cells_used) * BASEFEE
    assert dict(actor.storage) == {}
    assert actor.timers() == []
    assert len(fired_ids(chain)) == 1


@pytest.mark.spec("E-02", "F-19")
def test_receipt_names_the_line_and_the_limit_when_a_fire_runs_out(chain: LocalChain) -> None:
    """What a block of code above the limit would have used is no fact of the execution: the limit is."""
    source = """
def start(payload):
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 1, b"", gas_limit=60_000)


def handle_timer(payload):
    while True:
        numbers = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]
"""
    actor = chain.deploy(source, sender=chain.accounts[0], value=1_000 * 10**9)
    actor.call("start", sender=chain.accounts[0], check=True)
    chain.mine()
    [fire] = chain.receipts(origin="timer")
    assert fire.error is not None
    assert fire.error.what == "needs more than its limit of 60000 cycles, all of which are used"
    line = "line 8, in handle_timer: numbers = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]"
    assert fire.error.context == {"used": 60_000, "limit": 60_000, "traceback": line}
    assert fire.fee_paid == (60_000 + fire.cells_used) * BASEFEE


@pytest.mark.spec("E-02", "F-19")
def test_frame_runs_out_of_cycles_when_it_cannot_even_pay_its_base(chain: LocalChain) -> None:
    """A limit below the price of opening a frame is used up, in a transaction as in a fire."""
    actor = deploy_puppet(chain)
    called = actor.call("perform", b"[]", sender=chain.accounts[0], cycles_limit=14_999)
    height = chain.height + 3
    perform(actor, step("schedule_timer_ex", height, b"", gas_limit=1))
    chain.advance_to(height)
    (fired,) = chain.receipts(height)
    for receipt, limit in ((called, 14_999), (fired, 1)):
        assert (receipt.status, receipt.cycles_used) == ("reverted", limit)
        assert receipt.error is not None
        assert receipt.error.slug == "out_of_cycles"
        assert receipt.fee_paid == (limit + receipt.cells_used) * BASEFEE
    assert actor.timers() == []


def test_refused_or_missing_handler_costs_the_base_when_called(chain: LocalChain) -> None:
    """A transaction that calls what is not there reverts with 1223, and one that calls nobody with 1220."""
    actor = deploy_puppet(chain)
    missing = actor.call("nobody", sender=chain.accounts[0])
    assert missing.status == "reverted"
    assert missing.error is not None
    assert (missing.error.code, missing.error.slug) == (1223, "handler_not_found")
    assert "nobody" in missing.error.what
    nowhere = chain.send(ExecuteActor(chain.accounts[5].address, "x", b""), sender=chain.accounts[0])
    assert nowhere.error is not None
    assert (nowhere.error.code, nowhere.error.slug) == (1220, "actor_not_found")
    assert nowhere.cycles_used == 15_000
    assert nowhere.fee_paid == (15_000 + 1) * BASEFEE
