"""Seeded generators, one for each stream of draws: adding a stream changes no other one's draws."""

import numpy as np

from trailboss.crypto.digest import sha256

SEED_MAX = 2**63 - 1


def stream(seed: int, *names: str) -> np.random.Generator:
    """Return the generator of a stream, by the scenario's seed and the names of the stream."""
    digest = sha256("\0".join(names).encode())
    words = [int.from_bytes(digest[at : at + 4], "big") for at in range(0, 16, 4)]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(words)))
