"""What a node is told when it starts."""

import pytest

from trailboss.node.options import RATE_LIMIT, NodeOptions, default_rate_limit
from trailboss.primitives.errors import ConfigurationError


@pytest.mark.parametrize(
    ("host", "is_loopback", "limit"),
    [("127.0.0.1", True, 0), ("localhost", True, 0), ("::1", True, 0), ("0.0.0.0", False, RATE_LIMIT)],
)
def test_requests_are_limited_when_others_can_reach_the_node(host: str, is_loopback: bool, limit: int) -> None:
    """This machine may ask as often as it likes."""
    assert NodeOptions(host=host).is_loopback is is_loopback
    assert default_rate_limit(host) == limit


@pytest.mark.parametrize("numbers", [{"port": -1}, {"port": 65_536}, {"rate_limit": -1}])
def test_options_are_refused_when_a_number_cannot_be(numbers: dict[str, int]) -> None:
    """The message names it."""
    with pytest.raises(ConfigurationError, match=str(next(iter(numbers.values())))):
        NodeOptions(**numbers)
