"""Accounts and actors: ``balance``, ``send``, ``faucet``, ``set-balance``, ``deploy``, ``call``."""

from pathlib import Path
from typing import Annotated, Final

import typer

from trailboss.chain.drafts import draft_deployment
from trailboss.cli.command import DRY_RUN, Invocation, command, printed_pairs
from trailboss.cli.errors import FAILED, Mistake, report_facts, report_failed
from trailboss.cli.options import (
    ANYONE,
    PAYLOAD,
    Actor,
    Amount,
    Number,
    Text,
    Texts,
    Who,
    argument,
    complete_account,
    flag,
    money,
    option,
)
from trailboss.cli.output import Cell, columns, console, print_json, print_pairs, print_table
from trailboss.cli.targets import OpenChain, find_actor, resolve_actor, resolve_address
from trailboss.cli.values import parse_amount, parse_payload, read_file
from trailboss.model.events import TIMER_SCHEDULED
from trailboss.model.transactions import ExecuteActor, FundActor, SetBalance, Transfer
from trailboss.primitives.octets import Address
from trailboss.primitives.units import format_cby
from trailboss.views import Receipt
from trailboss.views.accounts import NO_ACCOUNT, Holder, holder_of, known_names
from trailboss.views.explain.life import unpaid_words
from trailboss.views.text import counted, words

ENTITLEMENT: Final = (
    "Entitlement that the actor's manifest declares, as timer.schedule, which public chains require; may be repeated."
)
COLUMNS: Final = columns("account | what | >CBY | >nonce | >timers")


@command()
def balance(
    run: Invocation,
    who: Annotated[Texts, argument("WHO", f"Accounts: {ANYONE}.", "all", autocompletion=complete_account)] = None,
) -> None:
    """Show the balances of accounts and actors.

    Example: trailboss balance 0 deployer
    """
    chain = run.chain
    names = known_names(chain.genesis)
    if who:
        addresses = [resolve_actor(chain, each) for each in who]
    else:
        places = {address: place for place, address in enumerate(names)}
        every = (Address(address) for address, _ in chain.accounts())
        addresses = sorted(every, key=lambda address: (places.get(address, len(places)), address))
    holders = [holder_of(chain, address, names) for address in addresses]
    if run.as_json:
        print_json(holders)
    else:
        print_table("Balances", COLUMNS, [_row(each) for each in holders])


def _row(holder: Holder) -> tuple[Cell, ...]:
    what = holder.name or ("no such account" if holder.kind == NO_ACCOUNT else holder.kind)
    return holder.address, what, format_cby(holder.balance), str(holder.nonce), holder.timers


@command("sender", "private_key", "impersonate", *DRY_RUN)
def send_money(
    run: Invocation,
    to: Annotated[str, argument("TO", f"Recipient: {ANYONE}.", autocompletion=complete_account)],
    amount: Amount,
) -> None:
    """Send money to an account or an actor, in a block of its own.

    Example: trailboss send 0x044d2D5f 1.5cby --from 3
    """
    units, address = parse_amount(amount), resolve_actor(run.chain, to)
    receipt = run.send_one(Transfer(address, units))
    run.show_receipts({"transfer": receipt}, {"sent": f"{format_cby(units)} CBY to {address}" if receipt.ok else None})


@command()
def faucet(run: Invocation, who: Who) -> None:
    """Give an account 5,000 CBY from a node's faucet.

    Example: trailboss faucet 3 --url localhost:4000
    """
    address = resolve_actor(run.chain, who)
    amount, receipt = run.chain.faucet(address)
    run.show_receipts(
        {"transfer": receipt}, {"given": f"{format_cby(amount)} CBY to {address}" if receipt.ok else None}
    )


@command()
def set_balance(run: Invocation, who: Who, amount: Amount) -> None:
    """Set the balance of an account or actor; the supply changes with it.

    Example: trailboss set-balance 3 100cby
    """
    units, address = parse_amount(amount), resolve_actor(run.chain, who)
    receipt = run.chain.interfere(SetBalance(address, units))
    holds = f"{format_cby(run.chain.balance(address))} CBY" if receipt.ok else None
    run.show_receipts({"instruction": receipt}, {"account": address, "holds": holds})


Cbor = Annotated[bool, flag("--cbor", "The payload is JSON; send it as CBOR.")]


@command("sender", "private_key", "cycles_limit", "cells_limit", *DRY_RUN)
def deploy(
    run: Invocation,
    file: Annotated[Path, argument("FILE", "Source of the actor.")],
    value: Annotated[Number, money("Money for the actor: base units, or CBY as 1.5cby.", "0")] = None,
    init_payload: Annotated[str, option("PAYLOAD", f"Argument of the creation call: {PAYLOAD}.")] = "",
    init_handler: Annotated[
        Text, option("NAME", "Handler of the creation call.", "init, else deploy, if it has one")
    ] = None,
    entitlement: Annotated[Texts, option("ID", ENTITLEMENT)] = None,
    cbor: Cbor = False,
) -> None:
    """Deploy an actor and fund it, in one block.

    Prints the actor's address. Deploying the same file again makes another actor. A dry run leaves the funding out.

    Example: trailboss deploy clock.py --value 20cby --from 3
    """
    code, payload = read_file(file, "source"), parse_payload(init_payload, as_cbor=cbor)
    signer, chain = run.signer, run.chain
    account = chain.account(signer.address)
    salt = (0 if account is None else account.nonce).to_bytes(8, "big")
    instruction, address = draft_deployment(
        signer.address, code, salt, init_handler=init_handler, init_payload=payload, entitlements=entitlement or ()
    )
    if run.dry_run:
        run.show_receipts({"deployment": run.simulate(instruction)}, {"actor": address})
        return
    receipts = run.send(instruction, *([FundActor(address, value)] if value else []))
    lead: dict[str, Cell] = (
        {"actor": address, "holds": f"{format_cby(chain.balance(address))} CBY"} if receipts[0].ok else {}
    )
    run.show_receipts(dict(zip(("deployment", "funding"), receipts, strict=False)), lead, ("funding",))
    _warn_of_unpaid(chain, receipts[0])


def _warn_of_unpaid(chain: OpenChain, deployment: Receipt) -> None:
    """Warn of timers scheduled by the creation call whose payer cannot pay; the first one is named."""
    ids = [event.timer_id for event in deployment.events if event.name == TIMER_SCHEDULED and event.timer_id]
    timers = [timer for timer in map(chain.timer, ids) if timer is not None and unpaid_words(chain, timer)]
    if timers:
        first, *rest = timers
        others = f"; nor can {counted(len(rest), 'more timer')}" if rest else ""
        fix = f"give it money before block {first.height}: `trailboss send {Address(first.fee_payer)} AMOUNT`"
        report_facts("warning", {"what": f"{unpaid_words(chain, first)}{others}", "fix": fix})


@command("sender", "private_key", "impersonate", "cycles_limit", "cells_limit", *DRY_RUN)
def call(
    run: Invocation,
    actor: Actor,
    handler: Annotated[str, argument("HANDLER", "Function or method.")],
    payload: Annotated[str, argument("PAYLOAD", f"Argument of the handler: {PAYLOAD}.")] = "",
    cbor: Cbor = False,
    view: Annotated[bool, flag("--view", "Read only: no transaction, no fee, no change.")] = False,
) -> None:
    """Call a handler of an actor, in a block of its own.

    Handlers of SDK actors take CBOR unless they say otherwise: write the payload as JSON and give --cbor.

    Example: trailboss call 0x044d2D5f pay '{"to": "bob"}' --cbor
    """
    octets = parse_payload(payload, as_cbor=cbor)
    address = find_actor(run.chain, actor)
    if view and run.dry_run:
        raise Mistake(
            "both --view and --dry-run are given", "give one of the two: a dry run allows changes, a view refuses them"
        )
    if not view:
        run.show_receipts({"call": run.send_one(ExecuteActor(address, handler, octets))})
        return
    # A read-only call is not signed, so the caller may be anyone.
    caller = resolve_address(run.sender) if run.sender else run.signer.address
    answer = run.chain.ask_view(address, handler, octets, caller)
    used = f"{answer.cycles_used:,} cycles, {answer.cells_used:,} cells, not charged"
    run.show(answer, {"returned": words(answer.return_value) if answer.ok else None, "used": used})
    if not run.as_json:
        print_pairs(console(), printed_pairs(answer.printed))
        if answer.error is not None:
            report_failed(answer.error, "failed")
    if not answer.ok:
        raise typer.Exit(FAILED)
