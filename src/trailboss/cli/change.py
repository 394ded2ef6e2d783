"""``trailboss update`` and ``trailboss cancel``: timers that were set without an actor of one's own."""

from trailboss.chain.stock_timers import TimerChange, draft_cancel, draft_update
from trailboss.cli.failures import Mistake
from trailboss.cli.opening import find_timer, open_chain, resolve_signer
from trailboss.cli.options import DIRECTORY, AsJson, Key, Place, Sender
from trailboss.cli.output import Cell
from trailboss.cli.parsing import parse_bid, parse_payload
from trailboss.cli.receipts import send, show_receipts
from trailboss.cli.timer_options import NewBid, NewGasLimit, NewPayload, TimerId
from trailboss.codec.canonical import encode_canonical
from trailboss.primitives.octets import Hash32
from trailboss.views import Receipt


def update(
    timer: TimerId,
    payload: NewPayload = None,
    gas_limit: NewGasLimit = None,
    bid: NewBid = None,
    sender: Sender = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Change what later fires of a timer of yours bring.

    Under Globalbox. A fire that is queued already stays as it is.

    Example: trailboss update 0x6e3d2443 --payload "new price" --gas-limit 80000
    """
    if payload is None and gas_limit is None and bid is None:
        raise Mistake("nothing is to change", "give --payload, --gas-limit or --bid")
    signer = resolve_signer(sender, private_key)
    with open_chain(place) as chain:
        change = TimerChange(
            timer_id=find_timer(chain, timer),
            payload=None if payload is None else parse_payload(payload),
            gas_limit=gas_limit,
            bid=None if bid is None else parse_bid(bid),
        )
        [receipt] = send(chain, signer, [draft_update(chain, signer.address, change)])
        lead = _lead(change.timer_id, receipt, "its next fire is queued already, and no other will follow")
        show_receipts(chain, {"order": receipt}, as_json=as_json, lead=lead)


def cancel(
    timer: TimerId,
    sender: Sender = None,
    private_key: Key = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Cancel a timer of yours.

    It is one that trailboss schedule has set for the same sender.

    A timer of another actor is cancelled by a handler of that actor, or by governance: trailboss govern cancel-timer.

    Example: trailboss cancel 0x6e3d2443
    """
    signer = resolve_signer(sender, private_key)
    with open_chain(place) as chain:
        identity = find_timer(chain, timer)
        [receipt] = send(chain, signer, [draft_cancel(chain, signer.address, identity)])
        lead = _lead(identity, receipt, "its fire is in the mailbox already")
        show_receipts(chain, {"order": receipt}, as_json=as_json, lead=lead)


def _lead(timer_id: bytes, receipt: Receipt, why_not: str) -> dict[str, Cell]:
    lead: dict[str, Cell] = {"timer": str(Hash32(timer_id))}
    if receipt.ok and receipt.return_value == encode_canonical(False):
        lead["too late"] = why_not
    return lead
