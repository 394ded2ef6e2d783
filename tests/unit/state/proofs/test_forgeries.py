"""The search for forgeries finds none, and would find one."""

import pytest

from tests.faults import forgeries
from trailboss.state.proofs import proof


@pytest.mark.slow
@pytest.mark.spec("Q-09")
def test_forgeries_prove_nothing_false_when_ten_thousand_are_tried() -> None:
    """Flipped bits, spliced nodes, other subjects, values and roots: what verifies is true, and the rest is refused."""
    counted = forgeries.run(10_000, seed=0)
    assert counted.total() == 10_000
    names = {change.__name__ for change in (*forgeries.BYTE_CHANGES, *forgeries.CHANGES)}
    assert {name for name, _ in counted} == names
    for outcome in ("encoding", "tree", "root", "values", "true"):
        assert sum(counted[name, outcome] for name in names) > 100, outcome


def test_forgeries_are_found_when_the_verifier_does_not_look_at_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search is able to fail."""
    monkeypatch.setattr(proof, "_check_values", lambda *_: None)
    with pytest.raises((AssertionError, ValueError), match=r"FORGED|two verifiers disagree|zip"):
        forgeries.run(2_000, seed=0)


def test_forgeries_are_the_same_when_two_processes_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed repeats a search."""
    monkeypatch.setattr(forgeries, "CHUNK", 100)
    assert forgeries.run(350, seed=3, processes=2) == forgeries.run(350, seed=3)
