"""State sync over the engine's snapshot connection."""

from typing import Any


class Sync:
    """Snapshots that this node offers, and one that it may join by."""

    def list_snapshots(self, _: Any, answer: Any) -> None:
        """Offer no snapshot."""
        answer.SetInParent()

    load_chunk = offer = apply_chunk = list_snapshots

    def take(self) -> None:
        """Take none."""
