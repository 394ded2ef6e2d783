"""Accounts and actors."""

from itertools import islice
from typing import Final

from msgspec import Struct

from trailboss.api.errors import HttpError, missing
from trailboss.api.operations import NOT_FOUND, Call, Routes
from trailboss.api.requests import LIMIT_DEFAULT, Limit, Offset
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
from trailboss.views.shared_fields import extended

routes: Final = Routes("accounts")
SLOTS_SHOWN: Final = 50  # slots that come with an actor


class AccountPage(Struct, frozen=True):
    """Accounts and actors, by address."""

    height: int
    total_count: int
    accounts: list[Holder]


class ActorAnswer(ActorView, frozen=True, kw_only=True):
    """An actor, and the first of its slots."""

    storage: dict[bytes, bytes]  # values of slots by name, at most 50; ``/actors/{address}/storage`` has all of them
    next_cursor: Hash32 | None  # where the next page of slots begins; None if these are all


class NonceAnswer(Struct, frozen=True):
    """The nonces of an account."""

    nonce: int  # transactions of it that are in blocks
    next_nonce: int  # what its next transaction takes, those that wait counted


@routes.get("/account/{address}/nonce")
async def account_nonce(call: Call, *, address: Address) -> NonceAnswer:
    """Return the nonce of an account's next transaction."""
    # What leaves the mempool meanwhile is in a block of the view that is taken first, or still counted.
    view = call.view
    found = view.account(address)
    return NonceAnswer(0 if found is None else found.nonce, call.node.mempool.next_nonce(view, address))


@routes.get("/account/{address}", refuses=NOT_FOUND)
async def account(call: Call, *, address: Address) -> Holder:
    """Return what an account or an actor holds."""
    found = holder_of(call.view, address, call.names)
    if found.kind == NO_ACCOUNT:
        raise missing(f"there is no account {found.address}", address=str(found.address))
    return found


@routes.get("/accounts")
def accounts(call: Call, *, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT) -> AccountPage:
    """List accounts and actors, by address."""
    view = call.view
    found = islice(view.accounts(), offset, offset + limit)
    holders = [holder_of(view, Address(address), call.names) for address, _ in found]
    return AccountPage(view.height, account_count(view), holders)


@routes.get("/actor/{address}", refuses=NOT_FOUND)
def actor(call: Call, *, address: Address) -> ActorAnswer:
    """Return an actor, and the first of its slots."""
    view = call.view
    found = actor_view(view, address)
    if found is None:
        raise no_actor(address)
    page = storage_page(view, found.address, SLOTS_SHOWN)
    return extended(ActorAnswer, found, storage=page.storage, next_cursor=page.next_cursor)


@routes.get("/actors/{address}/storage", refuses=NOT_FOUND)
def storage(
    call: Call,
    *,
    address: Address,
    cursor: Hash32 | None = None,  # `next_cursor` of the page before; the first page if left out
    limit: Limit = LIMIT_DEFAULT,
) -> StoragePage:
    """List the slots of an actor, a page at a time, in the order of their hashed names."""
    found = call.view.account(address)
    if found is None or not found.code_hash:
        raise no_actor(address)
    return storage_page(call.view, address, limit, cursor)


def no_actor(address: Address) -> HttpError:
    """Return the refusal of an actor that does not exist."""
    return missing(f"there is no actor at {address}", address=str(address))
