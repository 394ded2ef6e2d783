"""Rent: collected on its grid, tried again, caught up after a halt, paused and ended."""

import json

import pytest

CBY = 10**9


@pytest.fixture
def landlord(chain):
    """Is paid 20 CBY a month."""
    return chain.accounts[1]


@pytest.fixture
def lease(chain, landlord):
    """Months of ten blocks from block 1 on, with money for several."""
    terms = {"landlord": str(landlord.address), "rent": 20 * CBY, "month": 10}
    return chain.deploy(
        "examples/actors/rent.py",
        sender=chain.accounts[0],
        value=100 * CBY,
        init_payload=json.dumps(terms).encode(),
        entitlements=["timer.schedule"],
    )


def standing(lease):
    return json.loads(lease.view("account").return_value)


def test_rent_is_collected_every_month(chain, lease, landlord):
    """On the grid, and counted."""
    before = chain.balance(landlord)

    chain.advance_to(35)

    assert chain.balance(landlord) - before == 60 * CBY
    assert [event.block_height for event in chain.events("collected")] == [11, 21, 31]
    assert standing(lease) == {"paid": 3, "owed": 0, "next": 41}


def test_rent_goes_on_when_the_tenant_is_short(chain, lease):
    """A month that cannot be paid is tried three times and then owed; the next one is collected on its day."""
    chain.set_balance(lease, 15 * CBY)
    chain.advance_to(20)
    chain.transfer(lease, 100 * CBY, sender=chain.accounts[0], check=True)
    chain.advance_to(25)

    runs = [(event.block_height, event.data["outcome"]) for event in chain.events("schedule.run")]
    assert runs == [(11, "retried"), (13, "retried"), (17, "failed"), (21, "ok")]
    assert "insufficient_balance" in chain.events("schedule.run")[0].data["why"]
    assert standing(lease) == {"paid": 1, "owed": 1, "next": 31}


def test_rent_is_collected_for_each_month_of_an_outage(chain, lease):
    """The fire of block 11 comes in block 33: three months, one block after the other, then the fourth on its day."""
    (timer,) = lease.timers()
    chain.hold(timer.timer_id, 33)

    chain.advance_to(45)

    assert [event.block_height for event in chain.events("collected")] == [33, 34, 35, 41]
    assert standing(lease)["owed"] == 0


def test_rent_is_suspended_and_ended_by_the_landlord_alone(chain, lease, landlord):
    """Months of a suspension are not owed."""
    assert lease.call("suspend", sender=chain.accounts[2]).status == "reverted"
    lease.call("suspend", sender=landlord, check=True)
    chain.advance_to(30)
    lease.call("go_on", sender=landlord, check=True)
    chain.advance_to(42)

    ended = lease.call("end", sender=landlord, check=True)

    assert json.loads(ended.return_value) == {"paid": 1, "owed": 0}
    assert lease.timers() == []


def test_rent_is_collected_by_the_timer_alone(chain, lease, landlord):
    """Anyone can call a handler by name."""
    assert lease.call("collect", sender=landlord).status == "reverted"
