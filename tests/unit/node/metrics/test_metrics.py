"""Metrics: they say what has happened, under the names that the page has, and no label grows without end."""

from collections import Counter
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.api.stream.broadcasts import CBY, SPEAKER, Broadcasts
from tools.metrics_page import metrics_page
from trailboss.api import stream
from trailboss.forecast.watchtower import look
from trailboss.mempool.records import Statistics
from trailboss.model.events import PROTOCOL_TOPICS, TIMER_ENDINGS
from trailboss.node.block_builder import Published
from trailboss.node.metrics import Metrics
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Hash32
from trailboss.testing import LocalChain
from trailboss.views.records import block_events

WAITING = Statistics(transactions=7, executable=6, senders=2, bytes=1_234, journal_bytes=0)


@pytest.fixture
def world() -> Any:
    """Return a chain on which actors speak, stumble, and have timers of every tier."""
    with Broadcasts() as found:
        local = found.local
        actor = local.deploy(SPEAKER, sender=local.accounts[0], value=100 * CBY)
        for _ in range(3):
            actor.call("arm", b"", sender=local.accounts[0], check=True)
        actor.call("say", b"a=1;b=2", sender=local.accounts[0], check=True)
        actor.call("nothing", b"", sender=local.accounts[0])
        local.mine(3)
        yield found


def read(metrics: Metrics, local: LocalChain) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return every sample that is rendered, by name and labels."""
    text = metrics.render(local.chain, WAITING, 3, look(local.chain)).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_counters_say_what_is_in_the_blocks_when_steps_are_recorded(world: Broadcasts) -> None:
    """Against a slow count over all blocks, however they were published."""
    metrics = Metrics()
    blocks = world.chain.blocks[1:]
    metrics.record(Published(view=world.chain.publish(), blocks=tuple(blocks[:3])))
    for block in blocks[3:]:
        metrics.record(Published(view=world.chain.publish(), blocks=(block,), seconds=0.02, late=0.3, left=2))
    found = read(metrics, world.local)

    receipts = Counter((each.origin.value, each.status.value) for block in blocks for each in block.receipts)
    assert {origin for origin, _ in receipts} == {"transaction", "timer"}
    assert {status for _, status in receipts} == {"ok", "reverted"}
    names = {"transaction": "transactions", "timer": "fires", "message": "messages"}
    for (origin, status), count in receipts.items():
        assert found[f"trailboss_{names[origin]}_total", (("status", status),)] == count
    events = Counter(event.name for block in blocks for event in block_events(block))
    for name in events.keys() & PROTOCOL_TOPICS:
        assert found["trailboss_events_total", (("name", name),)] == events[name]
    own = sum(count for name, count in events.items() if name not in PROTOCOL_TOPICS)
    assert found["trailboss_events_total", (("name", "actor"),)] == own > 2
    ends = Counter(TIMER_ENDINGS[name] for name in events.elements() if name in TIMER_ENDINGS)
    for reason, count in ends.items():
        assert found["trailboss_timers_ended_total", (("reason", reason),)] == count
    assert found["trailboss_blocks_total", ()] == len(blocks)
    assert found["trailboss_blocks_cut_total", ()] == len(blocks) - 3
    cycles = sum(block.header.cycles_used for block in blocks)
    timer_cycles = sum(block.header.timer_cycles_used for block in blocks)
    assert found["trailboss_cycles_total", (("by", "timers"),)] == timer_cycles > 0
    assert found["trailboss_cycles_total", (("by", "transactions"),)] == cycles - timer_cycles > 0
    assert found["trailboss_cells_total", ()] == sum(block.header.cells_used for block in blocks)
    assert found["trailboss_block_build_seconds_count", ()] == len(blocks) - 3
    assert found["trailboss_block_build_seconds_bucket", (("le", "0.025"),)] == len(blocks) - 3
    assert found["trailboss_block_late_seconds_bucket", (("le", "0.25"),)] == 0


def test_gauges_say_how_the_chain_stands_when_they_are_rendered(world: Broadcasts) -> None:
    """By the view that is given, whatever was recorded."""
    found = read(Metrics(), world.local)
    chain = world.chain
    tiers = Counter("due" if timer.height <= chain.height else chain.tier(timer) for timer in chain.timers())
    for tier in ("due", "ring", "epoch", "overflow"):
        assert found["trailboss_timers", (("tier", tier),)] == tiers[tier]
    cycle, cell = chain.rules().user_basefees()
    assert found["trailboss_basefee", (("of", "cycle"),)] == cycle
    assert found["trailboss_basefee", (("of", "cell"),)] == cell
    assert ("trailboss_basefee", (("of", "lane"),)) not in found
    assert found["trailboss_height", ()] == chain.height
    assert found["trailboss_timestamp_seconds", ()] == chain.head.header.timestamp_ms // 1_000
    assert found["trailboss_timer_cycles_used", ()] == chain.head.header.timer_cycles_used
    assert found["trailboss_timer_cycles_max", ()] == chain.rules().timer_cycles_max()
    assert (found["trailboss_mempool_transactions", ()], found["trailboss_mempool_bytes", ()]) == (7, 1_234)
    assert found["trailboss_views_lent", ()] == 3


def test_lane_has_a_basefee_when_it_is_active() -> None:
    """Then there is one more."""
    with LocalChain(mechanism="lane") as local:
        found = read(Metrics(), local)
        lane = local.chain.rules().market
        assert found["trailboss_basefee", (("of", "lane"),)] == lane.basefee


def test_reorgs_and_refusals_are_counted_when_they_happen(world: Broadcasts) -> None:
    """By the slug of the refusal."""
    metrics = Metrics()
    rejection = Rejection(RejectionReason.NONCE_MISMATCH, "a nonce")
    metrics.record(Published(view=world.chain.publish(), reorg_from=2, refused={Hash32(bytes(32)): rejection}))
    metrics.refused(rejection)
    found = read(metrics, world.local)
    assert found["trailboss_reorgs_total", ()] == 1
    assert found["trailboss_refusals_total", (("reason", "nonce_mismatch"),)] == 2
    assert found["trailboss_blocks_total", ()] == 0
    assert found["trailboss_block_build_seconds_count", ()] == 0


def test_page_describes_every_metric_when_it_is_rendered(world: Broadcasts) -> None:
    """Name, help and labels of what Prometheus gets are those of the page, and nothing is on it that is not there."""
    metrics = Metrics()
    metrics.record(Published(view=world.chain.publish(), blocks=tuple(world.chain.blocks[1:])))
    metrics.refused(Rejection(RejectionReason.NONCE_MISMATCH, "a nonce"))
    metrics.answered("/height", 200, 0.1)
    metrics.stream_began()
    metrics.stream_ended("stopping")
    page = metrics_page()
    text = metrics.render(world.chain, WAITING, 3, look(world.chain)).decode()
    families = {
        each.name: each for each in text_string_to_metric_families(text) if not each.name.startswith("process_")
    }
    declared = {each.name.removesuffix("_total"): each for group in metrics.described.values() for each in group}
    assert families.keys() == declared.keys()
    for name, family in families.items():
        shown = name + ("_total" if family.type == "counter" else "")
        assert f"| `{shown}` | {family.documentation} |" in page
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        # On this chain no message has been delivered, no timer has failed, and nobody pays for one that can fire.
        is_empty = name in ("trailboss_messages", "trailboss_timer_failures") or name.startswith("trailboss_payer_")
        assert labels == set(declared[name].labels) or is_empty


def test_page_names_every_reason_when_there_is_one() -> None:
    """Why readers were ended."""
    about = {each.name: each.labels for each in Metrics().described["Counters"]}
    for reason in (stream.DISCONNECTED, stream.STALLED):
        assert reason in about["trailboss_stream_ends_total"]["reason"]


def test_registries_are_apart_when_there_are_several_nodes() -> None:
    """Two nodes of one process count for themselves."""
    first, second = Metrics(), Metrics()
    first.stream_began()
    assert first.registry.get_sample_value("trailboss_stream_readers") == 1
    assert second.registry.get_sample_value("trailboss_stream_readers") == 0
