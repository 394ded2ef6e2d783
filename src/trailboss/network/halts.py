"""Why a node of a network stops by itself, and what its operator does next. Each reason has a name that stays."""

from enum import Enum
from typing import Final

from trailboss.primitives.errors import TrailbossError

HALTED_STATUS: Final = 3  # exit status of a node that has stopped by itself and must not be started again unchanged


class Halt(Enum):
    """A reason to stop, and the next step."""

    OTHER_GENESIS = (
        "other-genesis",
        "put the genesis.toml back with which this home has begun, or make a new home for another network",
    )
    HEIGHT_GAP = (
        "height-gap",
        "chain/ and engine/data are not of one node: move chain/ and all of engine/data but priv_validator_state.json "
        "away, and let the node join the network again",
    )
    STATE_DIFFERS = (
        "state-differs",
        "compare with another node's chain, by trailboss replay --diff; then move chain/ and all of engine/data but "
        "priv_validator_state.json away, and join the network again",
    )
    VALIDATOR_STATE_LOST = (
        "validator-state-lost",
        "put the validator's own engine/data/priv_validator_state.json back, without which it could sign two blocks of "
        "one height; if it is lost, join as a full node with another key",
    )
    ENGINE_STOPPED = ("engine-stopped", "read logs/engine.log from its end; the engine names what it cannot go on with")
    STORAGE = ("storage", "make room, or repair the disk, then start the node again: what it had committed is safe")

    def __init__(self, slug: str, next_step: str) -> None:
        self.slug = slug
        self.next_step = next_step


class NetworkHaltError(TrailbossError):
    """A node must not go on in its network."""

    def __init__(self, halt: Halt, what: str) -> None:
        """Name the reason, and the values that show it."""
        super().__init__(f"{halt.slug}: {what}; {halt.next_step}")
        self.halt = halt
        self.what = what
