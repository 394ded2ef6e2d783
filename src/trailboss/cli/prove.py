"""``trailboss prove`` makes proofs of what the state holds, ``trailboss verify-proof`` checks them without a chain."""

import json
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import asdict as struct_dict

from trailboss.chain.proofs import (
    AccountSubject,
    Proof,
    Slot,
    SlotSubject,
    StorageSubject,
    Subject,
    TimersSubject,
    timer_subject,
)
from trailboss.cli.failures import Mistake
from trailboss.cli.opening import OpenChain, find_actor, open_chain, resolve_actor, resolve_timer
from trailboss.cli.options import ANYONE, DIRECTORY, AsJson, Place, complete_account
from trailboss.cli.output import note, print_facts, print_json
from trailboss.cli.parsing import parse_hash, parse_payload, read_json, write_file
from trailboss.model.actors import Account
from trailboss.model.configs import amount_of
from trailboss.model.timers import Timer
from trailboss.primitives.units import U64_MAX, Height

prove = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Prove what the state holds, to somebody who has only its root.",
)

Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="File for the proof. [dim]\\[default: stdout][/dim]"),
]
Actor = Annotated[
    str, typer.Argument(metavar="ACTOR", help="Its address, or the first digits of it.", show_default=False)
]
AtHeight = Annotated[int, typer.Argument(metavar="HEIGHT", min=0, max=U64_MAX, show_default=False)]


@prove.command()
def account(
    who: Annotated[
        str,
        typer.Argument(metavar="WHO", help=f"Account: {ANYONE}.", show_default=False, autocompletion=complete_account),
    ],
    out: Out = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Prove an account or an actor, or that there is none."""
    with open_chain(place) as chain:
        _prove(chain, AccountSubject(resolve_actor(chain, who)), out, as_json=as_json)


@prove.command()
def slot(
    actor: Actor,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the slot: text, or 0x… for bytes.", show_default=False)
    ],
    out: Out = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Prove what one storage slot of an actor holds, or that it is empty."""
    octets = parse_payload(name)
    with open_chain(place) as chain:
        _prove(chain, SlotSubject(find_actor(chain, actor), octets), out, as_json=as_json)


@prove.command()
def storage(actor: Actor, out: Out = None, place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Prove all storage slots of an actor, and that there are no others."""
    with open_chain(place) as chain:
        _prove(chain, StorageSubject(find_actor(chain, actor)), out, as_json=as_json)


@prove.command()
def timer(
    timer_id: Annotated[
        str, typer.Argument(metavar="ID", help="Its id, or the first digits of it.", show_default=False)
    ],
    height: Annotated[
        int | None,
        typer.Option(
            min=0, max=U64_MAX, metavar="H", help="Height it was due at, of a timer that is gone.", show_default=False
        ),
    ] = None,
    out: Out = None,
    place: Place = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Prove that a timer waits, or with --height that it is gone."""
    with open_chain(place) as chain:
        subject = timer_subject(chain.store, resolve_timer(chain, timer_id), height)
        _prove(chain, subject, out, as_json=as_json)


@prove.command()
def timers(first: AtHeight, last: AtHeight, out: Out = None, place: Place = DIRECTORY, as_json: AsJson = False) -> None:
    """Prove which timers are due from one height to another, and that there are no others."""
    if last < first:
        raise Mistake(f"the last height, {last}, lies below the first, {first}", "swap them")
    with open_chain(place) as chain:
        _prove(chain, TimersSubject(Height(first), Height(last)), out, as_json=as_json)


def _prove(chain: OpenChain, subject: Subject, out: Path | None, *, as_json: bool) -> None:
    proof = chain.prove(subject)
    statement = proof.verify(chain.state_root)
    document = proof.to_json()
    if out is None:
        # The proof itself is the data, with --json and without.
        print_json(document)
        note(f"{statement}, under the state root {chain.state_root}")
        return
    write_file(out, json.dumps(document, indent=2) + "\n")
    if as_json:
        print_json({"proof": str(out), "statement": str(statement), "state_root": chain.state_root})
    else:
        print_facts({"proven": str(statement), "state root": str(chain.state_root), "proof": str(out)})


def verify_proof(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File that prove wrote.", show_default=False)],
    root: Annotated[
        str, typer.Option(metavar="HASH", help="State root, from a block header that you trust.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Check a proof against a state root, without a chain."""
    state_root = parse_hash("the root", root)
    document = read_json(file, "proof")
    if isinstance(document, dict):
        # What a node answers to POST /proof says more than the proof.
        document = document.get("proof", document)
    statement = Proof.from_json(document).verify(state_root)
    if as_json:
        records = [_record_document(record) for record in statement.records]
        print_json({"holds": True, "statement": str(statement), "state_root": state_root, "records": records})
    else:
        print_facts({"holds": str(statement), "state root": str(state_root)})


def _record_document(record: Account | Slot | Timer) -> dict[str, object]:
    document = struct_dict(record)
    if isinstance(record, Account):
        document["balance"] = amount_of(record.balance)
    return document
