"""What two runs say of an attack: the same scenario with it and without it, by the values of an agent in each."""

from collections.abc import Mapping


def fragmentation_gain(single: Mapping[str, float], split: Mapping[str, float], agent: str, measure: str) -> float:
    """Return how many times a measure of one owner is what it is as one actor, once it is split into several.

    Args:
        single: Values of the run in which the owner is one actor.
        split: Values of the run in which it asks for the same as several.
        agent: Name of the owner.
        measure: Such as ``fired``, where more than 1 is a gain, or ``late_mean``, where less than 1 is.
    """
    before, after = single[f"{agent}.{measure}"], split[f"{agent}.{measure}"]
    return after / before if before else float("inf" if after else 1)


def attack_cost(quiet: Mapping[str, float], attacked: Mapping[str, float], attacker: str) -> float:
    """Return what an attack costs its agent, base units: what its fires pay more, and are worth less, than without it.

    An agent that is not in the quiet run paid nothing in it, and got nothing.
    """

    def balance(values: Mapping[str, float]) -> float:
        paid, got = (values.get(f"{attacker}.{name}", 0.0) for name in ("paid", "welfare"))
        return paid - got

    return balance(attacked) - balance(quiet)


def damage(quiet: Mapping[str, float], attacked: Mapping[str, float], victim: str, measure: str) -> float:
    """Return the share of a measure that an attack takes from an agent, such as of ``welfare`` or ``fired``.

    1 is all of it, 0 nothing; it is negative for an agent that the attack serves.
    """
    before, after = quiet[f"{victim}.{measure}"], attacked[f"{victim}.{measure}"]
    return 1 - after / before if before else 0.0
