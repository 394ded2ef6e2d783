"""Making proofs: a walk over a tree that shows all of a range and no more than necessary. Decision: D-49."""

from collections.abc import Callable

from trailboss.primitives.errors import InvariantError
from trailboss.state import tree
from trailboss.state.commitment import Roots
from trailboss.state.digests import DIGEST_WIDTH, EMPTY_DIGEST, FAN_OUT
from trailboss.state.proofs.nodes import ShownInterior, ShownNode, ShownPage, entries_within, shown_slots
from trailboss.state.proofs.proof import PROOF_VERSION, Proof
from trailboss.state.proofs.subjects import Subject, subject_range


def prove(roots: Roots, read: Callable[[bytes], bytes | None], subject: Subject) -> Proof:
    """Return the proof of all that the state holds of a subject; ``read`` returns the value of a full key.

    Raises:
        InvariantError: If a tree holds a key that has no value.

    Complexity: O(depth + records of the subject).
    """
    keys = subject_range(subject)
    nodes: list[ShownNode] = []
    values: list[bytes] = []
    waiting = [roots[keys.namespace]]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tree.LeafPage):
            nodes.append(ShownPage(node.entries))
            values += [_value(read, keys.namespace + key) for key, _ in entries_within(node.entries, keys)]
        elif node is not None:
            shown = shown_slots(node.prefix, node.prefix_length, keys)
            nodes.append(_show_interior(node, shown))
            waiting += [node.children[slot] for slot in reversed(shown)]
    others = tuple(tree.digest(root) for namespace, root in roots.items() if namespace != keys.namespace)
    return Proof(PROOF_VERSION, subject, others, tuple(nodes), tuple(values))


def _show_interior(node: tree.Interior, shown: range) -> ShownInterior:
    present, digests = 0, []
    for slot in range(FAN_OUT):
        child_digest = node.child_digests[slot * DIGEST_WIDTH : (slot + 1) * DIGEST_WIDTH]
        if child_digest != EMPTY_DIGEST:
            present |= 1 << slot
            if slot not in shown:
                digests.append(child_digest)
    return ShownInterior(node.count, node.prefix_length, node.prefix, present, b"".join(digests))


def _value(read: Callable[[bytes], bytes | None], key: bytes) -> bytes:
    value = read(key)
    if value is None:
        raise InvariantError(f"the tree holds the key {key.hex()}, and the store no value for it")
    return value
