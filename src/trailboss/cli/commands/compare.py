"""``compare``: one scenario under several mechanisms."""

from pathlib import Path
from typing import Annotated, Final

from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import STUDY_INSTALL, Mistake, installed
from trailboss.cli.options import Number, Texts, argument, completing, flag, number, option
from trailboss.mechanisms.registry import MECHANISMS

SEEDS_MAX: Final = 1_000
BLOCKS_MAX: Final = 10_000_000


@command(on_chain=False)
def compare_mechanisms(
    run: Invocation,
    scenario: Annotated[Path, argument("SCENARIO", "A TOML file; see examples/scenarios.")],
    mechanism: Annotated[
        Texts, option("NAME", "Only this mechanism; may be repeated.", "all", autocompletion=completing(MECHANISMS))
    ] = None,
    seeds: Annotated[int, number("Runs of each mechanism, with seeds from 1 on.", least=2, most=SEEDS_MAX)] = 5,
    blocks: Annotated[
        Number, number("Blocks that are measured.", "those of the scenario", least=1, most=BLOCKS_MAX)
    ] = None,
    whole: Annotated[bool, flag("--whole", "Run whole chains: the same numbers, in many times as long.")] = False,
) -> None:
    """Run one scenario under every mechanism and compare the results, with their intervals.

    All mechanisms run with the same seeds, in place of the scenario's own.

    Example: trailboss compare examples/scenarios/congested.toml
    """
    names = tuple(dict.fromkeys(mechanism or MECHANISMS))
    for name in names:
        if name not in MECHANISMS:
            raise Mistake(f"there is no mechanism {name!r}", f"there are: {', '.join(MECHANISMS)}")
    with installed("a comparison", STUDY_INSTALL):
        from trailboss.cli.comparison_session import show_comparison  # noqa: PLC0415

        show_comparison(run, scenario, names, seeds, blocks, is_whole=whole)
