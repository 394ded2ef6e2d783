"""Vesting: timers paid by the deployer, a revocation in between, and a payer who is gone when it counts."""

import json

import pytest

CBY = 10**9


@pytest.fixture
def company(chain):
    """The deployer: promises, and pays for the fires."""
    return chain.accounts[0]


@pytest.fixture
def employee(chain):
    """The beneficiary."""
    return chain.accounts[1]


@pytest.fixture
def plan(chain, company, employee):
    """Four instalments of 5 CBY, ten blocks apart, deployed and funded in block 1."""
    terms = {"beneficiary": str(employee.address), "instalment": 5 * CBY, "count": 4, "every": 10}
    return chain.deploy(
        "examples/actors/vesting.py", sender=company, value=20 * CBY, init_payload=json.dumps(terms).encode()
    )


def spend_all(chain, account):
    """Leave an account less than any fire reserves."""
    cheap = {"cycles_limit": 10_000, "cells_limit": 500}
    chain.transfer(chain.accounts[9], chain.balance(account) - CBY, sender=account, check=True, **cheap)


def test_vesting_pays_every_instalment_to_the_last_unit_when_nothing_interferes(chain, plan, company, employee):
    """The deployer pays for the fires, so what the actor holds is the beneficiary's alone."""
    before, paid_before = chain.balance(employee), chain.balance(company)

    chain.advance_to(41)

    assert chain.balance(employee) - before == 20 * CBY
    assert plan.balance == 0
    fires = [receipt for receipt in chain.receipts() if receipt.origin == "timer"]
    assert [receipt.block_height for receipt in fires] == [11, 21, 31, 41]
    assert {receipt.payer for receipt in fires} == {company.address}
    assert paid_before - chain.balance(company) == sum(receipt.fee_paid for receipt in fires)


def test_vesting_returns_the_rest_when_the_deployer_revokes(chain, plan, company, employee):
    """Cancelled timers cost nothing more; what has vested stays paid."""
    before = chain.balance(employee)
    chain.advance_to(25)

    receipt = plan.call("revoke", b"", sender=company, check=True)

    assert [event.name for event in receipt.events] == ["timer.cancelled", "timer.cancelled"]
    assert plan.timers() == []
    assert plan.balance == 0
    chain.mine(50)
    assert chain.balance(employee) - before == 10 * CBY


def test_vesting_stays_as_it_is_when_a_stranger_revokes(chain, plan, employee):
    """A revert leaves every timer and every unit in place, and the caller pays for the attempt."""
    before = chain.balance(employee)

    receipt = plan.call("revoke", b"", sender=employee)

    assert receipt.status == "reverted"
    assert receipt.error.context["exception_message"] == "only the deployer may revoke"
    assert len(plan.timers()) == 4
    assert plan.balance == 20 * CBY
    assert before - chain.balance(employee) == receipt.fee_paid


def test_vesting_keeps_its_terms_when_somebody_calls_init_again(chain, plan, employee):
    """The creation call happens once: nobody can change the terms of a running plan."""
    before = plan.storage[b"terms"]

    receipt = plan.call("init", b'{"count": 0}', sender=employee)

    assert (receipt.status, receipt.error.code) == ("reverted", 1230)
    assert plan.storage[b"terms"] == before


def test_vesting_instalment_can_be_claimed_when_its_payer_ran_dry(chain, plan, company, employee):
    """A timer that nobody pays for ends without running; money that depends on it needs another way out."""
    spend_all(chain, company)
    before = chain.balance(employee)
    chain.advance_to(11)
    (end,) = chain.events("TimerCancelledInsufficientFunds")
    assert end.data["fee_payer"] == company.address
    assert chain.balance(employee) == before

    early = plan.call("claim", b"2", sender=chain.accounts[5])
    claimed = plan.call("claim", b"1", sender=chain.accounts[5])
    again = plan.call("claim", b"1", sender=chain.accounts[5])

    assert early.error.context["exception_message"] == "instalment 2 has not vested"
    assert claimed.ok
    assert again.error.context["exception_message"] == "instalment 1 is not open"
    assert chain.balance(employee) - before == 5 * CBY
