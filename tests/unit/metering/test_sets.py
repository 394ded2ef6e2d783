"""Sets that no rule about the source can see are refused when they come to be."""

import pytest

from trailboss.codec.canonical import decode_canonical
from trailboss.testing import LocalChain

SOURCE = """
import operator
from functools import reduce

A = {"x": 1, "y": 2}
B = {"y": 3, "z": 4}

def intersect(payload):
    return list(A.keys() & B.keys())

def union(payload):
    return list(A.keys() | B)

def difference(payload):
    return sorted(A.keys() - B.keys())

def symmetric(payload):
    return list(A.items() ^ B.items())

def in_place(payload):
    names = A.keys()
    names &= B.keys()
    return list(names)

def by_function(payload):
    return list(reduce(operator.or_, [A.keys(), B.keys()]))

def numbers(payload):
    a, b = 12, 10
    a -= b
    merged = A | B
    A.update(B)
    return [operator.sub(a, 1), a, b & 6, b | 1, b ^ 3, a - b, list(merged), [name for name in A if name in B]]
"""


@pytest.mark.spec("F-80")
@pytest.mark.parametrize("handler", ["intersect", "union", "difference", "symmetric", "in_place", "by_function"])
def test_set_is_refused_when_views_of_dicts_make_one(chain: LocalChain, handler: str) -> None:
    """The order of such a set would differ from process to process."""
    receipt = chain.deploy(SOURCE, sender=chain.accounts[0]).call(handler, sender=chain.accounts[0])
    assert (receipt.status, receipt.error.context["exception_type"]) == ("reverted", "TypeError")
    assert receipt.error.context["exception_message"] == (
        "a set has no certain order; use a dict or cowboy_sdk.ordered_set"
    )
    assert receipt.error.context["traceback"].startswith("line ")


def test_operators_work_when_numbers_and_dicts_meet_them(chain: LocalChain) -> None:
    """The same operators on anything else give what they always give."""
    receipt = chain.deploy(SOURCE, sender=chain.accounts[0]).call("numbers", sender=chain.accounts[0], check=True)
    assert decode_canonical(receipt.return_value) == [1, 2, 2, 11, 9, -8, ["x", "y", "z"], ["y", "z"]]
