"""Transactions of a command: signed, sent, and their receipts printed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import typer

from trailboss.chain import ChainReader
from trailboss.chain.drafts import DEFAULT_TERMS, Terms, draft_transaction
from trailboss.cli.errors import FAILED, Mistake, report_failed
from trailboss.cli.output import Cell, console, print_json, print_pairs
from trailboss.cli.targets import OpenChain, Signer, resolve_actor, resolve_signer
from trailboss.codec.canonical import encode_canonical
from trailboss.model.blocks import Origin
from trailboss.model.transactions import Instruction
from trailboss.primitives.units import format_cby
from trailboss.views import Receipt
from trailboss.views.accounts import known_names
from trailboss.views.explain.sentences import event_words
from trailboss.views.json_values import to_json_value
from trailboss.views.records import Printed
from trailboss.views.text import clipped, counted, words

BOOLEANS: Final = {encode_canonical(value): str(value) for value in (True, False)}


def make_terms(cycles_limit: int | None, cells_limit: int | None) -> Terms:
    """Return the terms of a transaction, with the limits that are given."""
    return Terms(
        cycles_limit=DEFAULT_TERMS.cycles_limit if cycles_limit is None else cycles_limit,
        cells_limit=DEFAULT_TERMS.cells_limit if cells_limit is None else cells_limit,
    )


def send(
    chain: OpenChain, signer: Signer, instructions: Sequence[Instruction], terms: Terms = DEFAULT_TERMS
) -> list[Receipt]:
    """Sign instructions and send them, in order: for one block of a directory, or to a node."""
    waiting = chain.waiting(signer.address)
    return chain.submit(
        [
            draft_transaction(chain, instruction, signer.private_key, terms=terms, waiting=waiting + index)
            for index, instruction in enumerate(instructions)
        ]
    )


def send_one(
    chain: OpenChain,
    sender: str | None,
    key: str | None,
    impersonated: str | None,
    instruction: Instruction,
    terms: Terms,
) -> Receipt:
    """Send one instruction, signed, or on a development chain unsigned as another account; return its receipt.

    Raises:
        Mistake: If both a signer and an impersonated account are given, or the signer's key is unknown.
    """
    if impersonated is None:
        [receipt] = send(chain, resolve_signer(sender, key), [instruction], terms)
        return receipt
    if sender is not None:
        raise Mistake(
            "both --from and --impersonate are given", "give one of the two: who is impersonated signs nothing"
        )
    return chain.impersonate(resolve_actor(chain, impersonated), instruction, terms)


def show_receipts(
    chain: OpenChain,
    receipts: Mapping[str, Receipt],
    *,
    as_json: bool,
    lead: Mapping[str, Cell] | None = None,
    followers: Sequence[str] = (),
) -> None:
    """Print the receipts of a command's transactions; exit with 1 if one did not end well.

    Args:
        chain: After their block.
        receipts: By what each was for; the first is the command's own.
        as_json: Whether to print a JSON document.
        lead: Facts to print first.
        followers: Labels of those that cannot end well unless the first does: their failure needs no explanation.
    """
    (_, receipt), *others = receipts.items()
    if as_json:
        print_json(to_json_value(receipt) | {label: to_json_value(other) for label, other in others})
    else:
        unexplained = () if receipt.ok else followers
        failed = {
            label: _follows(other) if label in unexplained else _status(other)
            for label, other in others
            if not other.ok
        }
        facts = dict(lead or {}) | _facts(chain, receipt) | failed
        pairs = [(label, str(value)) for label, value in facts.items() if value is not None]
        printer = console()
        pairs += [("event", event_words(event, printer.width)) for event in receipt.events]
        pairs += printed_pairs(line for each in receipts.values() for line in each.printed)
        print_pairs(printer, pairs)
        for label, each in receipts.items():
            if each.error is not None and label not in unexplained:
                report_failed(each.error, each.status)
    if not all(receipt.ok for receipt in receipts.values()):
        raise typer.Exit(FAILED)


def printed_pairs(lines: Iterable[Printed]) -> list[tuple[str, str]]:
    """Return what actors have printed, and warnings about them, as labels and values."""
    return [
        ("warning" if line.is_warning else "printed", f"{line.actor} {line.handler}: {line.text}") for line in lines
    ]


def _facts(chain: ChainReader, receipt: Receipt) -> dict[str, Cell]:
    if receipt.status == "refused":
        return {"status": _status(receipt)}
    payer = known_names(chain.genesis).get(receipt.payer, str(receipt.payer))
    return {
        "status": _status(receipt),
        "used": f"{receipt.cycles_used:,} cycles, {receipt.cells_used:,} cells",
        "fee": f"{format_cby(receipt.fee_paid)} CBY, paid by {payer}",
        "returned": _returned(receipt.return_value) if receipt.return_value else None,
        "also": ", ".join(_also(chain, receipt.block_height)) or None,
    }


def _returned(octets: bytes) -> str:
    """Return what a handler returned; one that returned True or False has returned the canonical CBOR of that."""
    return BOOLEANS.get(octets) or clipped(words(octets))


def _status(receipt: Receipt) -> str:
    if receipt.status == "refused":
        return "refused: there is no block of it, and nothing has changed"
    return f"{receipt.status}, in block {receipt.block_height}"


def _follows(receipt: Receipt) -> str:
    """Return the status of a transaction that failed because the first one did."""
    cost = f", for a fee of {format_cby(receipt.fee_paid)} CBY" if receipt.fee_paid else ""
    return f"none, for the first failed: {receipt.status}{cost}"


def _also(chain: ChainReader, height: int) -> Iterator[str]:
    """Yield what else ran in a block."""
    origins = [receipt.origin for receipt in chain.blocks[height].receipts]
    for origin, word, ran in ((Origin.TIMER, "timer", "fired"), (Origin.MESSAGE, "message", "delivered")):
        if origin in origins:
            yield f"{counted(origins.count(origin), word)} {ran} in the same block"
