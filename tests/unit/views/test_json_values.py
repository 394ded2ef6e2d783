"""Values as JSON has them."""

import json
from collections import OrderedDict
from enum import StrEnum

import msgspec
import pytest

from trailboss.model.configs import TimerConfig
from trailboss.model.timers import DeferralReason
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.json_values import to_json_value

ACTOR = Address(b"\xab" * 20)


class Pair(msgspec.Struct):
    left: object
    right: object


class Point(msgspec.Struct):
    x: int


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**200, 2**200),
        ("é", "é"),
        (b"\x00\xff", "0x00ff"),
        (bytearray(b"\x01"), "0x01"),
        (ACTOR, str(ACTOR)),
        (Hash32(bytes(32)), "0x" + "00" * 32),
        (Colour.RED, "red"),
        ((1, [b"a"], ()), [1, ["0x61"], []]),
        (Pair(ACTOR, Pair(1, b"")), {"left": str(ACTOR), "right": {"left": 1, "right": "0x"}}),
        (Point(3), {"x": 3}),
        (OrderedDict({b"k": 1, 2: b"v", ACTOR: None}), {"0x6b": 1, "2": "0x76", str(ACTOR): None}),
        ({DeferralReason.OVER_CAP: 1}, {"over_cap": 1}),
        (TimerConfig(1, 2, 3, 4, 5), {name: at for at, name in enumerate(TimerConfig.__struct_fields__, start=1)}),
    ],
)
def test_value_is_written_as_json_has_it(value: object, expected: object) -> None:
    """Bytes as digits, ids in their own text, records as objects, keys as text."""
    found = to_json_value(value)
    assert found == expected
    assert json.loads(json.dumps(found)) == expected
