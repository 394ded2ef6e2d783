"""Interference with a local chain, for tests alone."""

from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any, Final

from trailboss.chain import development
from trailboss.codec.canonical import encode_canonical
from trailboss.model.actors import encode_manifest
from trailboss.model.transactions import ClearMocks, SetBalance, SetCode, SetMock, SetStorage
from trailboss.primitives.errors import Rejection
from trailboss.testing.base_chain import BaseChain
from trailboss.testing.parties import ActorHandle, Party, address_of_party
from trailboss.views import Receipt
from trailboss.views.mocks import mocks_of


class AnyPayload(Enum):
    """The payloads that a mock answers, if it answers all."""

    ANY = "any"


ANY: Final = AnyPayload.ANY


class Cheats(BaseChain):
    """Calls that no public chain has.

    Each is a transaction of the deployer, in a block of its own or in the open one, so the chain still replays and
    exports. It raises `RevertedError` if the chain refuses it, `Rejection` (``NOT_FOUND``) if there is no such timer.
    """

    def set_balance(self, party: Party, amount: int) -> Receipt:
        """Set a balance, base units, and the supply with it; not of a system actor or the deployer. Decision: D-69."""
        return self.system(SetBalance(address_of_party(party), amount), check=True)

    def set_storage(self, actor: Party, slot: bytes, value: bytes | None) -> Receipt:
        """Set a slot of an actor, or delete it with None; not of a system actor. Decision: D-110."""
        return self.system(SetStorage(address_of_party(actor), slot, value), check=True)

    def set_code(self, address: Party, source: str | Path, *, entitlements: Iterable[str] = ()) -> ActorHandle:
        """Put source where an actor is, or where none is; storage and money stay, and no creation call runs.

        The source is text or a path ending in ``.py``, and is checked as in `deploy`. A new actor belongs to the
        deployer. Not for a system actor. Decision: D-110.
        """
        place, code = address_of_party(address), self._read(source)
        receipt = self.system(SetCode(place, code, encode_manifest(entitlements)), check=True)
        return ActorHandle(self, place, receipt)

    def mock_call(
        self,
        target: Party,
        handler: str,
        payload: Any = ANY,
        *,
        returns: Any = None,
        reverts: str | None = None,
        times: int | None = None,
    ) -> Receipt:
        """Answer calls of a handler by other actors, in place of the actor that they call; there need be none.

        A mocked call costs a frame's base and leaves the event ``development.call_mocked``. Mocks of the same calls
        answer one after the other, each so many ``times``; one without ``times`` answers until a later one comes. One
        for a payload goes before one for all. What a transaction or fire has used stays used if it reverts; read-only
        calls use none. Transactions, messages and timers are no calls by other actors, and reach the actor itself.
        Decision: D-110.

        Args:
            target: Actor, or address, that is called.
            handler: Its handler.
            payload: The payload of the calls to answer; ``ANY`` for all. Bytes are taken as they are, text in UTF-8,
                and other values as canonical CBOR.
            returns: What the handler would return: as the payload, and None for nothing.
            reverts: Message that the call fails with, instead.
            times: How many calls it answers, at least 1; None for all.

        Raises:
            TypeError: For a payload or an answer that cannot be encoded.
        """
        wanted = None if payload is ANY else _octets("payload", payload)
        answer = b"" if returns is None else _octets("returns", returns)
        mock = SetMock(address_of_party(target), handler, wanted, answer, reverts, times)
        return self.system(mock, check=True)

    def mocks(self) -> list[SetMock]:
        """Return the mocks in force, in the order in which they answer, each with the times that are left."""
        return mocks_of(self.chain)

    def clear_mocks(self) -> Receipt:
        """Remove all mocks."""
        return self.system(ClearMocks(), check=True)

    def hold(self, timer_id: bytes, until: int | None = None) -> Receipt:
        """Postpone a timer to another height; None for the last one at which it may fire.

        Refused for a state watch, a timer that is due (in the auction: that the next block runs), and a height that is
        past or beyond the timer's expiry.
        """
        return self.system(development.draft_hold(self.chain, timer_id, until), check=True)

    def force(self, timer_id: bytes) -> Receipt:
        """Make a timer due at the end of the block that this builds, in the auction of the next; refused as `hold` is.

        It runs as any due timer does: it may have to wait, or its payer may not be able to pay.
        """
        return self.system(development.draft_force(self.chain, timer_id), check=True)

    def drop(self, timer_id: bytes) -> Receipt:
        """Remove a timer without running it, due or not; its entries in Globalbox's mailbox still run."""
        return self.system(development.draft_drop(self.chain, timer_id), check=True)


def _octets(name: str, value: Any) -> bytes:
    """Return a payload or an answer as the chain carries it."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    try:
        return value.encode() if isinstance(value, str) else encode_canonical(value)
    except (Rejection, UnicodeEncodeError) as error:
        why = error.what if isinstance(error, Rejection) else "text with a lone surrogate"
        raise TypeError(f"mock_call({name}={value!r:.80}) cannot be encoded: {why}") from None
