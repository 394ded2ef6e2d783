"""``trailboss call``: call a handler of an actor."""

from typing import Annotated

import typer

from trailboss.cli.failures import FAILED, report_failed
from trailboss.cli.opening import find_actor, open_chain, resolve_address, resolve_signer
from trailboss.cli.options import DIRECTORY, PAYLOAD, AsJson, CellsLimit, CyclesLimit, Impersonated, Key, Place, Sender
from trailboss.cli.output import console, print_facts, print_json, print_pairs
from trailboss.cli.parsing import parse_payload
from trailboss.cli.receipts import make_terms, printed_pairs, send_one, show_receipts
from trailboss.model.transactions import ExecuteActor
from trailboss.views import Answer
from trailboss.views.text import words


def call(
    actor: Annotated[
        str, typer.Argument(metavar="ACTOR", help="Its address, or the first digits of it.", show_default=False)
    ],
    handler: Annotated[str, typer.Argument(metavar="HANDLER", help="Function or method.", show_default=False)],
    payload: Annotated[str, typer.Argument(metavar="PAYLOAD", help=PAYLOAD, show_default=False)] = "",
    cbor: Annotated[bool, typer.Option("--cbor", help="The payload is JSON; send it as CBOR.")] = False,
    view: Annotated[bool, typer.Option("--view", help="Only ask: no transaction, no fee, no change.")] = False,
    sender: Sender = None,
    private_key: Key = None,
    impersonate: Impersonated = None,
    cycles_limit: CyclesLimit = None,
    cells_limit: CellsLimit = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Call a handler of an actor, in a block of its own.

    Handlers of SDK actors take CBOR unless they say otherwise: write the payload as JSON and give --cbor.

    Example: trailboss call 0x044d2D5f transfer '{"to": "bob", "amount": 5}' --cbor
    """
    octets = parse_payload(payload, as_cbor=cbor)
    with open_chain(place) as chain:
        address = find_actor(chain, actor)
        if view:
            # Whoever only asks signs nothing, so it may be anybody.
            caller = resolve_address(sender) if sender else resolve_signer(None, private_key).address
            _show_answer(chain.ask_view(address, handler, octets, caller), as_json=as_json)
            return
        terms = make_terms(cycles_limit, cells_limit)
        receipt = send_one(chain, sender, private_key, impersonate, ExecuteActor(address, handler, octets), terms)
        show_receipts(chain, {"call": receipt}, as_json=as_json)


def _show_answer(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    else:
        used = f"{answer.cycles_used:,} cycles, {answer.cells_used:,} cells, not charged"
        print_facts({"returned": words(answer.return_value) if answer.ok else None, "used": used})
        print_pairs(console(), printed_pairs(answer.printed))
        if answer.error is not None:
            report_failed(answer.error, "failed")
    if not answer.ok:
        raise typer.Exit(FAILED)
