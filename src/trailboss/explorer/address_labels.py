"""Names of addresses: of development accounts, of the system's actors, and of actors by the class in their source.

An actor chooses its own label, so the label is shown with digits of the address, and never without.
"""

from collections.abc import Mapping
from typing import Final

from trailboss.chain.reader import ChainReader
from trailboss.primitives.octets import ZERO_ADDRESS, Address, system_address
from trailboss.views.accounts import known_names, label_of, source_of
from trailboss.views.labels import LabelBook

LABELS_KEPT: Final = 10_000
SHOWN_DIGITS: Final = 4
SYSTEM_NAMES: Final = ("zero address", "basefee actor", "governance actor", "mailbox escrow")

Labels = dict[bytes, str]  # labels by hash of the source


class Names:
    """Names of addresses on a chain after a block."""

    def __init__(
        self, reader: ChainReader, known: Mapping[bytes, str], labels: Labels, chosen: LabelBook | None = None
    ) -> None:
        """Begin with fixed names, the labels of sources seen so far, to which more are added, and the owner's labels.

        An owner's label goes before every other name, and needs no digits: no actor chooses it.
        """
        self._reader, self._known, self._labels = reader, known, labels
        self._chosen = chosen or LabelBook()

    def get(self, address: bytes) -> str:
        """Return the name of an address; empty if it has none. Complexity: O(1), and once a source a search in it."""
        known = self._chosen.get(address) or self._known.get(bytes(address))
        if known is not None:
            return known
        label = self.label(address)
        return f"{label}…{address.hex()[-SHOWN_DIGITS:]}" if label else ""

    def accounts(self) -> list[bytes]:
        """Return the addresses of the development accounts, in the order of their numbers."""
        return [address for address, name in self._known.items() if name not in SYSTEM_NAMES]

    def named(self, name: str) -> list[bytes]:
        """Return the addresses that have a fixed name or an owner's label, whatever its letters' case."""
        every = (*self._known.items(), *(pair for pair in self._chosen if len(pair[0]) == Address.WIDTH))
        return [address for address, known in every if known.casefold() == name.casefold()]

    def short(self, address: bytes) -> str:
        """Return the name of an address that is shown in full beside it; empty if it has none."""
        return self._chosen.get(address) or self._known.get(bytes(address)) or self.label(address)

    def label(self, address: bytes) -> str:
        """Return the name of the first class in an actor's source; empty if there is none."""
        account = self._reader.account(address)
        if account is None or not account.code_hash:
            return ""
        label = self._labels.get(account.code_hash)
        if label is None:
            if len(self._labels) >= LABELS_KEPT:
                self._labels.clear()
            source = source_of(self._reader, account.code_hash) or b""
            label = self._labels[account.code_hash] = label_of(source)
        return label


def fixed_names(reader: ChainReader) -> dict[bytes, str]:
    """Return the names that no actor has chosen; it derives a key for each development account."""
    governance = reader.params.governance
    system = (governance.basefee_actor, governance.governance_actor, governance.escrow_actor)
    addresses = (ZERO_ADDRESS, *map(system_address, system))
    return {**dict(zip(map(bytes, addresses), SYSTEM_NAMES, strict=True)), **known_names(reader.genesis)}
