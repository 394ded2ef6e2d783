"""What the node counts, for Prometheus.

No label is a hash, or a path that a client made up. Addresses are labels of a few metrics, for a bounded number of
actors and payers; what the others come to stands under ``others``. Decision: D-73, D-98.
"""

from collections import Counter as Tally
from collections import OrderedDict
from collections.abc import Iterable
from math import inf
from threading import Lock
from typing import Final, TypeVar, cast

import prometheus_client as prometheus
from msgspec import Struct
from msgspec.structs import asdict, fields

from trailboss.chain import ChainReader
from trailboss.forecast.watchtower import FAILURES, PAYERS_SHOWN, Watch, burned_by_fires, count_failures
from trailboss.mempool import Statistics
from trailboss.model.blocks import Block, Origin
from trailboss.model.events import PROTOCOL_TOPICS, TIMER_ENDINGS
from trailboss.node.block_builder import Published
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address
from trailboss.views.calendar import TierCounts, tier_counts
from trailboss.views.records import block_events

PREFIX: Final = "trailboss_"
OF_ACTORS: Final = "actor"  # label of events that actors have named
TRANSACTIONS: Final = "transactions"
TIMERS: Final = "timers"
MILLISECONDS: Final = 1_000
OTHERS: Final = "others"  # label of the actors, or payers, that have none of their own
BLOCKS_AT_ONCE: Final = 64  # blocks that are counted together
ACTORS_MAX: Final = 100  # actors whose failures have labels of their own: those that failed last


Metric = TypeVar("Metric", prometheus.Counter, prometheus.Histogram)


class Described(Struct, frozen=True):
    """One metric."""

    name: str  # with the prefix that all have, and the suffix that counters have
    about: str  # what it is, in a sentence
    labels: dict[str, str]  # meaning of each label, by name


LISTED: Final = "listed"
PAYER_LABEL: Final = (
    f"address of one of the {PAYERS_SHOWN} with the shortest runway; {OTHERS}: of fires and blocks the least "
    "of the rest, of balances their sum"
)


class Metrics:
    """Counts what the node does, in a registry of its own for Prometheus. Any thread may call it."""

    def __init__(self) -> None:
        # When a counter began is not asked for, and would double the page.
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = prometheus.CollectorRegistry()
        self._failures: OrderedDict[str, Tally[str]] = OrderedDict()
        self._labels: dict[tuple[object, ...], prometheus.Counter | prometheus.Histogram] = {}
        self._rendering = Lock()
        self._counting = Lock()
        self._uncounted: list[Block] = []
        self.registry.register(self)  # first, so that all others are counted when they are collected
        prometheus.ProcessCollector(registry=self.registry)
        self.described: dict[str, list[Described]] = {"Counters": [], "Gauges": [], "Histograms": []}
        self._make_counters()
        self._make_gauges()
        self._make_histograms()
        counters = (self.transactions, self.fires, self.messages)
        self._of_origin = dict(zip((Origin.TRANSACTION, Origin.TIMER, Origin.MESSAGE), counters, strict=True))

    def _describe(self, kind: str, name: str, about: str, labels: dict[str, str]) -> tuple[str, str, tuple[str, ...]]:
        suffix = "_total" if kind == "Counters" else ""
        self.described[kind].append(Described(PREFIX + name + suffix, about, labels))
        return PREFIX + name, about, tuple(labels)

    def _make_counters(self) -> None:
        def counter(name: str, about: str, /, **labels: str) -> prometheus.Counter:
            return prometheus.Counter(*self._describe("Counters", name, about, labels), registry=self.registry)

        self.blocks = counter("blocks", "Blocks built, those that were lost again included.")
        self.blocks_cut = counter(
            "blocks_cut", "Blocks that left transactions waiting because half of the interval was used up."
        )
        self.reorgs = counter("reorgs", "Times that the chain went back.")
        self.transactions = counter("transactions", "Transactions in blocks.", status="ok or reverted")
        self.refusals = counter(
            "refusals", "Transactions that blocks or the mempool refused.", reason="slug of the refusal, as in errors"
        )
        self.fires = counter("fires", "Fires of timers.", status="ok or reverted")
        self.messages = counter("messages", "Messages delivered.", status="ok or reverted")
        self.timers_ended = counter(
            "timers_ended", "Timers that ended.", reason=", ".join(sorted(set(TIMER_ENDINGS.values())))
        )
        self.events = counter(
            "events", "Events in blocks.", name=f"of the protocol's events; {OF_ACTORS} for all that actors have named"
        )
        self.cycles = counter("cycles", "Cycles used in blocks.", by=f"{TRANSACTIONS} (with messages) or {TIMERS}")
        self.cells = counter("cells", "Cells used in blocks.")
        self.burned = counter(
            "burned", "Base units burned by what ran in blocks.", by=f"{TRANSACTIONS} (with messages) or {TIMERS}"
        )
        self.timer_failures = counter(
            "timer_failures",
            "Timers that ended without running, and fires that were reverted, by actor.",
            actor=f"address of one of the {ACTORS_MAX} that failed last; {OTHERS} for the rest together",
            reason=", ".join(FAILURES),
        )
        self.requests = counter(
            "requests",
            "Requests answered.",
            route="template of the path; none where there is no such path, or the answer came before",
            status="HTTP",
        )
        self.stream_ends = counter(
            "stream_ends",
            "Readers of /events that left or were ended.",
            reason="disconnected, stalled (did not read), stopping",
        )

    def _make_gauges(self) -> None:
        def gauge(name: str, about: str, /, **labels: str) -> prometheus.Gauge:
            return prometheus.Gauge(*self._describe("Gauges", name, about, labels), registry=self.registry)

        self.height = gauge("height", "Height of the head.")
        self.timestamp_seconds = gauge("timestamp_seconds", "Timestamp of the head, seconds since 1970.")
        self.basefee = gauge(
            "basefee",
            "Basefees of the next block, base units.",
            of="cycle and cell of transactions, timer_cycle and timer_cell of fires, lane if the timer lane is active",
        )
        self.timer_cycles_used = gauge("timer_cycles_used", "Cycles that fires used in the head.")
        self.timer_cycles_max = gauge("timer_cycles_max", "Cycles that fires may use in the next block.")
        self.timer_burned = gauge("timer_burned", "Base units that fires burned in the head.")
        self.payers = gauge(
            "payers", "Payers of live timers that the node has looked at.", part=f"{LISTED} below, or {OTHERS}"
        )
        self.payer_fires_left = gauge(
            "payer_fires_left",
            "Fires that a payer pays for before one finds too little, at the present basefees; +Inf if none does as "
            "things stand.",
            payer=PAYER_LABEL,
        )
        self.payer_blocks_left = gauge("payer_blocks_left", "Blocks until then; +Inf likewise.", payer=PAYER_LABEL)
        self.payer_balance = gauge("payer_balance", "What a payer holds, base units.", payer=PAYER_LABEL)
        self.timers = gauge("timers", "Live timers.", tier=", ".join(each.name for each in fields(TierCounts)))
        self.mempool_transactions = gauge("mempool_transactions", "Transactions that wait in the mempool.")
        self.mempool_bytes = gauge("mempool_bytes", "Wire bytes of the transactions that wait in the mempool.")
        self.stream_readers = gauge("stream_readers", "Readers of /events.")
        self.views_lent = gauge(
            "views_lent", "Views leased to other programs; a block ends the leases unused for a minute."
        )

    def _make_histograms(self) -> None:
        def histogram(name: str, about: str, /, *, buckets: tuple[float, ...], **labels: str) -> prometheus.Histogram:
            described = self._describe("Histograms", name, about, labels)
            return prometheus.Histogram(*described, registry=self.registry, buckets=buckets)

        self.block_build_seconds = histogram(
            "block_build_seconds",
            "Time from the beginning of a block to its publication, less any wait, for blocks that were built alone.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
        )
        self.block_late_seconds = histogram(
            "block_late_seconds",
            "Time by which a block of the interval was begun late.",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
        )
        self.request_seconds = histogram(
            "request_seconds",
            "Time from the head of a request to the beginning of its answer.",
            route="as for requests",
            buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
        )

    def record(self, published: Published) -> None:
        """Count a step of the chain. What its blocks hold is counted with that of others, or for the next page."""
        if published.left:
            self.blocks_cut.inc()
        if published.reorg_from is not None:
            self.reorgs.inc()
        if len(published.blocks) == 1:
            self.block_build_seconds.observe(published.seconds)
        if published.late is not None:
            self.block_late_seconds.observe(published.late)
        for rejection in published.refused.values():
            self.refused(rejection)
        with self._counting:
            self._uncounted += published.blocks
        if len(self._uncounted) >= BLOCKS_AT_ONCE:
            self._count()

    def collect(self) -> Iterable[prometheus.Metric]:
        """Count what has not been counted before the registry collects the metrics; it is no metric itself."""
        self._count()
        return ()

    def _count(self) -> None:
        """Count what blocks hold. Complexity: O(receipts + events)."""
        labelled = self._labelled
        with self._counting:
            blocks, self._uncounted = self._uncounted, []
            self.blocks.inc(len(blocks))
            headers = [block.header for block in blocks]
            receipts = [each for block in blocks for each in block.receipts]
            by_timers = sum(header.timer_cycles_used for header in headers)
            labelled(self.cycles, TIMERS).inc(by_timers)
            labelled(self.cycles, TRANSACTIONS).inc(sum(header.cycles_used for header in headers) - by_timers)
            self.cells.inc(sum(header.cells_used for header in headers))
            burned = sum(map(burned_by_fires, blocks))
            labelled(self.burned, TIMERS).inc(burned)
            labelled(self.burned, TRANSACTIONS).inc(sum(each.fee_burned for each in receipts) - burned)
            for actor, failures in count_failures(blocks).items():
                self._record_failures(str(Address(actor)), failures)
            for (origin, status), count in Tally((each.origin, each.status) for each in receipts).items():
                labelled(self._of_origin[origin], status.value).inc(count)
            for name, count in Tally(event.name for block in blocks for event in block_events(block)).items():
                labelled(self.events, name if name in PROTOCOL_TOPICS else OF_ACTORS).inc(count)
                if name in TIMER_ENDINGS:
                    labelled(self.timers_ended, TIMER_ENDINGS[name]).inc(count)

    def _labelled(self, metric: Metric, *labels: object) -> Metric:
        """Return what counts under labels that stay; the library checks them at every call."""
        found = self._labels.get((metric, *labels))
        if found is None:
            found = self._labels[(metric, *labels)] = metric.labels(*labels)
        return cast("Metric", found)

    def _record_failures(self, actor: str, failures: Tally[str]) -> None:
        """Count the failures of an actor, under its own label; the one that has not failed for longest makes room."""
        counter = self.timer_failures
        self._failures.setdefault(actor, Tally()).update(failures)
        self._failures.move_to_end(actor)
        for reason, count in failures.items():
            counter.labels(actor, reason).inc(count)
        if len(self._failures) > ACTORS_MAX:
            oldest, sums = self._failures.popitem(last=False)
            for reason, count in sums.items():
                counter.remove(oldest, reason)
                counter.labels(OTHERS, reason).inc(count)

    def refused(self, rejection: Rejection) -> None:
        """Count the refusal of a transaction."""
        self.refusals.labels(rejection.reason.slug).inc()

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answer: template of its path, its status, and seconds from the request's head to its beginning."""
        self._labelled(self.requests, route, status).inc()
        self._labelled(self.request_seconds, route).observe(seconds)

    def stream_began(self) -> None:
        """Count a reader of /events in."""
        self.stream_readers.inc()

    def stream_ended(self, reason: str) -> None:
        """Count a reader of /events out."""
        self.stream_readers.dec()
        self.stream_ends.labels(reason).inc()

    def render(self, chain: ChainReader, waiting: Statistics, views_lent: int, watch: Watch) -> bytes:
        """Return all metrics as Prometheus reads them, version 0.0.4 of its text format."""
        with self._rendering:
            self._stand(chain, waiting, views_lent)
            self._show_payers(watch)
            return prometheus.generate_latest(self.registry)

    def _stand(self, chain: ChainReader, waiting: Statistics, views_lent: int) -> None:
        header, rules = chain.head.header, chain.rules()
        basefees = dict(zip(("cycle", "cell"), rules.user_basefees(), strict=True))
        basefees |= zip(("timer_cycle", "timer_cell"), rules.timer_basefees(), strict=True)
        if rules.market.lane_basefee is not None:
            basefees["lane"] = rules.market.lane_basefee
        for of, price in basefees.items():
            self.basefee.labels(of).set(price)
        for tier, count in asdict(tier_counts(chain)).items():
            self.timers.labels(tier).set(count)
        self.height.set(header.height)
        self.timestamp_seconds.set(header.timestamp_ms // MILLISECONDS)
        self.timer_cycles_used.set(header.timer_cycles_used)
        self.timer_burned.set(burned_by_fires(chain.head))
        self.timer_cycles_max.set(rules.timer_cycles_max())
        self.mempool_transactions.set(waiting.transactions)
        self.mempool_bytes.set(waiting.bytes)
        self.views_lent.set(views_lent)

    def _show_payers(self, watch: Watch) -> None:
        """Show those with the shortest runway, each under its own label, and the rest together."""
        payers = [each for each in watch.payers if each.timers]
        shown, others = payers[:PAYERS_SHOWN], payers[PAYERS_SHOWN:]
        fires, blocks, balance = self.payer_fires_left, self.payer_blocks_left, self.payer_balance
        for gauge in (fires, blocks, balance):
            gauge.clear()
        for label, group in (*((str(each.payer), [each]) for each in shown), (OTHERS, others)):
            if group:
                fires.labels(label).set(min(inf if each.fires_left is None else each.fires_left for each in group))
                blocks.labels(label).set(min(inf if each.blocks_left is None else each.blocks_left for each in group))
                balance.labels(label).set(sum(each.balance for each in group))
        self.payers.labels(LISTED).set(len(shown))
        self.payers.labels(OTHERS).set(len(others))
