"""A chain as a whole: made, shown, mined, set back (``init`` to ``revert``), and kept (``export`` to ``replay``)."""

import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec.structs import replace

from trailboss.chain import Chain, ChainReader
from trailboss.chain.development import ACCOUNT_BALANCE
from trailboss.chain.differences import Parting
from trailboss.chain.export import check_export, export_chain, import_chain, load_chain
from trailboss.chain.next_fire import WITHIN, advance_to_fire, has_fire
from trailboss.chain.opening import AUTOMATIC, GenesisOptions, new_genesis
from trailboss.chain.replay import compare_chains, replay_to, verify_chain
from trailboss.cli import options, output
from trailboss.cli.command import Invocation, command, printed_pairs
from trailboss.cli.errors import FAILED, Mistake
from trailboss.cli.remote.outcomes import compare_with_node
from trailboss.cli.targets import is_url, open_directory
from trailboss.cli.values import parse_overrides, read_text
from trailboss.execution.genesis import Genesis, parse_genesis
from trailboss.model.blocks import Block, Origin, Status
from trailboss.model.events import TIMER_DEFERRED, TIMER_ENDINGS
from trailboss.params.loader import SUBJECTS
from trailboss.primitives.units import format_cby
from trailboss.sandbox.engines import engine_name
from trailboss.views import status as chain_status
from trailboss.views.json_values import to_json_value
from trailboss.views.records import Printed, block_events, block_prints
from trailboss.views.text import counted, time_words

INTERRUPTED: Final = 130  # exit status of a program that Ctrl-C ends
PRINTED_MAX: Final = 200  # lines printed by actors that are shown: the last ones
LONGEST_NUMBER: Final = 15  # digits of a number that is still written out, if it is a power of ten
PARAMETERS: Final = output.columns("parameter | >value | set by | >preset")
COUNTED: Final = ("fired", "reverted", "expired", "unfunded", "cancelled", "deferred", "messages")


@command(on_chain=False)
def init(
    run: Invocation,
    directory: Annotated[
        Path, options.argument("DIR", "Directory of the new chain.", "chain", envvar=options.DIRECTORY_VARIABLE)
    ] = options.DIRECTORY_PATH,
    genesis_file: Annotated[
        Path | None, options.option("FILE", "Start from this genesis, a TOML file.", name="--genesis")
    ] = None,
    preset: options.Preset = None,
    mechanism: options.Mechanism = None,
    param: options.Params = None,
    accounts: options.Accounts = None,
    vm: options.Engine = None,
) -> None:
    """Create a chain in a directory.

    Without a genesis file it is a development chain: it has ten funded accounts, 0 to 9, and one that may govern,
    deployer. Their keys are public, and anyone may send for anyone: such a chain is for trying things out.

    Example: trailboss init play --mechanism lane --accounts 20
    """
    overrides = parse_overrides(param or [])
    wanted = GenesisOptions(preset=preset, mechanism=mechanism, overrides=overrides, accounts=accounts, vm=vm)
    genesis = (
        new_genesis(replace(wanted, vm=vm or AUTOMATIC)) if genesis_file is None else _genesis_in(genesis_file, wanted)
    )
    rules = {name: getattr(genesis, name) for name in ("chain_id", "preset", "mechanism")}
    funded = f"{len(genesis.accounts)}, holding {format_cby(sum(genesis.accounts.values()))} CBY"
    if genesis_file is None:
        # The deployer is one of them.
        funded = f"0 to {len(genesis.accounts) - 2} and deployer, {format_cby(ACCOUNT_BALANCE)} CBY each"
    with closing(Chain.create(directory, genesis)) as chain:
        place, root = str(directory), chain.state_root
        run.show(
            {
                "directory": place,
                **rules,
                "vm": engine_name(genesis.image),
                "instance_id": genesis.instance_id(),
                "state_root": root,
            },
            {
                "chain": place,
                "rules": _rules_words(genesis),
                "accounts": funded,
                "state root": root,
            },
        )


def _rules_words(genesis: Genesis | chain_status.GenesisFacts, mechanism: str = "") -> str:
    vm = engine_name(genesis.image) if isinstance(genesis, Genesis) else genesis.vm
    return f"chain id {genesis.chain_id}, preset {genesis.preset}, mechanism {mechanism or genesis.mechanism}, vm {vm}"


def _genesis_in(path: Path, wanted: GenesisOptions) -> Genesis:
    if replace(wanted, vm=None) != GenesisOptions():
        raise Mistake(
            "a genesis file has a preset, a mechanism, parameters and accounts of its own",
            "leave out --preset, --mechanism, --param and --accounts, or --genesis",
        )
    genesis = parse_genesis(read_text(path, "genesis"))
    if wanted.vm not in (None, engine_name(genesis.image)):
        raise Mistake(
            f"{path} starts a chain with vm {engine_name(genesis.image)}, not {wanted.vm}",
            "leave out --vm, or state the image in the file: trailboss sandbox status",
        )
    return genesis


@command()
def status(run: Invocation) -> None:
    """Show the state of the chain: height, roots, money, timers, size.

    Example: trailboss status --chain play
    """
    found = chain_status.status_of(run.chain)
    document, where = {"url": run.place, **to_json_value(found)}, run.place
    if not is_url(run.place):
        size = sum(path.stat().st_size for path in Path(run.place).iterdir() if path.is_file())
        document = {"directory": run.place, **to_json_value(found), "bytes": size}
        where += f", {size:,} bytes"
    first, present = found.genesis.mechanism, found.mechanism
    change = "" if first == present else f" since {found.lane.activation_height}, {first} before"
    timers = found.timers
    # A state watch fires any number of times, and no fire ends it.
    fires = "" if timers.fires == timers.fired else f", {counted(timers.fires, 'fire')}"
    facts: dict[str, output.Cell] = {
        "chain": where,
        "height": found.height,
        "time": time_words(found.timestamp_ms),
        "block": found.block_hash,
        "state root": found.state_root,
        "genesis": found.genesis.block_hash,
        "first block": f"{found.first_block}, at which this node joined the network" if found.first_block else None,
        "rules": _rules_words(found.genesis, f"{present}{change}"),
        "basefees": f"{found.basefees.cycle:,} a cycle, {found.basefees.cell:,} a cell",
        **output.drawn_facts(chain_status.status_facts(found)),
        "money": f"{format_cby(found.supply)} CBY at genesis, {format_cby(found.burned)} burned since",
        "timers": f"{timers.live:,} live{fires}; of {timers.scheduled:,} scheduled {timers.fired:,} fired, "
        f"{timers.expired:,} expired, {timers.unfunded:,} unfunded, {timers.cancelled:,} cancelled",
    }
    run.show(document, facts)


@command()
def params(
    run: Invocation,
    path: Annotated[
        options.Texts, options.argument("PATH", "Only these, as timers or timers.max_ttl_blocks.", "all")
    ] = None,
) -> None:
    """Show the parameters in force in the next block, and who set them.

    Example: trailboss params timers
    """
    chain = run.chain
    settings = list(chain_status.settings_of(chain))
    wanted = [item for item in settings if not path or any(chain_status.lies_under(item.path, each) for each in path)]
    for each in path or []:
        if not any(chain_status.lies_under(item.path, each) for item in settings):
            subjects = ", ".join((*SUBJECTS, chain_status.MULTIPLIERS))
            raise Mistake(f"there is no parameter {each!r}", f"give a path, or one of the subjects: {subjects}")
    if run.as_json:
        output.print_json({"preset": chain.genesis.preset, "parameters": wanted})
    else:
        output.print_table(f"Parameters, preset {chain.genesis.preset}", PARAMETERS, list(map(_setting_row, wanted)))


def _setting_row(setting: chain_status.Setting) -> tuple[output.Cell, ...]:
    preset = "" if setting.preset in (None, setting.value) else _short_number(setting.preset)
    return setting.path, _short_number(setting.value), setting.set_by, preset


def _short_number(value: int) -> str:
    """Return a number as text: long powers of ten as powers, so that the table fits a terminal."""
    digits = str(value)
    is_long_power = len(digits) > LONGEST_NUMBER and digits == "1".ljust(len(digits), "0")
    return f"10^{len(digits) - 1}" if is_long_power else f"{value:,}"


@command()
def mine(
    run: Invocation,
    blocks: Annotated[
        options.Number, options.argument("N", "Number of blocks.", "1", parser=options.whole_number(1))
    ] = None,
    to: Annotated[options.Number, options.height("Mine up to this height instead.", least=1)] = None,
) -> None:
    """Build blocks without transactions; due timers run in them.

    Each timer runs in the block of its height. Stretches in which nothing is due pass at once. Ctrl-C stops between two
    blocks, and what is built stays.

    Example: trailboss mine --to 500
    """
    if blocks is not None and to is not None:
        raise Mistake("both a number of blocks and --to are given", "give one of the two")
    chain = run.chain
    end = chain.height + (blocks or 1) if to is None else to
    if end < chain.height:
        raise Mistake(
            f"height {end} lies behind: the chain is at {chain.height}",
            "give a height above it, or drop blocks with `trailboss reorg`",
        )
    _build(run, chain.advance_to(end), end - chain.height)
    if chain.height < end:
        output.note(f"stopped before height {end}; what is built stays")
        raise typer.Exit(INTERRUPTED)


@command()
def next_fire(
    run: Invocation,
    actor: Annotated[options.Text, options.option("ACTOR", "Await a fire of this actor.", "any")] = None,
    within: Annotated[int, options.number("Most blocks to build.", least=1)] = WITHIN,
) -> None:
    """Build blocks up to the next in which a timer fires.

    Ctrl-C stops between two blocks, and what is built stays.

    Example: trailboss next
    """
    chain = run.chain
    whose, last = run.actor(actor), chain.height + within
    built, is_interrupted = _build(run, advance_to_fire(chain, chain.advance_to, last, whose), within)
    # A node at an interval may have built more blocks by now.
    if built is not None and has_fire(built, whose):
        return
    if is_interrupted:
        output.note("stopped before the next fire; what is built stays")
        raise typer.Exit(INTERRUPTED)
    timers = f"timer of {whose}" if whose else "timer"
    is_over = chain.height < last
    output.note(f"no {timers} is left that could fire" if is_over else f"no {timers} fired in {within:,} blocks")
    raise typer.Exit(FAILED)


def _build(run: Invocation, blocks: Iterator[Block], most: int) -> tuple[Block | None, bool]:
    """Build blocks, show what happened in them, and return the last one, and whether Ctrl-C has stopped that."""
    chain, block = run.chain, None
    start, tally, printed = chain.height, Counter[str](), deque[Printed](maxlen=PRINTED_MAX)
    with output.progress("blocks", most, quiet=run.as_json) as advance, _interruptible() as is_interrupted:
        for block in blocks:
            _count(tally, block)
            printed += block_prints(block)
            advance()
            if is_interrupted():
                break
    counts = {name: tally[name] for name in COUNTED}
    happened = [f"{count:,} {name}" for name, count in counts.items() if count]
    run.show(
        {
            "from_height": start,
            "height": chain.height,
            "blocks": chain.height - start,
            "counts": counts,
            "live_timers": chain.timer_count(),
            "state_root": chain.state_root,
            "printed": list(printed),
        },
        {
            "height": f"{start} to {chain.height}",
            "timers": f"{', '.join(happened) or 'nothing fired'}; {chain.timer_count():,} live",
            "state root": chain.state_root,
        },
    )
    if not run.as_json:
        pairs = zip(printed, printed_pairs(printed), strict=True)
        shown = [(label, f"block {line.block_height}, {words}") for line, (label, words) in pairs]
        output.print_pairs(output.console(), shown)
    return block, is_interrupted()


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C instead of raising in the middle of a block; a second one raises as usual."""
    pressed: list[int] = []

    def note_it(number: int, _frame: object) -> None:
        pressed.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note_it)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _count(tally: Counter[str], block: Block) -> None:
    if not (block.receipts or block.events):
        return
    endings = (TIMER_ENDINGS.get(event.name) for event in block_events(block))
    tally.update(ending for ending in endings if ending not in (None, "fired"))
    tally["deferred"] += sum(event.name == TIMER_DEFERRED for event in block.events)
    tally["messages"] += sum(receipt.origin is Origin.MESSAGE for receipt in block.receipts)
    fires = [receipt for receipt in block.receipts if receipt.origin is Origin.TIMER]
    # By their receipts: a state watch fires any number of times, and no fire ends it.
    tally["fired"] += len(fires)
    tally["reverted"] += sum(receipt.status is Status.REVERTED for receipt in fires)


@command()
def reorg(run: Invocation, depth: Annotated[int, options.number("Blocks to drop.", least=1)]) -> None:
    """Drop the last blocks, with all their effects.

    New blocks take their place; the old ones are gone.

    Example: trailboss reorg --depth 3
    """
    before = run.chain.height
    if depth > before:
        raise Mistake(f"the chain has {before} blocks after genesis, fewer than {depth}", "drop fewer")
    run.chain.reorg(depth)
    _show_back(run, before)


@command()
def snapshot(run: Invocation) -> None:
    """Take a snapshot of the chain, and print its mark for `trailboss revert`.

    Example: trailboss snapshot
    """
    facts: dict[str, output.Cell] = {"mark": run.chain.mark(), "height": run.chain.height}
    run.show(facts, facts)


@command()
def revert(run: Invocation, mark: Annotated[str, options.argument("MARK", "What snapshot printed.")]) -> None:
    """Go back to a snapshot: height, timers, money, everything.

    Example: trailboss revert 12:0x5f…
    """
    before = run.chain.height
    run.chain.go_back(mark)
    _show_back(run, before)


def _show_back(run: Invocation, before: int) -> None:
    run.show(
        {"from_height": before, "height": run.chain.height, "state_root": run.chain.state_root},
        {"height": f"{before} back to {run.chain.height}", "state root": run.chain.state_root},
    )


@command()
def export(run: Invocation, file: Annotated[Path, options.argument("FILE", "File to write.")]) -> None:
    """Write the whole chain to one file.

    It holds the genesis, the blocks and the root after each. A file of that name is replaced once the new one is
    complete.

    Example: trailboss export play.trail
    """
    chain = run.chain
    with output.progress("exporting", chain.height, quiet=run.as_json) as advance:
        export_chain(chain, file, advance)
    _show_whole(run, chain, "exported", file)


@command(on_chain=False)
def import_(
    run: Invocation,
    file: Annotated[Path, options.argument("FILE", "File that export wrote.")],
    directory: Annotated[Path, options.argument("DIR", "Directory of the new chain.")],
) -> None:
    """Build a chain from an export, in a new directory.

    Every block is built again and must give the root that the file names. The result is a complete chain, or none.

    Example: trailboss import play.trail copy
    """
    height = check_export(file).height
    with output.progress("importing", height, quiet=run.as_json) as advance:
        imported = import_chain(file, directory, advance)
    with closing(imported) as chain:
        _show_whole(run, chain, "imported", directory)


def _show_whole(run: Invocation, chain: ChainReader, verb: str, place: Path) -> None:
    size = f", {place.stat().st_size:,} bytes" if place.is_file() else ""
    run.show(
        {verb: str(place), "height": chain.height, "state_root": chain.state_root},
        {verb: f"{place}{size}", "height": chain.height, "state root": chain.state_root},
    )


@command()
def verify(run: Invocation) -> None:
    """Replay the whole chain and compare every block, root and sum.

    Exits with 1 at any difference from what the blocks make of the genesis.

    Example: trailboss verify --chain play
    """
    with open_directory(run.place) as chain, output.progress("replaying", chain.height, quiet=run.as_json) as advance:
        report = verify_chain(chain, advance)
    run.show_text({"holds": report.ok} | to_json_value(report), str(report))
    if not report.ok:
        raise typer.Exit(FAILED)


@command()
def replay(
    run: Invocation,
    to: Annotated[options.Number, options.number("Replay up to this height.", "the last block", metavar="H")] = None,
    diff: Annotated[
        str | None,
        options.option(
            "OTHER", "Compare with this chain: a directory, a file that export wrote, or the URL of a node."
        ),
    ] = None,
) -> None:
    """Replay the chain up to a height, or find where two chains diverge.

    With --diff it names the first block in which they differ, and in it the first transaction and the first key of the
    state; it exits with 1 if there is one.

    With a node nothing is replayed: both say what that block has changed.

    Example: trailboss replay --diff http://localhost:4000
    """
    with open_directory(run.place) as chain:
        if to is not None and to > chain.height:
            raise Mistake(f"height {to} lies ahead: the chain is at {chain.height}", "give a height that it has")
        if diff is not None:
            _compare(run, chain, diff, to)
            return
        end = chain.height if to is None else to
        with output.progress("replaying", end, quiet=run.as_json) as advance:
            replica = replay_to(chain, end, advance)
    found = replica.head.hash
    document = {"height": end, "block_hash": found, "state_root": replica.state_root}
    run.show(document, {"height": end, "block": found, "state root": replica.state_root})


def _compare(run: Invocation, chain: Chain, other: str, to: int | None) -> None:
    if is_url(other):
        parting = compare_with_node(chain, other, to, (str(run.place), other))
    else:
        parting = _compare_files(run, chain, Path(other), to)
    same = "the two chains are the same" + ("" if to is None else f" up to block {to}")
    run.show_text({"same": parting is None, "parting": parting}, same if parting is None else str(parting))
    if parting is not None:
        raise typer.Exit(FAILED)


def _compare_files(run: Invocation, chain: Chain, path: Path, to: int | None) -> Parting | None:
    if path.exists() and path.samefile(run.place):
        raise Mistake(f"--diff names {path}, the chain itself", "name another chain, or an export")
    steps = chain.height if to is None else to
    with closing(load_chain(path)) as other, output.progress("replaying", steps, quiet=run.as_json) as advance:
        return compare_chains(chain, other, to, advance, names=(str(run.place), str(path)))
