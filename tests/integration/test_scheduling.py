"""schedule_timer and schedule_timer_ex: what they accept, what they refuse, each limit at its edge and one beyond."""

import pytest

from tests.integration.helpers import (
    FIRE_CYCLES,
    FUNDS,
    answers,
    assert_refused_call,
    deploy_puppet,
    fires,
    perform,
    schedule,
    script,
    step,
    world,
)
from trailboss.primitives.octets import system_address
from trailboss.testing import ActorHandle, LocalChain

TTL = 2_592_000
U64_MAX = 2**64 - 1


def assert_refused(actor: ActorHandle, call: list[object], code: int, slug: str, *words: str) -> None:
    """Assert that a call is refused and that its transaction leaves nothing but its fee and its nonce."""
    chain = actor.chain
    caller = chain.accounts[0]
    before, nonce, balance = world(chain, without=(caller.address,)), chain.nonce(caller), chain.balance(caller)
    receipt = perform(actor, call)
    assert_refused_call(receipt, code, slug, *words)
    assert world(chain, without=(caller.address,)) == before
    assert chain.nonce(caller) == nonce + 1
    assert chain.balance(caller) == balance - receipt.fee_paid
    assert receipt.events == ()
    assert receipt.fee_paid > 0


@pytest.mark.spec("F-14")
@pytest.mark.parametrize("ahead", [1, 2, U64_MAX])
def test_height_is_accepted_when_it_lies_above_the_present(chain: LocalChain, ahead: int) -> None:
    """The next block is near enough, the last height there is not too far."""
    actor = deploy_puppet(chain)
    height = min(chain.height + 1 + ahead, U64_MAX)
    schedule(actor, height)
    assert [timer.height for timer in chain.timers()] == [height]


@pytest.mark.spec("F-14", "F-30", "F-47")
@pytest.mark.parametrize("call", ["schedule_timer", "schedule_timer_ex"])
@pytest.mark.parametrize("behind", [0, 1, 2])
def test_height_is_refused_when_it_does_not_lie_above_the_present(chain: LocalChain, call: str, behind: int) -> None:
    """The block that schedules is too early already."""
    actor = deploy_puppet(chain)
    now = chain.height + 1
    words = f"height {now - behind} must be above the present height {now}"
    assert_refused(actor, step(call, now - behind, b""), 1202, "invalid_input", words)


@pytest.mark.spec("F-14")
@pytest.mark.parametrize("height", [-1, -1_000, 2**64])
def test_height_is_refused_when_it_is_no_unsigned_64_bit_number(chain: LocalChain, height: int) -> None:
    """Below the first height and one beyond the last."""
    actor = deploy_puppet(chain)
    words = f"height is {height}, outside 0..={U64_MAX}"
    assert_refused(actor, step("schedule_timer", height, b""), 1202, "invalid_input", words)


@pytest.mark.spec("F-10", "F-11")
def test_extended_call_takes_the_defaults_when_its_arguments_are_none_or_missing(chain: LocalChain) -> None:
    """None, nothing, and the SDK's six positionals with its own signs for a default are the same timer."""
    actor = deploy_puppet(chain)
    calls = (
        step("schedule_timer", 100, b"p"),
        step("schedule_timer_ex", 100, b"p"),
        step("schedule_timer_ex", 100, b"p", fee_payer=None, gas_limit=None, expires_at=None),
        step("schedule_timer_ex", 100, b"p", None, None, None),
        step("schedule_timer_ex", 100, b"p", b"", 0, 0, 0),
    )
    assert len(set(answers(perform(actor, *calls)))) == len(calls)
    expected = (actor.address, FIRE_CYCLES, 0, chain.height + TTL, "handle_timer", b"p")
    for timer in chain.timers():
        assert (
            timer.fee_payer,
            timer.gas_limit,
            timer.access_limit,
            timer.expires_at,
            timer.handler,
            timer.payload,
        ) == expected


@pytest.mark.spec("F-11")
def test_extended_call_takes_each_argument_when_given_in_either_form(chain: LocalChain) -> None:
    """Five by name or place as the text has them, six by place as the public SDK sends them."""
    actor, caller = deploy_puppet(chain), bytes(chain.accounts[0].address)
    calls = (
        step("schedule_timer_ex", 100, b"", fee_payer=caller, gas_limit=11_111, expires_at=222),
        step("schedule_timer_ex", 100, b"", caller, 11_111, 222),
        step("schedule_timer_ex", 100, b"", caller, 11_111, 7, 222),
    )
    answers(perform(actor, *calls))
    seen = [(timer.fee_payer, timer.gas_limit, timer.access_limit, timer.expires_at) for timer in chain.timers()]
    assert seen == [(caller, 11_111, 0, 222), (caller, 11_111, 0, 222), (caller, 11_111, 7, 222)]


@pytest.mark.spec("F-11")
def test_access_limit_is_refused_when_negative(chain: LocalChain) -> None:
    """It has no price here, but it is checked."""
    actor = deploy_puppet(chain)
    assert_refused(actor, step("schedule_timer_ex", 100, b"", b"", 0, -1, 0), 1202, "invalid_input", "access_limit")


@pytest.mark.spec("F-17", "F-30")
@pytest.mark.parametrize("number", [0, 1, 9, 15])
def test_fee_payer_is_refused_when_it_is_zero_or_a_system_actor(chain: LocalChain, number: int) -> None:
    """The burn address and 0x01..=0x0F pay for nobody."""
    actor = deploy_puppet(chain)
    payer = system_address(number)
    rule = "the zero address pays nobody" if number == 0 else "system actors 0x01..=0x0F pay for nobody"
    call = step("schedule_timer_ex", 100, b"", fee_payer=bytes(payer))
    assert_refused(actor, call, 1202, "invalid_input", f"fee_payer {payer} is refused: {rule}")


@pytest.mark.spec("F-17", "F-18")
def test_fee_payer_is_refused_as_a_third_party_when_just_above_the_system_band(chain: LocalChain) -> None:
    """0x10 is no system actor: it is refused because it has not consented."""
    actor, payer = deploy_puppet(chain), system_address(16)
    call = step("schedule_timer_ex", 100, b"", fee_payer=bytes(payer))
    words = f"it must be the actor {actor.address} or the sender of the transaction {chain.accounts[0].address}"
    assert_refused(actor, call, 1202, "invalid_input", f"fee_payer {payer} is refused: {words}")


@pytest.mark.spec("F-18")
def test_fee_payer_is_accepted_when_it_is_the_actor_or_the_sender(chain: LocalChain) -> None:
    """Whoever sends the transaction may pay, be it the deployer or not."""
    actor = deploy_puppet(chain)
    for account in (chain.accounts[0], chain.accounts[5]):
        for payer in (actor.address, account.address):
            schedule(actor, 100, b"", sender=account, fee_payer=bytes(payer))
    payers = [timer.fee_payer for timer in chain.timers()]
    assert payers == [actor.address, chain.accounts[0].address, actor.address, chain.accounts[5].address]


@pytest.mark.spec("F-18")
def test_fee_payer_is_refused_when_it_is_a_third_party(chain: LocalChain) -> None:
    """A stranger, another actor, and the actor's own deployer when somebody else sends."""
    actor, other = deploy_puppet(chain, sender=chain.accounts[1]), deploy_puppet(chain)
    for payer in (chain.accounts[7].address, other.address, chain.accounts[1].address):
        call = step("schedule_timer_ex", 100, b"", fee_payer=bytes(payer))
        assert_refused(actor, call, 1202, "invalid_input", f"fee_payer {payer} is refused")


@pytest.mark.spec("F-18")
@pytest.mark.parametrize("width", [1, 19, 21, 32])
def test_fee_payer_is_refused_when_it_is_no_address(chain: LocalChain, width: int) -> None:
    """Twenty bytes, no more and no fewer."""
    actor = deploy_puppet(chain)
    call = step("schedule_timer_ex", 100, b"", fee_payer=bytes(width))
    assert_refused(actor, call, 1202, "invalid_input", "fee_payer")


@pytest.mark.spec("F-18")
def test_sender_of_the_transaction_may_pay_when_the_actor_is_called_by_another(chain: LocalChain) -> None:
    """In a nested call the signer has consented; the calling actor has not."""
    outer, inner = deploy_puppet(chain), deploy_puppet(chain)

    def through(payer: bytes) -> list[object]:
        nested = script(step("schedule_timer_ex", 100, b"", fee_payer=payer))
        return step("call_actor", bytes(inner.address), "perform", nested, 100_000, 0)

    answers(perform(outer, through(bytes(chain.accounts[0].address))))
    assert [(timer.actor, timer.fee_payer) for timer in chain.timers()] == [(inner.address, chain.accounts[0].address)]
    refused = perform(outer, through(bytes(outer.address)))
    assert refused.status == "reverted"
    assert refused.error is not None
    assert f"fee_payer {outer.address} is refused" in refused.error.what


DEPLOYER_FUNDED = """
class Oracle:
    INTERVAL = 5

    def deploy(self):
        self.arm()

    def handle_timer(self, payload):
        pvm_host.set_state(b"fired", b"yes")
        try:
            self.arm()
        except pvm_host.HostError as error:
            pvm_host.set_state(b"refused", ("%d %s" % (error.code, error.name)).encode())

    def arm(self):
        pvm_host.schedule_timer_ex(
            pvm_host.block_height() + self.INTERVAL, b"", fee_payer=self.deployer, gas_limit=200_000
        )
"""


@pytest.mark.spec("F-18", "F-45")
def test_deployer_may_pay_when_named_in_deploy_and_not_from_a_later_fire(chain: LocalChain) -> None:
    """The deployer's own transaction is consent; a fire has no user behind it."""
    deployer = chain.accounts[2]
    oracle = chain.deploy(DEPLOYER_FUNDED, sender=deployer)
    (timer,) = oracle.timers()
    assert (timer.fee_payer, oracle.balance) == (deployer.address, 0)
    before = chain.balance(deployer)
    chain.advance_to(timer.height)
    (receipt,) = chain.receipts(timer.height)
    assert (receipt.status, receipt.payer) == ("ok", deployer.address)
    assert chain.balance(deployer) == before - receipt.fee_paid
    assert dict(oracle.storage) == {b"fired": b"yes", b"refused": b"2 invalid_input"}
    assert oracle.timers() == []


@pytest.mark.spec("F-19")
def test_gas_limit_is_accepted_when_within_its_edges(chain: LocalChain) -> None:
    """One cycle is a limit, and so is the configured maximum."""
    actor = deploy_puppet(chain)
    schedule(actor, 100, b"", gas_limit=1)
    schedule(actor, 100, b"", gas_limit=FIRE_CYCLES)
    assert [timer.gas_limit for timer in chain.timers()] == [1, FIRE_CYCLES]


@pytest.mark.spec("F-19", "F-30")
@pytest.mark.parametrize("gas_limit", [0, -1, FIRE_CYCLES + 1, 2**64])
def test_gas_limit_is_refused_when_outside_its_edges(chain: LocalChain, gas_limit: int) -> None:
    """Zero is no default in the five-argument form: None is."""
    actor = deploy_puppet(chain)
    call = step("schedule_timer_ex", 100, b"", gas_limit=gas_limit)
    edges = f"1..={FIRE_CYCLES}" if 0 <= gas_limit < 2**64 else ""
    assert_refused(actor, call, 1202, "invalid_input", f"gas_limit is {gas_limit}, outside {edges}")


@pytest.mark.spec("F-20")
def test_expiry_is_accepted_when_within_its_edges(chain: LocalChain) -> None:
    """From the next block to the maximal TTL; one before the timer's own height is accepted and shown."""
    actor = deploy_puppet(chain)
    nearest = chain.height + 2
    schedule(actor, 100, b"", expires_at=nearest)
    furthest = chain.height + 1 + TTL
    schedule(actor, 100, b"", expires_at=furthest)
    schedule(actor, 100, b"", expires_at=99)
    schedule(actor, 100, b"", expires_at=100)
    assert [(timer.expires_at, timer.will_expire_unfired) for timer in chain.timers()] == [
        (nearest, True),
        (furthest, False),
        (99, True),
        (100, False),
    ]


@pytest.mark.spec("F-20", "F-30")
@pytest.mark.parametrize("offset", [0, -1, TTL + 1])
def test_expiry_is_refused_when_outside_its_edges(chain: LocalChain, offset: int) -> None:
    """The present block is over when the transaction is; beyond the maximal TTL there is nothing."""
    actor = deploy_puppet(chain)
    now = chain.height + 1
    call = step("schedule_timer_ex", 100, b"", expires_at=now + offset)
    words = f"expires_at is {now + offset}, outside {now + 1}..={now + TTL}"
    assert_refused(actor, call, 1202, "invalid_input", words)


@pytest.mark.spec("F-20")
@pytest.mark.trailboss(params={"timers.max_ttl_blocks": 2**64 - 1})
def test_default_expiry_stays_within_64_bits_when_the_ttl_is_enormous(chain: LocalChain) -> None:
    """A height has 64 bits, whatever the configuration says."""
    actor = deploy_puppet(chain)
    schedule(actor, 100)
    assert [timer.expires_at for timer in chain.timers()] == [U64_MAX]


CAP = {"timers.max_timers_per_actor": 3}


@pytest.mark.spec("F-21")
@pytest.mark.trailboss(params=CAP)
def test_cap_is_reached_exactly_when_an_actor_holds_as_many_timers(chain: LocalChain) -> None:
    """Three fit, the fourth is refused with actor and limit; another actor has a cap of its own."""
    actor, other = deploy_puppet(chain), deploy_puppet(chain)
    for height in (100, 200, 300):
        schedule(actor, height)
    call = step("schedule_timer", 400, b"")
    assert_refused(actor, call, 1501, "timer_limit", f"{actor.address} holds 3 live timers and the limit is 3")
    refused = perform(actor, call)
    assert refused.error is not None
    assert refused.error.context["actor"] == str(actor.address)
    assert refused.error.context["limit"] == 3
    schedule(other, 400)


@pytest.mark.spec("F-21", "F-33")
@pytest.mark.trailboss(params=CAP)
def test_cap_counts_the_running_transaction_when_it_schedules_and_cancels(chain: LocalChain) -> None:
    """Schedules count at once, a cancel frees its slot at once, a rolled-back frame gives its slots back."""
    actor = deploy_puppet(chain)
    first = schedule(actor, 100)
    one = step("schedule_timer", 200, b"")
    over = answers(perform(actor, one, one, step("attempt", one)))
    assert over[2][1] == "timer_limit"
    assert len(actor.timers()) == 3
    moved = answers(perform(actor, step("cancel_timer", first), one, step("attempt", one)))
    assert len(moved[1]) == 32
    assert moved[2][1] == "timer_limit"
    assert [timer.height for timer in actor.timers()] == [200, 200, 200]
    last = actor.timers()[-1].timer_id
    lost = perform(actor, step("cancel_timer", last), one, step("raise", "back again"))
    assert lost.status == "reverted"
    assert_refused(actor, one, 1501, "timer_limit")
    answers(perform(actor, step("cancel_timer", last), one))


@pytest.mark.spec("F-21")
@pytest.mark.trailboss(params=CAP)
def test_cap_gives_a_callees_slots_back_when_its_frame_fails(chain: LocalChain) -> None:
    """A nested frame that fails and is caught holds nothing."""
    outer, inner = deploy_puppet(chain), deploy_puppet(chain)
    one = step("schedule_timer", 100, b"")
    failing = step("call_actor", bytes(inner.address), "perform", script(one, one, step("raise", "no")), 200_000, 0)
    working = step("call_actor", bytes(inner.address), "perform", script(one, one, one), 200_000, 0)
    caught, _ = answers(perform(outer, step("attempt", failing), working))
    assert caught == [1210, "pvm_error"]
    assert len(inner.timers()) == 3


@pytest.mark.spec("F-21", "F-42")
@pytest.mark.trailboss(params={"timers.max_timers_per_actor": 1})
def test_cap_has_room_for_the_next_timer_when_a_fire_schedules_it(chain: LocalChain) -> None:
    """The firing timer has left the index before its handler runs, so a loop of one timer works under a cap of one."""
    actor = deploy_puppet(chain)
    again = script(step("schedule_timer", chain.height + 9, b""))
    schedule(actor, chain.height + 5, again)
    chain.advance_to(chain.height + 5)
    assert fires(actor) == 1
    assert len(actor.timers()) == 1


def test_puppet_is_funded_when_deployed(chain: LocalChain) -> None:
    """The scenarios count on a full purse."""
    assert deploy_puppet(chain).balance == FUNDS
