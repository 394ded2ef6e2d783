"""How blocks choose among due timers, and what the mechanisms keep."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.api.operations import NOT_FOUND, Call, Routes
from trailboss.api.requests import LIMIT_DEFAULT, U64, Limit, Offset
from trailboss.api.routes.chain import block_at
from trailboss.primitives.octets import Address
from trailboss.views.explain.decision_view import decision_view
from trailboss.views.mechanism.auction_records import AuctionView, auction_of
from trailboss.views.mechanism.globalbox_records import (
    FireView,
    MailboxView,
    globalbox_of,
    globalbox_status,
    mailbox_of,
)
from trailboss.views.records import DecisionView
from trailboss.views.shared_fields import extended
from trailboss.views.status import MechanismView, mechanism_view

routes: Final = Routes("mechanisms")


class LaneAnswer(Struct, frozen=True):
    """How a block chose among its due timers."""

    height: int  # the block's
    lane: DecisionView | None  # what it chose and why; None if it had no choice


class MailboxPage(Struct, frozen=True):
    """Entries of the mailbox of Globalbox, in the order of delivery."""

    height: int
    total_count: int
    mailbox: list[MailboxView]


class GlobalboxPage(Struct, frozen=True):
    """Queued fires of Globalbox, the head of the queue first."""

    height: int
    total_count: int
    globalbox: list[FireView]


class AuctionAnswer(AuctionView, frozen=True, kw_only=True):
    """The auction after a block, and of its actors a page."""

    total_count: int


@routes.get("/mechanism")
def mechanism(call: Call) -> MechanismView:
    """Return how the next block chooses among its due timers."""
    return mechanism_view(call.view)


@routes.get("/lane/{height}", refuses=NOT_FOUND)
def lane(call: Call, *, height: U64) -> LaneAnswer:
    """Return how a block chose among its due timers: ranks, prices, the cut-off, and why the others waited."""
    found = block_at(call.view, height)
    record = found.decisions
    return LaneAnswer(found.height, None if record is None else decision_view(record, found.height))


@routes.get("/mailbox", refuses=NOT_FOUND)
def mailbox(
    call: Call, *, target: Address | None = None, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT
) -> MailboxPage:
    """List the mailbox of Globalbox in the order of delivery."""
    entries = mailbox_of(call.view, target)
    return MailboxPage(call.view.height, len(entries), entries[offset : offset + limit])


@routes.get("/globalbox", refuses=NOT_FOUND)
def globalbox(
    call: Call, *, target: Address | None = None, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT
) -> GlobalboxPage:
    """List the queued fires of Globalbox, the head of the queue first."""
    view = call.view
    if target is None:
        fires = globalbox_of(view, offset + limit)
        status = globalbox_status(view.rules())
        total = len(fires) if status is None else status.queued
    else:
        fires = [fire for fire in globalbox_of(view) if fire.target == target]
        total = len(fires)
    return GlobalboxPage(view.height, total, fires[offset : offset + limit])


@routes.get("/auction", refuses=NOT_FOUND)
def auction(call: Call, *, offset: Offset = 0, limit: Limit = LIMIT_DEFAULT) -> AuctionAnswer:
    """Return the auction's epoch, and the weights of its actors."""
    found = auction_of(call.view)
    return extended(
        AuctionAnswer, replace(found, actors=found.actors[offset : offset + limit]), total_count=len(found.actors)
    )
