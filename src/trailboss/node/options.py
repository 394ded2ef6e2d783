"""The options of a node."""

from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Self

from msgspec import Struct, field

from trailboss.chain.opening import GenesisOptions
from trailboss.primitives.errors import ConfigurationError

HOST: Final = "127.0.0.1"
PORT: Final = 4000
PORT_MAX: Final = 65_535
BLOCK_TIME_MS: Final = 1_000
BLOCK_TIME_MIN_MS: Final = 10
"""A block takes a few milliseconds, and readers of the chain need some of the time between two."""
BLOCK_TIME_MAX_MS: Final = 3_600_000
RATE_LIMIT: Final = 100  # requests a second that a node answers, by default, where other machines reach it
BLOCK_TRANSACTIONS_MAX: Final = 2_000
"""Transactions that one block is offered at most: as many transfers as the mainnet preset's cells allow."""


class Rhythm(Enum):
    """What makes a node build a block."""

    INTERVAL = "interval"
    AUTO = "auto"
    DUE = "due"
    MANUAL = "manual"
    NETWORK = "network"


class Pace(Struct, frozen=True):
    """When blocks are built."""

    # ``INTERVAL``: one every so often, empty ones too. ``AUTO``: one as soon as a transaction waits, and one every so
    # often while a timer lives. ``DUE``: one as soon as a transaction waits, and while a timer lives all blocks up to
    # the next in which something happens, at once. ``MANUAL``: only on request; the others build on request too.
    # ``NETWORK``: when the validators of a network agree on one.
    rhythm: Rhythm
    # Milliseconds from one block to the next, 10 to 3,600,000, under the first two; else 0. Under ``AUTO`` they are
    # counted from the last block, whatever that came for.
    block_time_ms: int = 0

    def __post_init__(self) -> None:
        is_timed = self.rhythm in (Rhythm.INTERVAL, Rhythm.AUTO)
        if is_timed and not BLOCK_TIME_MIN_MS <= self.block_time_ms <= BLOCK_TIME_MAX_MS:
            raise ConfigurationError(
                f"a block every {self.block_time_ms} ms cannot be: the time from one block to the next is "
                f"{BLOCK_TIME_MIN_MS} ms to {BLOCK_TIME_MAX_MS} ms"
            )
        if not is_timed and self.block_time_ms:
            raise ConfigurationError(f"the pace {self.rhythm.value} has no block time, not {self.block_time_ms} ms")

    @property
    def is_prompt(self) -> bool:
        """Whether a transaction that waits has a block at once."""
        return self.rhythm in (Rhythm.AUTO, Rhythm.DUE)

    @classmethod
    def every(cls, block_time_ms: int) -> Self:
        """Return the pace of a block every so many milliseconds."""
        return cls(Rhythm.INTERVAL, block_time_ms)


AUTO: Final = Pace(Rhythm.AUTO, BLOCK_TIME_MS)
DUE: Final = Pace(Rhythm.DUE)
MANUAL: Final = Pace(Rhythm.MANUAL)
NETWORK: Final = Pace(Rhythm.NETWORK)


class Clock(Enum):
    """Where the timestamps of blocks come from. Decision: D-70."""

    CHAIN = "chain"
    WALL = "wall"


class LogForm(Enum):
    """How log lines look: to people, or as JSON."""

    HUMAN = "human"
    JSON = "json"


class NodeOptions(Struct, frozen=True, kw_only=True):
    """How a node runs."""

    pace: Pace = field(default_factory=lambda: Pace.every(BLOCK_TIME_MS))
    clock: Clock = Clock.CHAIN  # where the timestamps of blocks come from
    development: bool = True  # whether the calls under ``/dev`` are answered
    directory: Path | None = None  # the chain's directory; None for a temporary one, which goes with the node
    genesis: GenesisOptions = field(default_factory=GenesisOptions)  # how the chain must have started
    host: str = HOST
    port: int = PORT  # 0 for any that is free
    # Requests a second that are answered; 0 for any number. `default_rate_limit` knows the usual one.
    rate_limit: int = 0
    cors_origins: tuple[str, ...] = ()  # web origins whose pages may read answers
    explorer: bool = True
    # Replies to runner jobs, from this TOML file; None for a chain whose runner is as it was. Decision: D-113.
    replies: Path | None = None
    block_transactions_max: int = BLOCK_TRANSACTIONS_MAX  # transactions that one block is offered at most

    def __post_init__(self) -> None:
        if not 0 <= self.port <= PORT_MAX:
            raise ConfigurationError(f"port {self.port} cannot be: ports are 0..={PORT_MAX}")
        if self.rate_limit < 0:
            raise ConfigurationError(f"a rate limit of {self.rate_limit} cannot be: give a number, or 0 for none")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the node."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, reached by itself alone.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def default_rate_limit(host: str) -> int:
    """Return the requests a second that a node on this host answers by default; 0 for any number."""
    return 0 if is_loopback(host) else RATE_LIMIT
