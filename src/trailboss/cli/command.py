"""What commands share: options at the end of their help, the chain, transactions that are sent, receipts printed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Final

import typer
from msgspec import Struct
from msgspec.structs import fields, replace
from typer.models import OptionInfo

from trailboss.chain import ChainReader
from trailboss.chain.development import DEPLOYER
from trailboss.chain.drafts import DEFAULT_TERMS, Terms, draft_transaction
from trailboss.cli import options
from trailboss.cli.assumptions import read_assumptions
from trailboss.cli.errors import FAILED, Mistake, report_failed
from trailboss.cli.output import Cell, console, print_facts, print_json, print_pairs
from trailboss.cli.targets import OpenChain, Signer, open_chain, resolve_actor, resolve_signer
from trailboss.codec.canonical import encode_canonical
from trailboss.model.blocks import Origin
from trailboss.model.transactions import Instruction
from trailboss.primitives.octets import Address
from trailboss.primitives.units import format_cby
from trailboss.rehearsal.overrides import Overrides
from trailboss.views import Receipt
from trailboss.views.accounts import known_names
from trailboss.views.explain.sentences import event_words
from trailboss.views.json_values import to_json_value
from trailboss.views.labels import LabelBook, use_labels
from trailboss.views.records import Printed
from trailboss.views.text import clipped, counted, words

DRY_RUN: Final = ("dry_run", "at_height", "assume")
"""Shared options of a command that can be simulated."""
BOOLEANS: Final = {encode_canonical(value): str(value) for value in (True, False)}


class Invocation(Struct, dict=True):
    """A command that runs, with the options that it shares with others."""

    stack: ExitStack  # closes the chain at the end
    as_json: bool = False
    place: str = ""
    sender: str | None = None
    private_key: str | None = None
    impersonate: str | None = None
    cycles_limit: int | None = None
    cells_limit: int | None = None
    dry_run: bool = False
    at_height: int | None = None
    assume: list[str] | None = None
    is_governing: bool = False  # whether the deployer signs by default

    @cached_property
    def chain(self) -> OpenChain:
        """The chain of a directory, or of a node by its URL; it is opened on first use."""
        return self.stack.enter_context(open_chain(self.place))

    @cached_property
    def signer(self) -> Signer:
        """The account that signs."""
        is_deployer = self.is_governing and self.sender is None and self.private_key is None
        return resolve_signer(DEPLOYER if is_deployer else self.sender, self.private_key)

    def actor(self, text: str | None) -> Address | None:
        """Return the address that an option gives, as `resolve_actor` finds it, or None without one."""
        return None if text is None else resolve_actor(self.chain, text)

    @cached_property
    def terms(self) -> Terms:
        """The terms of a transaction, with the limits that are given."""
        given = {"cycles_limit": self.cycles_limit, "cells_limit": self.cells_limit}
        return replace(DEFAULT_TERMS, **{name: limit for name, limit in given.items() if limit is not None})

    @cached_property
    def overrides(self) -> Overrides:
        """What a dry run takes to be otherwise."""
        return read_assumptions(self.chain, self.assume or ())

    def simulate(self, instruction: Instruction) -> Receipt:
        """Return the receipt that an instruction would have; anyone can be its sender, for nothing is signed."""
        if self.impersonate is not None:
            raise Mistake(
                "both --dry-run and --impersonate are given", "name the account with --from: nothing is signed"
            )
        sender = self.signer.address if self.sender is None else resolve_actor(self.chain, self.sender)
        return self.chain.simulate(instruction, sender, self.terms, self.at_height, self.overrides)

    def send(self, *instructions: Instruction) -> list[Receipt]:
        """Sign instructions and send them, in order: for one block of a directory, or to a node."""
        chain, key, terms = self.chain, self.signer.private_key, self.terms
        numbered = enumerate(instructions, chain.waiting(self.signer.address))
        return chain.submit([draft_transaction(chain, each, key, terms=terms, waiting=n) for n, each in numbered])

    def send_one(self, instruction: Instruction) -> Receipt:
        """Send one instruction, signed, or on a development chain unsigned as another account; return its receipt.

        Raises:
            Mistake: If both a signer and an impersonated account are given, or the signer's key is unknown.
        """
        if self.dry_run:
            return self.simulate(instruction)
        if self.assume or self.at_height is not None:
            raise Mistake(
                "--assume or --at-height is given without --dry-run", "only a dry run takes something to be otherwise"
            )
        if self.impersonate is None:
            return self.send(instruction)[0]
        if self.sender is not None:
            raise Mistake(
                "both --from and --impersonate are given", "give one of the two: who is impersonated signs nothing"
            )
        return self.chain.impersonate(resolve_actor(self.chain, self.impersonate), instruction, self.terms)

    def show(self, document: object, facts: Mapping[str, Cell]) -> None:
        """Print a JSON document, or facts, one a line."""
        if self.as_json:
            print_json(document)
        else:
            print_facts(facts)

    def show_text(self, document: object, text: str) -> None:
        """Print a JSON document, or text that is laid out already."""
        if self.as_json:
            print_json(document)
        else:
            console().print(text, markup=False, soft_wrap=True)

    def show_receipts(
        self, receipts: Mapping[str, Receipt], lead: Mapping[str, Cell] | None = None, followers: Sequence[str] = ()
    ) -> None:
        """Print the receipts of a command's transactions; exit with 1 if one did not end well.

        Args:
            receipts: By what each was for; the first is the command's own.
            lead: Facts to print first.
            followers: Labels of those that cannot end well unless the first does: their failure needs no explanation.
        """
        (_, receipt), *others = receipts.items()
        if self.as_json:
            print_json(to_json_value(receipt) | {label: to_json_value(other) for label, other in others})
        else:
            unexplained = () if receipt.ok else followers
            failed = {
                label: _follows(other) if label in unexplained else _status(other)
                for label, other in others
                if not other.ok
            }
            facts = dict(lead or {}) | _facts(self.chain, receipt, is_dry=self.dry_run) | failed
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


def command(
    *names: str, on_chain: bool = True, has_json: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command options of `SHARED`, ``--chain`` if it works on a chain, and ``--json`` if it prints a document.

    It has them in its first argument. A parameter of a Struct stands for an option for each field of it.
    """

    def wrap(function: Callable[..., None]) -> Callable[..., None]:
        last = {"place": on_chain, "as_json": has_json}
        shared = [SHARED[name] for name in (*names, *(name for name, is_given in last.items() if is_given))]
        own = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in signature(function).parameters.values()][1:]
        groups = {each.name: each.annotation for each in own if isinstance(each.annotation, type(Struct))}

        @wraps(function)
        def run(**given: Any) -> None:
            use_labels(LabelBook())
            with ExitStack() as stack:
                common = {each.name: given.pop(each.name) for each in shared}
                for name, kind in groups.items():
                    given[name] = kind(**{field: given.pop(field) for field in kind.__struct_fields__})
                function(Invocation(stack, is_governing="governor" in names, **common), **given)

        listed = [
            option for each in own for option in (_options_of(groups[each.name]) if each.name in groups else [each])
        ]
        run.__signature__ = Signature([*listed, *shared])  # type: ignore[attr-defined]  # Typer reads it
        return run

    return wrap


def _options_of(group: type[Struct]) -> Iterator[Parameter]:
    """Yield the options that a group stands for; without a value of its own an option is None when it is not given."""
    for each in fields(group):
        kind, value = each.type, each.default
        if isinstance(value, OptionInfo):
            kind, value = Annotated[kind, value], None
        yield Parameter(each.name, Parameter.KEYWORD_ONLY, default=value, annotation=kind)


SHARED: Final = {
    name: Parameter(name.replace("governor", "sender"), Parameter.KEYWORD_ONLY, default=default, annotation=kind)
    for name, kind, default in (
        ("sender", options.Sender, None),
        ("governor", options.Governor, None),
        ("private_key", options.Key, None),
        ("impersonate", options.Impersonated, None),
        ("cycles_limit", options.CyclesLimit, None),
        ("cells_limit", options.CellsLimit, None),
        ("dry_run", options.DryRun, False),
        ("at_height", options.AtHeight, None),
        ("assume", options.Assume, None),
        ("place", options.Place, options.DIRECTORY),
        ("as_json", options.AsJson, False),
    )
}
"""Options that several commands take, in the order of their help."""


def printed_pairs(lines: Iterable[Printed]) -> list[tuple[str, str]]:
    """Return what actors have printed, and warnings about them, as labels and values."""
    return [
        ("warning" if line.is_warning else "printed", f"{line.actor} {line.handler}: {line.text}") for line in lines
    ]


def _facts(chain: ChainReader, receipt: Receipt, *, is_dry: bool) -> dict[str, Cell]:
    if receipt.status == "refused":
        return {"dry run": "nothing is sent" if is_dry else None, "status": _status(receipt)}
    returned = receipt.return_value
    payer = known_names(chain.genesis).get(receipt.payer, str(receipt.payer))
    return {
        "dry run": "nothing is sent, and nothing has changed" if is_dry else None,
        "status": f"{receipt.status}, as block {receipt.block_height} would have it" if is_dry else _status(receipt),
        "used": f"{receipt.cycles_used:,} cycles, {receipt.cells_used:,} cells",
        "fee": f"{format_cby(receipt.fee_paid)} CBY, paid by {payer}",
        # A handler that returned True or False has returned the canonical CBOR of that.
        "returned": BOOLEANS.get(returned) or clipped(words(returned)) if returned else None,
        "also": None if is_dry else ", ".join(_also(chain, receipt.block_height)) or None,
    }


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
