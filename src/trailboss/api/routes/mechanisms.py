"""How blocks choose among due timers, and what the mechanisms keep."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.api.common import LIMIT, OFFSET, block_at
from trailboss.api.errors import HttpReason
from trailboss.api.kinds import ADDRESS, HEIGHT
from trailboss.api.operations import Call, Routes
from trailboss.api.parsing import path, query
from trailboss.index.answers.records import extended
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
from trailboss.views.status import MechanismView, mechanism_view

routes: Final = Routes("mechanisms")
LANE_HEIGHT: Final = path("height", HEIGHT, "Height of the block.")
TARGET: Final = query("target", ADDRESS, "Only what this actor's handlers run.")


class LaneAnswer(Struct, frozen=True):
    """How a block chose among its due timers.

    Attributes:
        height: The block's.
        lane: What it chose and why; None if it had no choice.
    """

    height: int
    lane: DecisionView | None


class MailboxPage(Struct, frozen=True):
    """Entries of the mailbox of Globalbox, in the order of delivery.

    Attributes:
        height: Of the last block.
        total_count: How many there are.
        mailbox: From ``offset`` on.
    """

    height: int
    total_count: int
    mailbox: list[MailboxView]


class GlobalboxPage(Struct, frozen=True):
    """Queued fires of Globalbox, the head of the queue first.

    Attributes:
        height: Of the last block.
        total_count: How many there are.
        globalbox: From ``offset`` on.
    """

    height: int
    total_count: int
    globalbox: list[FireView]


class AuctionAnswer(AuctionView, frozen=True, kw_only=True):
    """The auction after a block, and of its actors a page.

    Attributes:
        total_count: How many actors there are.
    """

    total_count: int


@routes.get("/mechanism", answers=MechanismView)
def mechanism(call: Call) -> MechanismView:
    """Tell how the next block chooses among its due timers."""
    return mechanism_view(call.view)


@routes.get("/lane/{height}", LANE_HEIGHT, answers=LaneAnswer, refuses=(HttpReason.NOT_FOUND,))
def lane(call: Call) -> LaneAnswer:
    """Tell how a block chose among its due timers: ranks, prices, the cut-off, and why the others waited."""
    found = block_at(call.view, call[LANE_HEIGHT])
    record = found.decisions
    return LaneAnswer(found.height, None if record is None else decision_view(record, found.height))


@routes.get("/mailbox", TARGET, OFFSET, LIMIT, answers=MailboxPage, refuses=(HttpReason.NOT_FOUND,))
def mailbox(call: Call) -> MailboxPage:
    """List the mailbox of Globalbox in the order of delivery."""
    entries = mailbox_of(call.view, call[TARGET])
    return MailboxPage(call.view.height, len(entries), entries[call[OFFSET] :][: call[LIMIT]])


@routes.get("/globalbox", TARGET, OFFSET, LIMIT, answers=GlobalboxPage, refuses=(HttpReason.NOT_FOUND,))
def globalbox(call: Call) -> GlobalboxPage:
    """List the fires that stand in Globalbox, the head of the queue first."""
    view, target, offset = call.view, call[TARGET], call[OFFSET]
    if target is None:
        fires = globalbox_of(view, offset + call[LIMIT])
        status = globalbox_status(view.rules())
        total = len(fires) if status is None else status.queued
    else:
        fires = [fire for fire in globalbox_of(view) if fire.target == target]
        total = len(fires)
    return GlobalboxPage(view.height, total, fires[offset:][: call[LIMIT]])


@routes.get("/auction", OFFSET, LIMIT, answers=AuctionAnswer, refuses=(HttpReason.NOT_FOUND,))
def auction(call: Call) -> AuctionAnswer:
    """Tell the auction's epoch, and the weights of its actors."""
    found = auction_of(call.view)
    actors = found.actors[call[OFFSET] :][: call[LIMIT]]
    return extended(AuctionAnswer, replace(found, actors=actors), total_count=len(found.actors))
