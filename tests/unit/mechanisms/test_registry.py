"""The one list of mechanisms."""

import pytest

from trailboss.mechanisms import registry
from trailboss.mechanisms.base import Follower
from trailboss.mechanisms.fifo import Fifo
from trailboss.mechanisms.registry import MECHANISMS, Succession, build_mechanism
from trailboss.model.configs import MarketKind
from trailboss.params import load_params
from trailboss.primitives.errors import ConfigurationError


def test_mechanism_bears_its_name_when_it_is_built_from_the_list() -> None:
    """Every factory makes the mechanism that it is listed under."""
    params = load_params()
    assert [build_mechanism(name, params).name for name in MECHANISMS] == list(MECHANISMS)
    assert isinstance(build_mechanism("fifo", params), Fifo)


def test_mechanism_takes_the_chains_parameters() -> None:
    """The bounds on examined timers, living and dead, are the chain's."""
    params = load_params(overrides={"timers.due_examined_max": 7, "timers.dead_examined_max": 3})
    policies = [build_mechanism(name, params).policy for name in ("fifo", "lane", "auction")]
    assert [(policy.examined_max, policy.dead_examined_max) for policy in policies] == [(7, 3)] * 3


def test_unknown_mechanism_is_refused_when_it_is_asked_for() -> None:
    """The refusal lists what there is."""
    with pytest.raises(ConfigurationError) as refusal:
        build_mechanism("lottery", load_params())
    assert str(refusal.value) == f"unknown mechanism 'lottery'; there are: {', '.join(MECHANISMS)}"


@pytest.mark.spec("L-30")
def test_lane_succeeds_the_first_mechanism_once_it_is_active() -> None:
    """Each keeps what it remembers: both are there from the beginning, and the same one answers every time."""
    mechanisms = Succession("fifo", load_params())
    before, after = (mechanisms.by_market[kind] for kind in (MarketKind.NONE, MarketKind.LANE))
    assert (before.name, after.name) == ("fifo", "lane")
    assert before is mechanisms.first
    assert mechanisms.by_market[MarketKind.LANE] is after


@pytest.mark.spec("L-30")
def test_lane_succeeds_itself_when_the_chain_started_with_it() -> None:
    """There is one index, and no second one that would not know what has joined."""
    mechanisms = Succession("lane", load_params())
    assert mechanisms.first.name == "lane"
    assert mechanisms.by_market[MarketKind.LANE] is mechanisms.first


def test_succession_is_refused_when_its_first_mechanism_is_unknown() -> None:
    """As the mechanism itself is."""
    with pytest.raises(ConfigurationError, match="unknown mechanism 'lottery'"):
        Succession("lottery", load_params())


def test_all_mechanisms_forget_when_the_chain_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Going back may cross the activation in either direction."""
    forgotten: list[str] = []

    class Forgetful(Follower):
        def __init__(self, name: str) -> None:
            self.name = name

        def rewind(self) -> None:
            forgotten.append(self.name)

    rows = {"fifo": lambda _: Forgetful("fifo"), "lane": lambda _: Forgetful("lane")}
    monkeypatch.setattr(registry, "MECHANISMS", rows)
    Succession("fifo", load_params()).rewind()
    assert forgotten == ["fifo", "lane"]
