"""What the node counts, for Prometheus. No label is an address, a hash or a path that somebody made up.

Decision: D-73
"""

from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Final, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from trailboss.chain import ChainReader
from trailboss.chain.calendar import TierCounts, tier_counts
from trailboss.chain.views import block_events
from trailboss.model.blocks import Block, Origin
from trailboss.model.events import PROTOCOL_TOPICS, TIMER_ENDINGS
from trailboss.node.published import Published
from trailboss.primitives.errors import Rejection

PREFIX: Final = "trailboss_"
OF_ACTORS: Final = "actor"
"""Label of events that actors have named."""
TRANSACTIONS: Final = "transactions"
TIMERS: Final = "timers"
OF_ORIGIN: Final = {Origin.TRANSACTION: TRANSACTIONS, Origin.TIMER: "fires", Origin.MESSAGE: "messages"}
"""The counter of receipts of each origin."""
MILLISECONDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Described:
    """One metric.

    Attributes:
        name: Without the prefix that all have, and without the suffix that counters have.
        about: What it is, in a sentence.
        labels: Meaning of each label, by name.
        buckets: Upper bounds of a histogram's buckets, seconds.
    """

    name: str
    about: str
    labels: Mapping[str, str] = field(default_factory=dict)
    buckets: tuple[float, ...] = ()


COUNTERS: Final = (
    Described("blocks", "Blocks built, those that were lost again included."),
    Described("reorgs", "Times that the chain went back."),
    Described("transactions", "Transactions in blocks.", {"status": "ok or reverted"}),
    Described(
        "refusals", "Transactions that blocks or the mempool refused.", {"reason": "slug of the refusal, as in errors"}
    ),
    Described("fires", "Fires of timers.", {"status": "ok or reverted"}),
    Described("messages", "Messages delivered.", {"status": "ok or reverted"}),
    Described("timers_ended", "Timers that ended.", {"reason": ", ".join(sorted(set(TIMER_ENDINGS.values())))}),
    Described(
        "events", "Events in blocks.", {"name": f"of the protocol's events; {OF_ACTORS} for all that actors have named"}
    ),
    Described("cycles", "Cycles used in blocks.", {"by": f"{TRANSACTIONS} (with messages) or {TIMERS}"}),
    Described("cells", "Cells used in blocks."),
    Described(
        "requests",
        "Requests answered.",
        {
            "route": "template of the path; none where there is no such path, or the answer came before",
            "status": "HTTP",
        },
    ),
    Described(
        "connection_cuts",
        "Connections that were refused or cut for what came, or did not come, on them.",
        {
            "reason": "malformed, long head, late head, late body, pipelined (too many requests wait on it), unread "
            "(answers are not fetched), crowded (too many connections)"
        },
    ),
    Described(
        "stream_ends",
        "Readers of /events who left or were ended.",
        {"reason": "disconnected, stalled (did not read), stopping, cut (by the server)"},
    ),
)
GAUGES: Final = (
    Described("height", "Height of the head."),
    Described("timestamp_seconds", "Timestamp of the head, seconds since 1970."),
    Described(
        "basefee",
        "Basefees of the next block, base units.",
        {"of": "cycle and cell of transactions, timer_cycle and timer_cell of fires, lane if the timer lane is active"},
    ),
    Described("timer_cycles_used", "Cycles that fires used in the head."),
    Described("timer_cycles_max", "Cycles that fires may use in the next block."),
    Described("timers", "Live timers.", {"tier": ", ".join(each.name for each in fields(TierCounts))}),
    Described("mempool_transactions", "Transactions that wait in the mempool."),
    Described("mempool_bytes", "Wire bytes of the transactions that wait in the mempool."),
    Described("stream_readers", "Readers of /events."),
    Described("views_lent", "Views lent to programs elsewhere; a block ends the leases of those unused for a minute."),
)
HISTOGRAMS: Final = (
    Described(
        "block_build_seconds",
        "Time from the beginning of a block to its publication, for blocks that were built alone.",
        buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
    ),
    Described(
        "block_late_seconds",
        "Time by which a block came after its place in the grid of the interval.",
        buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
    ),
    Described(
        "request_seconds",
        "Time from the head of a request to the beginning of its answer.",
        {"route": "as for requests"},
        buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
    ),
)


class Waiting(Protocol):
    """How much waits in a mempool, as its statistics tell."""

    @property
    def transactions(self) -> int:
        """Transactions in all."""
        ...

    @property
    def bytes(self) -> int:
        """Wire bytes in all."""
        ...


class Metrics:
    """Counts what the node does. Any thread may call it.

    Attributes:
        registry: What Prometheus reads: of this node alone.
    """

    def __init__(self) -> None:
        # When a counter began is not asked for, and would double the page.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._counters = {
            each.name: Counter(PREFIX + each.name, each.about, tuple(each.labels), registry=self.registry)
            for each in COUNTERS
        }
        self._gauges = {
            each.name: Gauge(PREFIX + each.name, each.about, tuple(each.labels), registry=self.registry)
            for each in GAUGES
        }
        self._histograms = {
            each.name: Histogram(
                PREFIX + each.name, each.about, tuple(each.labels), registry=self.registry, buckets=each.buckets
            )
            for each in HISTOGRAMS
        }

    # What has happened

    def record(self, published: Published) -> None:
        """Count a step of the chain.

        Complexity: O(receipts + events).
        """
        self._counters["blocks"].inc(len(published.blocks))
        if published.reorg_from is not None:
            self._counters["reorgs"].inc()
        if len(published.blocks) == 1:
            self._histograms["block_build_seconds"].observe(published.seconds)
        if published.late is not None:
            self._histograms["block_late_seconds"].observe(published.late)
        for rejection in published.refused.values():
            self.refused(rejection)
        for block in published.blocks:
            self._record_block(block)

    def _record_block(self, block: Block) -> None:
        header = block.header
        self._counters["cycles"].labels(TIMERS).inc(header.timer_cycles_used)
        self._counters["cycles"].labels(TRANSACTIONS).inc(header.cycles_used - header.timer_cycles_used)
        self._counters["cells"].inc(header.cells_used)
        for (origin, status), count in Tally((each.origin, each.status) for each in block.receipts).items():
            self._counters[OF_ORIGIN[origin]].labels(status.value).inc(count)
        for name, count in Tally(event.name for event in block_events(block)).items():
            self._counters["events"].labels(name if name in PROTOCOL_TOPICS else OF_ACTORS).inc(count)
            if name in TIMER_ENDINGS:
                self._counters["timers_ended"].labels(TIMER_ENDINGS[name]).inc(count)

    def refused(self, rejection: Rejection) -> None:
        """Count the refusal of a transaction."""
        self._counters["refusals"].labels(rejection.reason.slug).inc()

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answer.

        Args:
            route: Template of the path.
            status: Of the answer.
            seconds: From the head of the request to the beginning of the answer.
        """
        self._counters["requests"].labels(route, status).inc()
        self._histograms["request_seconds"].labels(route).observe(seconds)

    def cut(self, reason: str) -> None:
        """Count a connection that was cut."""
        self._counters["connection_cuts"].labels(reason).inc()

    def stream_began(self) -> None:
        """Count a reader of /events in."""
        self._gauges["stream_readers"].inc()

    def stream_ended(self, reason: str) -> None:
        """Count a reader of /events out."""
        self._gauges["stream_readers"].dec()
        self._counters["stream_ends"].labels(reason).inc()

    # How things stand

    def render(self, chain: ChainReader, waiting: Waiting, views_lent: int) -> bytes:
        """Return all metrics as Prometheus reads them, version 0.0.4 of its text format.

        Args:
            chain: As it stands.
            waiting: What waits in the mempool.
            views_lent: Views that programs elsewhere have borrowed.
        """
        header, rules = chain.head.header, chain.rules()
        basefees = dict(zip(("cycle", "cell"), rules.user_basefees(), strict=True))
        basefees |= zip(("timer_cycle", "timer_cell"), rules.timer_basefees(), strict=True)
        if rules.lane is not None:
            basefees["lane"] = rules.lane.basefee
        for of, price in basefees.items():
            self._gauges["basefee"].labels(of).set(price)
        for tier, count in asdict(tier_counts(chain)).items():
            self._gauges["timers"].labels(tier).set(count)
        for name, value in {
            "height": header.height,
            "timestamp_seconds": header.timestamp_ms // MILLISECONDS,
            "timer_cycles_used": header.timer_cycles_used,
            "timer_cycles_max": rules.timer_cycles_max(),
            "mempool_transactions": waiting.transactions,
            "mempool_bytes": waiting.bytes,
            "views_lent": views_lent,
        }.items():
            self._gauges[name].set(value)
        return generate_latest(self.registry)
