"""Labels: words that people choose for addresses and timers, shown with the first digits of what they stand for.

They belong to who looks at a chain, and no chain holds them. Records such as receipts know no chain: they are shown
with the labels that are in use in the process. Decision: D-121
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from trailboss.primitives.octets import Address, Hash32
from trailboss.views.text import SHORT_DIGITS

LABEL_CHARACTERS_MAX: Final = 40
_ID: Final = re.compile(rf"0x[0-9a-fA-F]{{{2 * Hash32.WIDTH}}}|0x[0-9a-fA-F]{{{2 * Address.WIDTH}}}")


class LabelBook:
    """Labels by address, 20 bytes, or id of a timer, 32 bytes."""

    def __init__(self, names: Mapping[bytes, str] | None = None) -> None:
        self._names = dict(names or {})

    def __iter__(self) -> Iterator[tuple[bytes, str]]:
        """Yield every address or id with its label, in the order in which they were set."""
        return iter(self._names.items())

    def set(self, identity: bytes, name: str) -> None:
        """Give an address or id a label, or another one.

        Raises:
            ValueError: For another width of id, a label that is not 1 to 40 printable characters or begins as an
                address does, and one that stands for something else already.
        """
        if len(identity) not in (Address.WIDTH, Hash32.WIDTH):
            raise ValueError(f"a label is for an address or the id of a timer, not for {len(identity)} bytes")
        if not name.strip() or not name.isprintable() or len(name) > LABEL_CHARACTERS_MAX or name[:2] in ("0x", "0X"):
            rule = f"1 to {LABEL_CHARACTERS_MAX} printable characters that do not begin with 0x"
            raise ValueError(f"the label {name!r:.80} must have {rule}")
        other = self.find(name)
        if other not in (None, identity):
            raise ValueError(f"{name!r} is the label of {id_text(other or b'')} already")
        self._names[bytes(identity)] = name

    def remove(self, identity: bytes) -> bool:
        """Remove a label, and return whether there was one."""
        return self._names.pop(bytes(identity), None) is not None

    def get(self, identity: bytes) -> str | None:
        """Return the label of an address or id, or None."""
        return self._names.get(bytes(identity))

    def find(self, name: str) -> bytes | None:
        """Return what a label stands for, or None."""
        return next((identity for identity, known in self._names.items() if known == name), None)

    def short(self, identity: bytes) -> str:
        """Return an address or id for people: its label, if it has one, and its first digits."""
        return self.text(id_text(identity)) if self.get(identity) else short_id(identity)

    def text(self, text: str) -> str:
        """Return a text in which every address and id that has a label is replaced by it and the first digits.

        >>> LabelBook({bytes(20): "oracle"}).text(f"paid by 0x{'00' * 20}")
        'paid by oracle (0x00000000…)'
        """
        return _ID.sub(self._labelled, text) if self._names else text

    def _labelled(self, match: re.Match[str]) -> str:
        name = self._names.get(bytes.fromhex(match[0][2:]))
        return match[0] if name is None else f"{name} ({match[0][: 2 + SHORT_DIGITS]}…)"


def id_text(identity: bytes) -> str:
    """Return an address or id in full."""
    return str(Address(identity) if len(identity) == Address.WIDTH else Hash32(identity))


def short_id(identity: bytes) -> str:
    """Return the first digits of an address or id."""
    return f"{id_text(identity)[: 2 + SHORT_DIGITS]}…"


class _InUse:
    book = LabelBook()


def use_labels(book: LabelBook) -> None:
    """Have records shown with these labels from now on."""
    _InUse.book = book


def labels_in_use() -> LabelBook:
    """Return the labels that records are shown with."""
    return _InUse.book


def labelled(text: str) -> str:
    """Return a text with the labels in use."""
    return _InUse.book.text(text)
