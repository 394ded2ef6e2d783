"""Random forgeries of proofs: whatever verifies must be true.

Each case takes an honest proof of a random state, spoils it, and hands it to the verifier with the root of that state
or of a neighbouring one. It counts as a forgery if it verifies and says what that state does not hold, or if anything
but a `ProofError` comes out. A share of the cases also goes to the slow verifier, which must agree.

    python -m tests.faults.forgeries --cases 1000000 --seed 7
"""

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from multiprocessing import Pool
from time import perf_counter

from msgspec.structs import replace

from tests.model import slow_verifier
from tests.model.states import State, is_true, make_state, random_subject, random_values, related_values
from trailboss.primitives.errors import ProofError
from trailboss.primitives.units import U64_MAX
from trailboss.state.proofs.nodes import ShownInterior, ShownNode, ShownPage
from trailboss.state.proofs.proof import Proof
from trailboss.state.proofs.statements import Statement
from trailboss.state.proofs.subjects import StorageSubject, Subject, TimersSubject, TimerSubject, subject_range

CHUNK = 5_000
"""Cases that share their states: a fresh pair of neighbours and fresh proofs for each chunk."""
PROOFS = 120
COMPARED = 16
"""One case in so many goes to the slow verifier too."""
DIGEST_WIDTH = 32

Change = Callable[[random.Random, Proof, Proof], Proof]


def flip(rng: random.Random, octets: bytes) -> bytes:
    """Flip one bit."""
    if not octets:
        return b"\0"
    at = rng.randrange(len(octets))
    return octets[:at] + bytes([octets[at] ^ 1 << rng.randrange(8)]) + octets[at + 1 :]


def flip_bits(rng: random.Random, octets: bytes, _: bytes) -> bytes:
    """Flip a few bits anywhere."""
    for _ in range(rng.randint(1, 4)):
        octets = flip(rng, octets)
    return octets


def cut_or_extend(rng: random.Random, octets: bytes, other: bytes) -> bytes:
    """Cut the end off, or add to it."""
    return rng.choice((octets[: rng.randrange(len(octets))], octets + rng.randbytes(3), octets + other))


def splice_bytes(rng: random.Random, octets: bytes, other: bytes) -> bytes:
    """Put in a stretch of another proof."""
    start, source = rng.randrange(len(octets)), rng.randrange(len(other))
    length = rng.choice((1, DIGEST_WIDTH, 72, 480))
    return octets[:start] + other[source : source + length] + octets[start + length :]


def change_subject(rng: random.Random, proof: Proof, other: Proof) -> Proof:
    """Claim it of something else: wider, narrower, beside, or another kind."""
    return replace(proof, subject=rng.choice((other.subject, _beside(rng, proof.subject), _all_of(proof.subject))))


def _beside(rng: random.Random, subject: Subject) -> Subject:
    match subject:
        case TimersSubject(first, last):
            first, last = sorted(
                (min(max(first + rng.randint(-2, 2), 0), U64_MAX), min(max(last + rng.randint(-2, 2), 0), U64_MAX))
            )
            return TimersSubject(first, last)
        case TimerSubject(height, timer_id):
            return TimerSubject(height, flip(rng, timer_id))
    return replace(subject, address=flip(rng, subject.address))


def _all_of(subject: Subject) -> Subject:
    match subject:
        case TimerSubject(height, _):
            return TimersSubject(height, height)
        case TimersSubject(first, _):
            return TimersSubject(first, U64_MAX)
    return StorageSubject(subject.address)


def splice_node(rng: random.Random, proof: Proof, other: Proof) -> Proof:
    """Take a node, or all from one on, from another proof."""
    at, source = rng.randrange(len(proof.nodes) + 1), rng.randrange(len(other.nodes) + 1)
    if rng.random() < 0.5:
        return replace(proof, nodes=proof.nodes[:at] + other.nodes[source:])
    return replace(proof, nodes=proof.nodes[:at] + other.nodes[source : source + 1] + proof.nodes[at + 1 :])


def move_nodes(rng: random.Random, proof: Proof, _: Proof) -> Proof:
    """Drop, repeat or exchange nodes."""
    nodes = list(proof.nodes)
    if nodes:
        at, to = rng.randrange(len(nodes)), rng.randrange(len(nodes))
        kind = rng.randrange(3)
        if kind == 0:
            del nodes[at]
        elif kind == 1:
            nodes.insert(to, nodes[at])
        else:
            nodes[at], nodes[to] = nodes[to], nodes[at]
    return replace(proof, nodes=tuple(nodes))


def change_node(rng: random.Random, proof: Proof, _: Proof) -> Proof:
    """Spoil one node: an entry of a page, a field of an interior node."""
    if not proof.nodes:
        return replace(proof, nodes=(ShownPage(rng.randbytes(72)),))
    at = rng.randrange(len(proof.nodes))
    node = proof.nodes[at]
    width = len(subject_range(proof.subject).low) + DIGEST_WIDTH
    changed = _spoil_page(rng, node, width) if isinstance(node, ShownPage) else _spoil_interior(rng, node)
    return replace(proof, nodes=(*proof.nodes[:at], changed, *proof.nodes[at + 1 :]))


def _spoil_page(rng: random.Random, page: ShownPage, width: int) -> ShownNode:
    entries = [page.entries[at : at + width] for at in range(0, len(page.entries), width)]
    if not entries:
        return page
    at = rng.randrange(len(entries))
    kind = rng.randrange(4)
    if kind == 0:
        del entries[at]
    elif kind == 1:
        entries.insert(at, flip(rng, entries[at]))
    elif kind == 2:
        entries[at] = flip(rng, entries[at])
    else:
        entries = entries[at:] + entries[:at]
    return ShownPage(b"".join(sorted(entries) if rng.random() < 0.5 else entries))


def _spoil_interior(rng: random.Random, node: ShownInterior) -> ShownNode:
    digests = [node.digests[at : at + DIGEST_WIDTH] for at in range(0, len(node.digests), DIGEST_WIDTH)]
    rng.shuffle(digests)
    return rng.choice(
        (
            replace(node, digests=b"".join(digests)),
            replace(node, digests=flip(rng, node.digests)),
            replace(node, digests=node.digests[DIGEST_WIDTH:], present=node.present & node.present - 1),
            replace(
                node, digests=node.digests + rng.randbytes(DIGEST_WIDTH), present=node.present | 1 << rng.randrange(16)
            ),
            replace(node, count=max(node.count + rng.randint(-2, 2), 0)),
            replace(node, prefix=flip(rng, node.prefix)),
            replace(node, prefix_length=node.prefix_length + rng.choice((-1, 1))),
            replace(node, present=node.present ^ 1 << rng.randrange(16)),
        )
    )


def change_values(rng: random.Random, proof: Proof, other: Proof) -> Proof:
    """Leave values out, add some, exchange or spoil them."""
    values = list(proof.values)
    rng.shuffle(values)
    spoiled = [flip(rng, value) for value in proof.values[:1]] + list(proof.values[1:])
    return replace(proof, values=tuple(rng.choice((values, spoiled, values[1:], list(proof.values + other.values)))))


def forge_value(rng: random.Random, proof: Proof, _: Proof) -> Proof:
    """Change a value and the digest in the page that commits to it: a forgery that only the root betrays."""
    if not proof.values:
        return proof
    at = rng.randrange(len(proof.values))
    old, new = proof.values[at], flip(rng, proof.values[at])
    nodes = [
        ShownPage(node.entries.replace(sha256(old).digest(), sha256(new).digest()))
        if isinstance(node, ShownPage)
        else node
        for node in proof.nodes
    ]
    return replace(proof, nodes=tuple(nodes), values=(*proof.values[:at], new, *proof.values[at + 1 :]))


def omit_entry(rng: random.Random, proof: Proof, _: Proof) -> Proof:
    """Leave an entry and its value out, and mend every count above: a forgery that only the root betrays."""
    keys = subject_range(proof.subject)
    width = len(keys.low) + DIGEST_WIDTH
    for at, node in enumerate(proof.nodes):
        if isinstance(node, ShownPage) and proof.values:
            entries = [node.entries[start : start + width] for start in range(0, len(node.entries), width)]
            within = [entry for entry in entries if keys.low <= entry[: len(keys.low)] <= keys.high]
            if within:
                entries.remove(within[0])
                nodes = [
                    replace(each, count=each.count - 1) if isinstance(each, ShownInterior) else each
                    for each in proof.nodes
                ]
                nodes[at : at + 1] = [ShownPage(b"".join(entries))] if entries else []
                return replace(proof, nodes=tuple(nodes), values=proof.values[1:])
    return proof


def change_digests(rng: random.Random, proof: Proof, other: Proof) -> Proof:
    """Spoil, exchange or borrow the digests of the other namespaces."""
    digests = list(proof.other_digests)
    rng.shuffle(digests)
    spoiled = [flip(rng, proof.other_digests[0]), *proof.other_digests[1:]]
    chosen = rng.choice((digests, spoiled, other.other_digests, digests[1:], [*digests, digests[0]]))
    return replace(proof, other_digests=tuple(chosen))


def keep(_: random.Random, proof: Proof, __: Proof) -> Proof:
    """Leave the proof as it is, for another root."""
    return proof


BYTE_CHANGES = (flip_bits, cut_or_extend, splice_bytes)
CHANGES: tuple[Change, ...] = (
    change_subject,
    splice_node,
    move_nodes,
    change_node,
    change_values,
    forge_value,
    omit_entry,
    change_digests,
    keep,
)


def forge(rng: random.Random, proof: Proof, other: Proof) -> tuple[str, bytes]:
    """Return the name of what was done, and the bytes of a spoiled proof."""
    if rng.random() < 0.2:
        spoil = rng.choice(BYTE_CHANGES)
        return spoil.__name__, spoil(rng, proof.to_bytes(), other.to_bytes())
    change = rng.choice(CHANGES)
    proof = change(rng, proof, other)
    # Every third forgery has a second fault, so that one may hide the other.
    if rng.randrange(3) == 0:
        proof = rng.choice(CHANGES)(rng, proof, other)
    return change.__name__, proof.to_bytes()


def check(octets: bytes, root: bytes, states: dict[bytes, State], *, is_compared: bool) -> str:
    """Verify one forgery.

    Returns:
        Where it was refused (``encoding``, ``tree``, ``root`` or ``values``), or ``true`` for a statement that is true.

    Raises:
        AssertionError: If something false verifies, or the slow verifier disagrees.
    """
    statement: Statement | None = None
    outcome = "encoding"
    try:
        proof = Proof.from_bytes(octets)
        outcome = "tree"
        statement = proof.verify(root)
        outcome = "true"
    except ProofError as error:
        if outcome == "tree":
            outcome = refused_at(str(error))
    if statement is not None:
        assert is_true(statement, states[root]), f"FORGED: {statement} from {octets.hex()} under {root.hex()}"
    if is_compared:
        try:
            found: list[bytes] | None = sorted(slow_verifier.verify(octets, root).values())
        except slow_verifier.Refused:
            found = None
        expected = None if statement is None else sorted(states[root].holds(statement.subject))
        assert found == expected, f"the two verifiers disagree on {octets.hex()} under {root.hex()}"
    return outcome


def refused_at(message: str) -> str:
    """Return the step that a refusal names."""
    if "leads to the state root" in message or message.startswith("the other namespaces"):
        return "root"
    return "tree" if message.startswith("node ") or "subtrees" in message else "values"


def run_chunk(number: int, cases: int, seed: int) -> Counter[tuple[str, str]]:
    """Try some forgeries and count them by what was done and what came of it."""
    rng = random.Random(f"{seed}/{number}")
    values = random_values(rng, None if number % 4 else 400)
    pair = [make_state(values), make_state(related_values(rng, values))]
    states: dict[bytes, State] = {bytes(state.root): state for state in pair}
    honest = [(state, state.prove(random_subject(rng, state.values))) for state in pair for _ in range(PROOFS // 2)]
    counted: Counter[tuple[str, str]] = Counter()
    for case in range(cases):
        (state, proof), (_, other) = rng.choice(honest), rng.choice(honest)
        name, octets, root = "", proof.to_bytes(), bytes(state.root)
        # What happens to change nothing is no forgery.
        while (octets, root) == (proof.to_bytes(), state.root):
            name, octets = forge(rng, proof, other)
            root = bytes(rng.choice(pair).root if name == "keep" or rng.random() < 0.2 else state.root)
        counted[name, check(octets, root, states, is_compared=case % COMPARED == 0)] += 1
    return counted


def run(cases: int, seed: int, processes: int = 1) -> Counter[tuple[str, str]]:
    """Try ``cases`` forgeries; the same seed gives the same ones, however many processes share the work."""
    chunks = [(number, min(CHUNK, cases - number * CHUNK)) for number in range(-(-cases // CHUNK))]
    counted: Counter[tuple[str, str]] = Counter()
    if processes == 1:
        for number, size in chunks:
            counted += run_chunk(number, size, seed)
        return counted
    with Pool(processes) as pool:
        for part in pool.starmap(partial(run_chunk, seed=seed), chunks, chunksize=1):
            counted += part
    return counted


def main(arguments: list[str]) -> int:
    """Run and print the table; the first false statement ends it with a traceback that holds the forgery."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    started = perf_counter()
    counted = run(options.cases, options.seed, options.processes)
    outcomes = ("encoding", "tree", "root", "values", "true")
    print(f"{'done to the proof':<18}" + "".join(f"{outcome:>10}" for outcome in outcomes))
    for name in sorted({name for name, _ in counted}):
        print(f"{name:<18}" + "".join(f"{counted[name, outcome]:>10}" for outcome in outcomes))
    seconds = perf_counter() - started
    print(f"{counted.total():,} forgeries, seed {options.seed}: none proves anything false ({seconds:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
