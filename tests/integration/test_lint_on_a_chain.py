"""What the linter calls wrong on its page goes wrong on a chain, and what it calls right goes right."""

import pytest

from tests.docs.test_check_page import FENCE, SECTIONS
from tests.golden.world import World
from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.testing import RevertedError

CBY = 10**9
NOTHING = encode_canonical(None)


def examples(rule):
    """Return what the page shows as wrong, and as right."""
    return FENCE.findall(SECTIONS[rule][4])


def deploy(chain, source):
    return chain.deploy(source, sender=chain.accounts[0], value=100 * CBY, entitlements=["timer.schedule"])


@pytest.mark.parametrize("rule", ["E1101", "E1213"])
def test_deployment_refuses_what_the_linter_says_it_refuses(chain, rule):
    """With that code."""
    bad, good = examples(rule)
    with pytest.raises(RevertedError) as refused:
        deploy(chain, bad)
    assert f"E{refused.value.receipt.error.code}" == rule
    deploy(chain, good)


@pytest.mark.parametrize(("which", "status"), [(0, "reverted"), (1, "ok")])
def test_fire_reverts_when_its_handler_is_missing(chain, which, status):
    """TB001: nothing has said so before."""
    deploy(chain, examples("TB001")[which]).call("start", b"", sender=chain.accounts[0], check=True)
    chain.mine(6)
    [fire] = chain.receipts(origin="timer")
    assert fire.status == status


@pytest.mark.parametrize(("which", "status"), [(0, "reverted"), (1, "ok")])
def test_helper_without_an_underscore_is_refused_to_strangers(chain, which, status):
    """TB002: the handler around it is public."""
    prices = deploy(chain, examples("TB002")[which])
    assert prices.call("price", NOTHING, sender=chain.accounts[1]).status == status


@pytest.mark.parametrize(("limit", "status"), [(550_001, "reverted"), (550_000, "ok")])
def test_gas_limit_is_refused_above_the_cap(chain, limit, status):
    """TB004: as an error."""
    actor = deploy(chain, examples("TB004")[0].replace("400_000", str(limit)))
    assert actor.call("start", b"", sender=chain.accounts[0]).status == status


@pytest.mark.parametrize(("which", "loops"), [(0, 2), (1, 0)])
def test_strangers_start_loops_when_the_sender_is_not_checked(chain, which, loops):
    """TB005: each call is a loop more, at the actor's expense."""
    actor = deploy(chain, examples("TB005")[which])
    for stranger in chain.accounts[1:3]:
        actor.call("handle_timer", b"", sender=stranger)
    chain.mine(20)
    assert len(actor.timers()) == loops


@pytest.mark.parametrize(("which", "slug"), [(0, "pvm_error"), (1, None)])
def test_continuation_fails_when_it_uses_what_the_await_lost(which, slug):
    """TB007: after the reply, in another transaction."""
    source, world = examples("TB007")[which], World()
    world.call(source, "analyze", encode_canonical("this"))
    job = decode_canonical(world.messages[-1][1])
    reply = encode_canonical({"cid": job["cid"].hex(), "result": {"text": "hello"}})
    outcome, _ = world.call(source, "analyze__resume", reply)
    assert (outcome.error.slug if outcome.error else None) == slug


def test_interval_ends_after_one_fire_when_nothing_sets_it_again(chain):
    """TB011: the right one goes on."""
    for source in examples("TB011"):
        deploy(chain, source)
    chain.mine(35)
    assert [event.block_height for event in chain.events("collected")] == [11, 12, 22, 32]
