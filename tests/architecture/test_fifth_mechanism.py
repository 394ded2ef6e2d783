"""A mechanism that no code of the package knows works everywhere, by its rows in two registries."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conformance.mechanisms.doer import GAS, deploy_doer, open_chain, ran, set_timers, tell, wish
from tests.conformance.mechanisms.lifo import registered
from trailboss.cli.main import app

DUE = 12
TERMINAL = {"COLUMNS": "160"}


@pytest.fixture(autouse=True)
def fifth_mechanism() -> Iterator[None]:
    with registered():
        yield


def test_last_timer_runs_first_when_a_block_has_no_room_for_all(tmp_path: Path) -> None:
    """Order, decision record, explanation, quote, runway and every table of the command line follow."""
    directory = tmp_path / "chain"
    with open_chain("lifo", directory) as chain:
        actor = deploy_doer(chain)
        first, *_ = set_timers(actor, DUE, "a", "b", "c", "d")
        chain.advance_to(DUE)
        assert ran(actor) == ["d", "c", "b"]
        record = chain.decisions(DUE)
        assert record is not None
        assert [item.rank for item in record.examined] == [1, 2, 3, 4]
        assert "lane_full" in str(chain.explain(first))
        assert chain.quote(DUE + 20, GAS).mechanism == "lifo"
        chain.mine()
        assert ran(actor)[-1] == "a"
        tell(actor, "set_timers", wish(DUE + 20, "e"))
        assert chain.runway(actor)
    runner = CliRunner(env=TERMINAL)
    for words, expected in (
        (["status"], "lifo"),
        (["timers"], "100,000"),
        (["timers", "--state", "fired"], "fired"),
        (["block", str(DUE), "--lane"], "cut-off at rank 3"),
        (["timer", "explain", first.hex()], "fired"),
        (["events"], "timer.deferred"),
    ):
        result = runner.invoke(app, [*words, "--chain", str(directory)])
        assert result.exit_code == 0, result.output
        assert expected in result.output, result.output
