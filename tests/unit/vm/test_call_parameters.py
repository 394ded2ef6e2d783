"""Arguments of host calls by the names that the reference has."""

import pytest

from trailboss.vm.call_parameters import named_arguments, parameters
from trailboss.vm.guest_api import HOST_CALLS, UNSUPPORTED

A, B = b"\x01" * 20, b"\x02" * 32


@pytest.mark.parametrize(
    ("call", "positional", "named", "expected"),
    [
        ("set_state", (b"k", b"v"), {}, {"key": b"k", "value": b"v"}),
        ("set_state", (b"k",), {"value": b"v"}, {"key": b"k", "value": b"v"}),
        ("get_state", (b"k", 1, 2), {}, {"key": b"k", "argument 2": 1, "argument 3": 2}),
        ("cancel_timer", (B,), {}, {"timer_id": B}),
        ("cancel_timer", (A, B), {}, {"target": A, "timer_id": B}),
        ("set_timeout", (7, b"", A, 9), {}, {"height": 7, "payload": b"", "gba": A, "gas_limit": 9}),
        ("set_timeout", (A, 7, b""), {}, {"target": A, "due_height": 7, "payload": b""}),
        ("schedule_timer", (7, b""), {"bid": 1}, {"height": 7, "payload": b"", "bid": 1}),
        (
            "schedule_timer_ex",
            (7, b"", b"", 5, 6, 8),
            {},
            {"height": 7, "payload": b"", "fee_payer": b"", "gas_limit": 5, "access_limit": 6, "expires_at": 8},
        ),
        ("submit_job", (1,), {"kind": 2}, {"argument 1": 1, "kind": 2}),
    ],
)
def test_positional_arguments_have_the_names_of_their_form(
    call: str, positional: tuple[object, ...], named: dict[str, object], expected: dict[str, object]
) -> None:
    """Of two forms the one that the arguments fit; what is too many is named by its place."""
    assert named_arguments(call, positional, named) == expected


def test_every_call_says_which_parameters_it_has() -> None:
    """But for those that are not implemented, which take anything and refuse."""
    for name in HOST_CALLS:
        if name in UNSUPPORTED:
            with pytest.raises(Exception, match="not implemented"):
                parameters(name)
        else:
            assert all(parameters(name)) or parameters(name) == ()
