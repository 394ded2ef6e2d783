"""Accounts and actors."""

from itertools import islice
from typing import Annotated, Final

from msgspec import Struct

from trailboss.api.errors import HttpError, missing
from trailboss.api.operations import NOT_FOUND, Call, Routes
from trailboss.api.requests import LIMIT_DEFAULT, LIMIT_MAX, Paged, integer
from trailboss.api.routes.lookups import AddressAsked
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


class SlotsAsked(AddressAsked, frozen=True, kw_only=True):
    """A page of an actor's slots.

    Attributes:
        cursor: `next_cursor` of the page before; the first page if left out.
        limit: Largest number of slots to return.
    """

    cursor: Hash32 | None = None
    limit: Annotated[int, integer(LIMIT_MAX, 1)] = LIMIT_DEFAULT


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


@routes.get("/account/{address}/nonce")
async def account_nonce(call: Call, asked: AddressAsked) -> NonceAnswer:
    """Return the nonce of an account's next transaction."""
    # What leaves the mempool meanwhile is in a block of the view that is taken first, or still counted.
    view = call.view
    found = view.account(asked.address)
    return NonceAnswer(0 if found is None else found.nonce, call.node.mempool.next_nonce(view, asked.address))


@routes.get("/account/{address}", refuses=NOT_FOUND)
async def account(call: Call, asked: AddressAsked) -> Holder:
    """Return what an account or an actor holds."""
    found = holder_of(call.view, asked.address, call.names)
    if found.kind == NO_ACCOUNT:
        raise missing(f"there is no account {found.address}", address=str(found.address))
    return found


@routes.get("/accounts")
def accounts(call: Call, asked: Paged) -> AccountPage:
    """List accounts and actors, by address."""
    view = call.view
    found = islice(view.accounts(), asked.offset, asked.offset + asked.limit)
    holders = [holder_of(view, Address(address), call.names) for address, _ in found]
    return AccountPage(view.height, account_count(view), holders)


@routes.get("/actor/{address}", refuses=NOT_FOUND)
def actor(call: Call, asked: AddressAsked) -> ActorAnswer:
    """Return an actor, and the first of its slots."""
    view = call.view
    found = actor_view(view, asked.address)
    if found is None:
        raise no_actor(asked.address)
    page = storage_page(view, found.address, SLOTS_SHOWN)
    return extended(ActorAnswer, found, storage=page.storage, next_cursor=page.next_cursor)


@routes.get("/actors/{address}/storage", refuses=NOT_FOUND)
def storage(call: Call, asked: SlotsAsked) -> StoragePage:
    """List the slots of an actor, a page at a time, in the order of their hashed names."""
    found = call.view.account(asked.address)
    if found is None or not found.code_hash:
        raise no_actor(asked.address)
    return storage_page(call.view, asked.address, asked.limit, asked.cursor)


def no_actor(address: Address) -> HttpError:
    """Return the refusal of an actor that does not exist."""
    return missing(f"there is no actor at {address}", address=str(address))
