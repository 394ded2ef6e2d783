"""The one list of mechanisms."""

import pytest

from trailboss.mechanisms.fifo import Fifo
from trailboss.mechanisms.registry import MECHANISMS, build_mechanism
from trailboss.params import load_params
from trailboss.primitives.errors import ConfigurationError


def test_mechanism_bears_its_name_when_it_is_built_from_the_list() -> None:
    """Every factory makes the mechanism that it is listed under."""
    params = load_params()
    assert [build_mechanism(name, params).name for name in MECHANISMS] == list(MECHANISMS)
    assert isinstance(build_mechanism("fifo", params), Fifo)


def test_mechanism_takes_the_chains_parameters() -> None:
    """The bound on examined timers is the chain's."""
    params = load_params(overrides={"timers.due_examined_max": 7})
    assert build_mechanism("fifo", params).policy.examined_max == 7


def test_unknown_mechanism_is_refused_when_it_is_asked_for() -> None:
    """The refusal lists what there is."""
    with pytest.raises(ConfigurationError) as refusal:
        build_mechanism("lottery", load_params())
    assert str(refusal.value) == f"unknown mechanism 'lottery'; there are: {', '.join(MECHANISMS)}"
