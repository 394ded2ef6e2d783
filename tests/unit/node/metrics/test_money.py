"""What /metrics says of money: exact, bounded, and enough for the alert rules."""

import re
import shutil
import subprocess
from importlib import resources
from math import inf
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from tests.unit.forecast.test_runway import CBY, PULSE
from tests.unit.node.metrics.test_metrics import WAITING
from trailboss.forecast.watchtower import PAYERS_SHOWN, look
from trailboss.model.blocks import Block, Origin, Status
from trailboss.node.block_builder import Published
from trailboss.node.metrics import ACTORS_MAX, OTHERS, Metrics
from trailboss.primitives.octets import Address
from trailboss.testing import LocalChain

RULES = resources.files("trailboss.node").joinpath("alerts.yml")
FAILS = PULSE + "\ndef handle_timer(payload):\n    raise ValueError(payload)\n"


@pytest.fixture(scope="module")
def chain() -> LocalChain:
    """Return a chain on which an actor runs dry, another one stumbles, and a third one goes on."""
    local = LocalChain()
    for source, value in ((PULSE, 7), (FAILS, 90), (PULSE, 900)):
        actor = local.deploy(source, sender=local.accounts[0], value=value * CBY)
        actor.call("start", b"2,60000", sender=local.accounts[0], check=True)
    local.mine(30)
    return local


def recorded(chain: LocalChain) -> Metrics:
    """Return the metrics of a node that has built all blocks of a chain."""
    metrics = Metrics()
    metrics.record(Published(view=chain.chain.publish(), blocks=tuple(chain.chain.blocks[1:])))
    return metrics


def test_failures_and_burns_are_those_of_the_blocks(chain: LocalChain) -> None:
    """By actor, and by what ran."""
    metrics = recorded(chain)
    receipts = [receipt for block in chain.chain.blocks for receipt in block.receipts]
    for by, is_timer in (("timers", True), ("transactions", False)):
        burned = sum(each.fee_burned for each in receipts if (each.origin is Origin.TIMER) == is_timer)
        assert metrics.registry.get_sample_value("trailboss_burned_total", {"by": by}) == burned > 0
    failed = [each.sender for each in receipts if each.origin is Origin.TIMER and each.status is Status.REVERTED]
    labels = {"actor": str(Address(failed[0])), "reason": "reverted"}
    assert metrics.registry.get_sample_value("trailboss_timer_failures_total", labels) == len(failed)
    [unfunded] = chain.events(name="TimerCancelledInsufficientFunds")
    labels = {"actor": str(unfunded.emitter), "reason": "unfunded"}
    assert metrics.registry.get_sample_value("trailboss_timer_failures_total", labels) == 1


def test_actors_have_labels_up_to_a_bound_when_many_fail(chain: LocalChain) -> None:
    """Those that failed last; the rest are summed, and nothing is lost."""
    [block] = [each for each in chain.chain.blocks if any(event.name.startswith("TimerCanc") for event in each.events)]
    metrics = Metrics()
    for at in range(3 * ACTORS_MAX):
        metrics.record(Published(view=chain.chain.publish(), blocks=(of_actor(block, at),)))
    metrics.record(Published(view=chain.chain.publish(), blocks=(of_actor(block, 0),)))
    [family] = [each for each in metrics.registry.collect() if each.name == "trailboss_timer_failures"]
    counts = {each.labels["actor"]: each.value for each in family.samples}
    assert len(counts) == ACTORS_MAX + 1
    assert sum(counts.values()) == 3 * ACTORS_MAX + 1
    assert counts[str(address(0))] == 1
    assert str(address(1)) not in counts
    assert counts[OTHERS] == 2 * ACTORS_MAX + 1


def address(number: int) -> Address:
    """Return the address of a number."""
    return Address(number.to_bytes(20, "big"))


def of_actor(block: Block, number: int) -> Block:
    """Return a block that holds nothing but that a timer of an actor ended unfunded."""
    events = [event for event in block.events if event.name.startswith("TimerCanc")]
    told = tuple(type(event)(event.name, address(number), event.data, event.timer_id) for event in events)
    return replace(block, receipts=(), events=told)


def test_payers_have_labels_up_to_a_bound_when_there_are_many(chain: LocalChain) -> None:
    """Those with the shortest runway; of the rest the least, and the sum of what they hold."""
    watch = look(chain.chain)
    some = next(each for each in watch.payers if each.timers)
    payers = [
        replace(some, payer=address(at), fires_left=at, blocks_left=2 * at, balance=at) for at in range(PAYERS_SHOWN)
    ]
    never = replace(some, payer=address(99), fires_left=None, blocks_left=None, balance=7)
    metrics = Metrics()
    for found in ((*payers, never, never), payers[:3], (*payers, replace(never, fires_left=50, blocks_left=60), never)):
        metrics.render(chain.chain, WAITING, 0, replace(watch, payers=found))
    value = metrics.registry.get_sample_value
    for at in range(PAYERS_SHOWN):
        assert value("trailboss_payer_fires_left", {"payer": str(address(at))}) == at
        assert value("trailboss_payer_blocks_left", {"payer": str(address(at))}) == 2 * at
    of_others = {"payer": OTHERS}
    assert value("trailboss_payer_fires_left", of_others) == 50
    assert value("trailboss_payer_blocks_left", of_others) == 60
    assert value("trailboss_payer_balance", of_others) == 14
    assert value("trailboss_payers", {"part": "others"}) == 2
    metrics.render(chain.chain, WAITING, 0, replace(watch, payers=(never,)))
    assert value("trailboss_payer_fires_left", {"payer": str(never.payer)}) == inf
    assert value("trailboss_payer_fires_left", of_others) is None


# The rules


def rules() -> list[dict[str, Any]]:
    """Return the rules that are shipped."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_rules_name_metrics_and_labels_that_there_are() -> None:
    """Each selector of each expression, each label of each sentence, and each value that a label may have."""
    declared = {each.name: each.labels for group in Metrics().described.values() for each in group}
    assert len(rules()) > 5
    for rule in rules():
        assert {"alert", "expr", "labels", "annotations"} <= rule.keys()
        selectors = re.findall(r"(trailboss_\w+)(?:\{([^}]*)\})?", rule["expr"])
        assert selectors, rule["alert"]
        for name, conditions in selectors:
            labels = declared[name]
            for label, value in re.findall(r'(\w+)="([^"]*)"', conditions):
                assert value in re.findall(r"\w+", labels[label]), (rule["alert"], label, value)
        known = {label for name, _ in selectors for label in declared[name]}
        said = " ".join(rule["annotations"].values())
        assert set(re.findall(r"\$labels\.(\w+)", said)) <= known
        assert rule["annotations"].keys() == {"summary", "description"}


def test_rules_load_in_prometheus() -> None:
    """As its own tool checks them."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    with resources.as_file(RULES) as path:
        checked = subprocess.run([promtool, "check", "rules", path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_rules_alert_when_prometheus_runs_them(tmp_path: Any) -> None:
    """A payer with 12 fires left, and an actor whose counter has just begun."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    series = [
        {"series": 'trailboss_payer_fires_left{payer="0xa"}', "values": "500 12x20"},
        {"series": 'trailboss_payer_fires_left{payer="0xb"}', "values": "900x21"},
        {
            "series": 'trailboss_timer_failures_total{actor="0xc",reason="unfunded"}',
            "values": "_x5 1x15",
        },
    ]
    cases = [
        ("TrailbossPayerRunsDry", "3m", [{"payer": "0xa", "severity": "warning"}]),
        ("TrailbossTimersUnfunded", "4m", []),
        ("TrailbossTimersUnfunded", "8m", [{"actor": "0xc", "reason": "unfunded", "severity": "critical"}]),
        ("TrailbossTimersUnfunded", "20m", []),
    ]
    firing = [
        {
            "expr": f'ALERTS{{alertname="{name}"}}',
            "eval_time": at,
            "exp_samples": [
                {
                    "labels": "ALERTS"
                    + "{"
                    + ",".join(
                        f'{label}="{value}"'
                        for label, value in {"alertname": name, "alertstate": "firing", **labels}.items()
                    )
                    + "}",
                    "value": 1,
                }
                for labels in found
            ],
        }
        for name, at, found in cases
    ]
    test = {
        "rule_files": ["alerts.yml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": firing}],
    }
    (tmp_path / "alerts.yml").write_text(RULES.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test), encoding="utf-8")
    ran = subprocess.run(
        [promtool, "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
