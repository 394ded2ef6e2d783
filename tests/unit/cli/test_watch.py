"""The table of `trailboss watch` in a terminal: drawn over and over again, within its width."""

import io

import pytest
from msgspec.structs import replace
from rich.console import Console

from tests.unit.cli.test_alerts import PAYER
from trailboss.cli.commands import watch as module
from trailboss.cli.commands.watch import Tower, Wanted
from trailboss.forecast.watchtower import Watch


def watch_of(*payers: object) -> Watch:
    """Return what there is to see."""
    return Watch(
        height=120,
        first_block=21,
        last_block=120,
        cycle_basefee=10_000,
        cell_basefee=20_000,
        lane_basefee=1_000,
        burned=5 * 10**8,
        burned_recently=10**11,
        known=len(payers),
        payers=tuple(payers),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("columns", [80, 120])
def test_live_table_is_drawn_over_when_blocks_come(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look with its facts; what does not fit is left out, not broken."""
    out = io.StringIO()
    monkeypatch.setattr(module, "console", lambda: Console(file=out, force_terminal=True, width=columns))
    wanted = Wanted(alert=None, within=10, payer=None, limit=5, once=None, rules=None)
    tower = Tower(wanted, as_json=False)
    with tower.screen() as show:
        tower.see(watch_of(), show)
        rich = replace(PAYER, balance=999_999 * 10**9 + 1, fires_left=None, blocks_left=None, dry_at=None)
        tower.see(watch_of(PAYER, rich), show)
    assert tower.alerts == 1
    drawn = out.getvalue()
    assert module.NOBODY in drawn
    printer = Console(width=columns, file=io.StringIO())
    frame = [printer.render_str(line).plain for line in drawn.rpartition("after block")[2].splitlines()]
    text = "\n".join(frame)
    for words in ("cycle 10,000, cell 20,000, lane 1,000", "0.5 CBY in this block, 1 a block in the last 100", "150"):
        assert words in text
    assert ("blocks left" in text) == (columns == 120)
    assert "…" in text
    assert "never" in text
