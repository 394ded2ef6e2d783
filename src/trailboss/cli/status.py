"""``trailboss status``: where a chain stands."""

from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import asdict as struct_dict

from trailboss.chain import Chain
from trailboss.cli.opening import open_chain
from trailboss.cli.options import DIRECTORY, AsJson, Directory
from trailboss.cli.output import print_facts, print_json
from trailboss.governance.rules import Rules
from trailboss.model.configs import amount_of
from trailboss.primitives.units import format_cby

MILLISECONDS = 1_000


def status(directory: Directory = DIRECTORY, as_json: AsJson = False) -> None:
    """Tell where the chain stands: height, roots, money, timers, size."""
    with open_chain(directory) as chain:
        if as_json:
            print_json(_document(chain, directory))
        else:
            print_facts(_facts(chain, directory))


def _document(chain: Chain, directory: Path) -> dict[str, object]:
    header, genesis = chain.head.header, chain.genesis
    supply, burned = chain.economy()
    cycle, cell = chain.rules().user_basefees()
    return {
        "directory": str(directory),
        "height": chain.height,
        "block_hash": chain.head.hash,
        "state_root": chain.state_root,
        "timestamp_ms": header.timestamp_ms,
        "genesis": {
            "chain_id": genesis.chain_id,
            "preset": genesis.preset,
            "mechanism": genesis.mechanism,
            "instance_id": genesis.instance_id(),
            "block_hash": chain.blocks[0].hash,
        },
        "mechanism": chain.mechanism.name,
        "basefees": {"cycle": cycle, "cell": cell},
        "lane": _lane_document(chain.rules()),
        "supply": supply,
        "burned": burned,
        "timers": {"live": chain.timer_count(), **struct_dict(chain.totals())},
        "bytes": _size(directory),
    }


def _facts(chain: Chain, directory: Path) -> dict[str, str | int | None]:
    header, genesis = chain.head.header, chain.genesis
    supply, burned = chain.economy()
    cycle, cell = chain.rules().user_basefees()
    totals = struct_dict(chain.totals())
    ended = ", ".join(f"{totals[name]:,} {name}" for name in ("fired", "expired", "unfunded", "cancelled"))
    return {
        "chain": f"{directory}, {_size(directory):,} bytes",
        "height": chain.height,
        "time": time_words(header.timestamp_ms),
        "block": str(chain.head.hash),
        "state root": str(chain.state_root),
        "genesis": str(chain.blocks[0].hash),
        "rules": f"chain id {genesis.chain_id}, preset {genesis.preset}, mechanism {_mechanism_words(chain)}",
        "basefees": f"{cycle:,} a cycle, {cell:,} a cell",
        "lane": _lane_words(chain.rules()),
        "money": f"{format_cby(supply)} CBY at genesis, {format_cby(burned)} burned since",
        "timers": f"{chain.timer_count():,} live; of {totals['scheduled']:,} scheduled {ended}",
    }


def _lane_document(rules: Rules) -> dict[str, object]:
    lane = rules.lane
    return {
        "active": lane is not None,
        "activation_height": rules.params.lane.activation_height or None,
        "basefee": None if lane is None else lane.basefee,
        "previous_tip": None if lane is None else lane.previous_tip,
        "burned": 0 if lane is None else amount_of(lane.state.burned),
    }


def _mechanism_words(chain: Chain) -> str:
    first, present = chain.genesis.mechanism, chain.mechanism.name
    if first == present:
        return present
    return f"{present} since {chain.rules().params.lane.activation_height}, {first} before"


def _lane_words(rules: Rules) -> str | None:
    begins = rules.params.lane.activation_height
    if rules.lane is None:
        return f"begins at height {begins}" if begins else None
    burned = format_cby(amount_of(rules.lane.state.burned))
    return f"basefee {rules.lane.basefee:,} a cycle, median tip {rules.lane.previous_tip:,}, {burned} CBY burned by it"


def time_words(timestamp_ms: int) -> str:
    """Return a point in time as people write it; as a number if it lies in no year that the calendar has."""
    try:
        return f"{datetime.fromtimestamp(timestamp_ms // MILLISECONDS, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms:,} ms since 1970"


def _size(directory: Path) -> int:
    """Return the bytes that the files of a directory take on disk."""
    return sum(path.stat().st_size for path in directory.iterdir() if path.is_file())
