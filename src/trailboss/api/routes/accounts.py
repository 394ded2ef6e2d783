"""Accounts and actors."""

from itertools import islice
from typing import Final

from msgspec import Struct

from trailboss.api.common import ADDRESS_OF, LIMIT, OFFSET, missing
from trailboss.api.errors import HttpError, HttpReason
from trailboss.api.kinds import HASH
from trailboss.api.operations import Call, Routes
from trailboss.api.parsing import query
from trailboss.index.answers.records import extended
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.accounts import (
    NO_ACCOUNT,
    ActorView,
    Holder,
    StoragePage,
    account_count,
    actor_view,
    holder_of,
    storage_page,
)

routes: Final = Routes("accounts")
SLOTS_SHOWN: Final = 50
"""Slots that come with an actor."""
CURSOR: Final = query("cursor", HASH, "`next_cursor` of the page before; the first page if left out.")


class AccountPage(Struct, frozen=True):
    """Accounts and actors, by address.

    Attributes:
        height: Of the last block.
        total_count: How many there are.
        accounts: From ``offset`` on.
    """

    height: int
    total_count: int
    accounts: list[Holder]


class ActorAnswer(ActorView, frozen=True, kw_only=True):
    """An actor, and the first of its slots.

    Attributes:
        storage: Values of slots by name, at most 50; ``/actors/{address}/storage`` has all of them.
        next_cursor: Where the next page of slots begins; None if these are all.
    """

    storage: dict[bytes, bytes]
    next_cursor: Hash32 | None


class NonceAnswer(Struct, frozen=True):
    """The nonces of an account.

    Attributes:
        nonce: Transactions of it that are in blocks.
        next_nonce: What its next transaction takes, those that wait counted.
    """

    nonce: int
    next_nonce: int


@routes.get("/account/{address}/nonce", ADDRESS_OF, answers=NonceAnswer)
async def account_nonce(call: Call) -> NonceAnswer:
    """Tell which nonce an account's next transaction takes."""
    # What leaves the mempool meanwhile is in a block of the view that is taken first, or still counted.
    view, address = call.view, call[ADDRESS_OF]
    found = view.account(address)
    return NonceAnswer(0 if found is None else found.nonce, call.node.mempool.next_nonce(view, address))


@routes.get("/account/{address}", ADDRESS_OF, answers=Holder, refuses=(HttpReason.NOT_FOUND,))
async def account(call: Call) -> Holder:
    """Tell what an account or an actor holds."""
    view = call.view
    found = holder_of(view, call[ADDRESS_OF], call.names)
    if found.kind == NO_ACCOUNT:
        raise missing(f"there is no account {found.address}", address=str(found.address))
    return found


@routes.get("/accounts", OFFSET, LIMIT, answers=AccountPage)
def accounts(call: Call) -> AccountPage:
    """List accounts and actors, by address."""
    view, offset = call.view, call[OFFSET]
    found = islice(view.accounts(), offset, offset + call[LIMIT])
    holders = [holder_of(view, Address(address), call.names) for address, _ in found]
    return AccountPage(view.height, account_count(view), holders)


@routes.get("/actor/{address}", ADDRESS_OF, answers=ActorAnswer, refuses=(HttpReason.NOT_FOUND,))
def actor(call: Call) -> ActorAnswer:
    """Look at an actor, and at the first of its slots."""
    view = call.view
    found = actor_view(view, call[ADDRESS_OF])
    if found is None:
        raise no_actor(call[ADDRESS_OF])
    page = storage_page(view, found.address, SLOTS_SHOWN)
    return extended(ActorAnswer, found, storage=page.storage, next_cursor=page.next_cursor)


@routes.get(
    "/actors/{address}/storage", ADDRESS_OF, CURSOR, LIMIT, answers=StoragePage, refuses=(HttpReason.NOT_FOUND,)
)
def storage(call: Call) -> StoragePage:
    """List the slots of an actor, a page at a time, in the order of their hashed names."""
    view, address = call.view, call[ADDRESS_OF]
    found = view.account(address)
    if found is None or not found.code_hash:
        raise no_actor(address)
    return storage_page(view, address, call[LIMIT], call[CURSOR])


def no_actor(address: Address) -> HttpError:
    """Return the refusal of an actor that is not there."""
    return missing(f"there is no actor at {address}", address=str(address))
