"""Two states differ in exactly the keys that a comparison of all their values finds."""

from random import Random

import pytest

from trailboss.state import keys
from trailboss.state.commitment import EMPTY_ROOTS, differing_keys, next_roots


def test_nothing_differs_when_the_states_are_equal() -> None:
    """Empty ones, too."""
    roots = next_roots(EMPTY_ROOTS, {keys.config_key(b"a"): b"1"}.items())
    assert list(differing_keys(EMPTY_ROOTS, EMPTY_ROOTS)) == []
    assert list(differing_keys(roots, dict(roots))) == []


@pytest.mark.parametrize("seed", range(30))
def test_differing_keys_are_those_of_the_values(seed: int) -> None:
    """Crowded and sparse trees, from a few changes to wholly other contents; heights make long shared prefixes."""
    dice = Random(seed)

    def key() -> bytes:
        number = dice.choice((dice.randrange(40), dice.randrange(10**6)))
        return dice.choice(
            (
                keys.timer_key(number, bytes(32)),
                keys.account_key(number.to_bytes(20, "big")),
                keys.config_key(b"%d" % number),
            )
        )

    left = {key(): b"%d" % dice.randrange(3) for _ in range(dice.choice((0, 3, 40, 600)))}
    right = dict(left) if dice.random() < 0.7 else {}
    for _ in range(dice.choice((1, 5, 200))):
        changed = dice.choice(list(right)) if right and dice.random() < 0.5 else key()
        if dice.random() < 0.4:
            right.pop(changed, None)
        else:
            right[changed] = b"%d" % dice.randrange(3)
    expected = sorted(each for each in left.keys() | right.keys() if left.get(each) != right.get(each))
    ours, theirs = next_roots(EMPTY_ROOTS, left.items()), next_roots(EMPTY_ROOTS, right.items())
    assert sorted(differing_keys(ours, theirs)) == sorted(differing_keys(theirs, ours)) == expected
    for namespace in keys.KEY_WIDTHS:
        found = [each for each in differing_keys(ours, theirs) if each.startswith(namespace)]
        assert found == sorted(found)
