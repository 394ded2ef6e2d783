"""``trailboss status``: where a chain stands."""

from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import asdict as struct_dict

from trailboss.chain import Chain
from trailboss.cli.opening import open_chain
from trailboss.cli.options import DIRECTORY, AsJson, Directory
from trailboss.cli.output import counted, print_facts, print_json
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
        "auction": _auction_document(chain),
        "globalbox": _globalbox_document(chain.rules()),
        "supply": supply,
        "burned": burned,
        "timers": {"live": chain.timer_count(), "fires": chain.fire_count(), **struct_dict(chain.totals())},
        "bytes": _size(directory),
    }


def _facts(chain: Chain, directory: Path) -> dict[str, str | int | None]:
    header, genesis = chain.head.header, chain.genesis
    supply, burned = chain.economy()
    cycle, cell = chain.rules().user_basefees()
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
        "auction": _auction_words(chain),
        "Globalbox": _globalbox_words(chain.rules()),
        "money": f"{format_cby(supply)} CBY at genesis, {format_cby(burned)} burned since",
        "timers": _timer_words(chain),
    }


def _timer_words(chain: Chain) -> str:
    totals = struct_dict(chain.totals())
    ended = ", ".join(f"{totals[name]:,} {name}" for name in ("fired", "expired", "unfunded", "cancelled"))
    if chain.rules().globalbox is None:
        return f"{chain.timer_count():,} live; of {totals['scheduled']:,} scheduled {ended}"
    # A state watch fires any number of times, and no fire ends it.
    fires = counted(chain.fire_count(), "fire")
    return f"{chain.timer_count():,} live, {fires}; of {totals['scheduled']:,} set have ended: {ended}"


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


def _auction_document(chain: Chain) -> dict[str, int] | None:
    if chain.rules().auction is None:
        return None
    found = chain.auction()
    return {
        "epoch": found.epoch,
        "next_epoch_at": found.next_epoch_at,
        "waiting": found.waiting,
        "actors": len(found.actors),
        "budget_cycles": chain.rules().params.auction.budget_cycles,
    }


def _auction_words(chain: Chain) -> str | None:
    found = _auction_document(chain)
    if found is None:
        return None
    waiting, actors = found["waiting"], found["actors"]
    return (
        f"epoch {found['epoch']:,}, the next one begins at {found['next_epoch_at']}; "
        f"{counted(waiting, 'timer')} {'waits' if waiting == 1 else 'wait'}, "
        f"{counted(actors, 'actor')} {'has' if actors == 1 else 'have'} a weight; "
        f"{found['budget_cycles']:,} cycles a block"
    )


def _globalbox_document(rules: Rules) -> dict[str, int] | None:
    state = rules.globalbox
    if state is None:
        return None
    length = rules.params.globalbox.epoch_blocks
    return {
        "queued": state.queued,
        "mailbox": state.next - state.first,
        "next_deliver_seq": state.next,
        "ended_remembered": state.next_ended - state.first_ended,
        "governance_epoch": rules.height // length,
        "next_governance_epoch_at": (rules.height // length + 1) * length,
    }


def _globalbox_words(rules: Rules) -> str | None:
    found = _globalbox_document(rules)
    if found is None:
        return None
    return (
        f"{counted(found['queued'], 'fire')} queued, {found['mailbox']:,} in the mailbox, of "
        f"{found['next_deliver_seq']:,}; {counted(found['ended_remembered'], 'ended timer')} remembered; "
        f"governance epoch {found['governance_epoch']:,}, the next one begins at {found['next_governance_epoch_at']}"
    )


def time_words(timestamp_ms: int) -> str:
    """Return a point in time as people write it; as a number if it lies in no year that the calendar has."""
    try:
        return f"{datetime.fromtimestamp(timestamp_ms // MILLISECONDS, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms:,} ms since 1970"


def _size(directory: Path) -> int:
    """Return the bytes that the files of a directory take on disk."""
    return sum(path.stat().st_size for path in directory.iterdir() if path.is_file())
