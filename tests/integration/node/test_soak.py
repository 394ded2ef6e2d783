"""The soak says what speaks against a node: what it looks at is made up here, and met in `make soak`."""

import pytest

from benchmarks.soak import GROWTH_MAX, SETTLED_MINUTES, Sample, Soaked, faults_of


def soaked(*, growth: int = 0, lent: int = 0, late: int = 0) -> Soaked:
    """Return a node that has held 100 MB and more: so many bytes for each of a thousand fires a look."""
    found = Soaked("a node", pid=0, port=0)
    for at in range(13):
        found.samples.append(
            Sample(60.0 * at, 100 * at, 1_000 * at, 10**8 + growth * 1_000 * at, 0, lent=lent, late=late)
        )
    return found


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (soaked(growth=1_275), "a node: private memory grows by 1,275 bytes a fire"),
        (soaked(lent=2), "a node: 2 views lent a minute after the last command"),
        (soaked(late=3), "a node: 3 blocks came more than 1 s late"),
    ],
)
def test_fault_is_named_when_a_node_has_one(node: Soaked, words: str) -> None:
    """A view that is kept costs a node 1,275 bytes a fire."""
    assert faults_of(node, SETTLED_MINUTES) == [words]


def test_growth_is_no_fault_when_caches_may_still_fill() -> None:
    """Nor when it is as small as what varies by itself."""
    assert faults_of(soaked(growth=1_275), SETTLED_MINUTES - 1) == []
    assert faults_of(soaked(growth=GROWTH_MAX), SETTLED_MINUTES) == []
