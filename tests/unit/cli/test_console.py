"""The console's own statements: what it does when its chain fails it."""

from types import SimpleNamespace
from typing import NoReturn

import pytest

from trailboss.cli.commands.console import Prompt, names_of
from trailboss.cli.errors import Mistake, NotFound
from trailboss.testing import LocalChain


def test_statement_runs_when_the_node_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    """The error is a message, and what was typed before stays at hand."""

    def refresh() -> NoReturn:
        raise NotFound("there is no node at http://localhost:4000", "start one with `trailboss dev`")

    prompt = Prompt({"chain": SimpleNamespace(refresh=refresh), "held": 2})
    assert not prompt.runsource("held += 3")
    assert capsys.readouterr().err == (
        "NotFound: there is no node at http://localhost:4000 (start one with `trailboss dev`)\n"
    )
    assert dict(prompt.locals)["held"] == 5


def test_interrupt_is_a_word_and_the_chain_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C in the middle of blocks shows none of the lines that built them."""
    with LocalChain() as chain:
        prompt = Prompt(names_of(chain))
        prompt.locals["interrupt"] = interrupt
        prompt.runsource("chain.mine_until(interrupt)")
        assert capsys.readouterr().err == "KeyboardInterrupt\n"
        prompt.runsource("mine(2)")
        assert chain.height == 2


def interrupt() -> NoReturn:
    """Raise what Ctrl-C raises."""
    raise KeyboardInterrupt


def test_helpers_ask_for_a_sender_where_no_account_is_funded() -> None:
    """As on the node of a public chain; with a sender they work."""
    with LocalChain() as chain:
        account, chain.accounts = chain.accounts[0], ()
        deploy = names_of(chain)["deploy"]
        with pytest.raises(Mistake, match="funds no development account"):
            deploy("def init(payload):\n    pass\n")
        assert deploy("def init(payload):\n    pass\n", sender=account).receipt.ok
