"""Game loop: ticks after the block's moves, a loop that sleeps, and one that is woken after it starved."""

import json

import pytest

CBY = 10**9


@pytest.fixture
def game(chain):
    """A game with money for many ticks."""
    return chain.deploy("examples/actors/game_loop.py", sender=chain.accounts[0], value=100 * CBY)


def world(game):
    """Return the game's world."""
    return json.loads(game.storage[b"world"])


def pull(chain, game, side, players):
    """Let so many players pull in one block."""
    with chain.one_block():
        for player in chain.accounts[:players]:
            game.call("pull", side, sender=player)


def test_game_counts_every_pull_of_a_block_when_the_tick_comes_in_the_same_block(chain, game):
    """The tick runs after all transactions of its block, in whatever order they came."""
    pull(chain, game, b"right", 3)
    (tick,) = game.timers()
    chain.advance_to(tick.height - 1)

    pull(chain, game, b"left", 1)

    assert chain.height == tick.height
    assert world(game)["rope"] == 2
    assert world(game)["ticks"] == 1


def test_game_sleeps_when_nobody_pulls(chain, game):
    """No timer waits, no fee is paid, until the next pull."""
    pull(chain, game, b"right", 1)
    chain.mine(10)
    assert game.timers() == []
    asleep = game.balance

    chain.advance_to(500)
    assert game.balance == asleep

    pull(chain, game, b"right", 1)
    chain.mine(10)
    assert world(game)["rope"] == 2
    assert game.balance < asleep


def test_game_ends_when_the_rope_is_over(chain, game):
    """The last tick schedules nothing, and later pulls are refused."""
    pull(chain, game, b"left", 10)
    chain.mine(2)

    assert json.loads(chain.events("game.won")[0].data) == {"by": "left", "ticks": 1}
    assert game.timers() == []
    late = game.call("pull", b"right", sender=chain.accounts[0])
    assert late.error.context["exception_message"] == "the game is over: left has won"


def test_game_goes_on_when_it_is_funded_after_its_tick_starved(chain):
    """The tick ended unfunded and the loop with it; the pulls are still there, and the next one wakes it."""
    game = chain.deploy("examples/actors/game_loop.py", sender=chain.accounts[0], value=CBY)
    pull(chain, game, b"right", 4)
    chain.mine(5)
    assert len(chain.events("TimerCancelledInsufficientFunds")) == 1
    assert world(game)["ticks"] == 0

    chain.transfer(game, 100 * CBY, sender=chain.accounts[0], check=True)
    pull(chain, game, b"right", 1)
    chain.mine(5)

    assert world(game)["rope"] == 5
