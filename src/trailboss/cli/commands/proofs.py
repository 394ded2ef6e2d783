"""Proofs of what the state holds: ``prove`` makes them, ``verify-proof`` checks them without a chain."""

import json
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import asdict as struct_dict

from trailboss.chain import proofs
from trailboss.cli import options
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import Mistake
from trailboss.cli.lazy import group
from trailboss.cli.options import Actor, Number, TimerId, Who, argument, option
from trailboss.cli.output import note, print_json
from trailboss.cli.targets import find_actor, resolve_actor, resolve_timer
from trailboss.cli.values import parse_hash, parse_payload, read_file
from trailboss.model.actors import Account
from trailboss.model.configs import amount_of
from trailboss.primitives.units import U64_MAX, Height

prove = group("Prove what the state holds to someone who has only its root.")

Out = Annotated[Path | None, option("FILE", "File for the proof.", "stdout")]
AtHeight = Annotated[int, argument("HEIGHT", "A block height.", parser=options.whole_number(0, U64_MAX))]


@prove.command()
@command()
def account(run: Invocation, who: Who, out: Out = None) -> None:
    """Prove an account or an actor, or that there is none.

    Example: trailboss prove account 0
    """
    _prove(run, proofs.AccountSubject(resolve_actor(run.chain, who)), out)


@prove.command()
@command()
def slot(
    run: Invocation,
    actor: Actor,
    name: Annotated[str, argument("NAME", "Name of the slot: text, or 0x… for bytes.")],
    out: Out = None,
) -> None:
    """Prove what one storage slot of an actor holds, or that it is empty.

    Example: trailboss prove slot 0x044d2D5f price
    """
    octets = parse_payload(name)
    _prove(run, proofs.SlotSubject(find_actor(run.chain, actor), octets), out)


@prove.command()
@command()
def storage(run: Invocation, actor: Actor, out: Out = None) -> None:
    """Prove all storage slots of an actor, and that there are no others.

    Example: trailboss prove storage 0x044d2D5f
    """
    _prove(run, proofs.StorageSubject(find_actor(run.chain, actor)), out)


@prove.command()
@command()
def timer(
    run: Invocation,
    timer_id: TimerId,
    height: Annotated[Number, options.height("Height at which a timer that is gone was due.")] = None,
    out: Out = None,
) -> None:
    """Prove that a timer waits, or with --height that it is gone.

    Example: trailboss prove timer 0x6e3d2443 --out timer.json
    """
    _prove(run, proofs.timer_subject(run.chain.store, resolve_timer(run.chain, timer_id), height), out)


@prove.command()
@command()
def timers(run: Invocation, first: AtHeight, last: AtHeight, out: Out = None) -> None:
    """Prove which timers are due from one height to another, and that there are no others.

    Example: trailboss prove timers 100 200
    """
    if last < first:
        raise Mistake(f"the last height, {last}, lies below the first, {first}", "swap them")
    _prove(run, proofs.TimersSubject(Height(first), Height(last)), out)


def _prove(run: Invocation, subject: proofs.Subject, out: Path | None) -> None:
    chain = run.chain
    proof = chain.prove(subject)
    statement = proof.verify(chain.state_root)
    document = proof.to_json()
    if out is None:
        # The proof itself is the data, with --json and without.
        print_json(document)
        note(f"{statement}, under the state root {chain.state_root}")
        return
    write_document(out, document)
    shown = {"proof": str(out), "statement": str(statement), "state_root": chain.state_root}
    run.show(shown, {"proven": str(statement), "state root": chain.state_root, "proof": str(out)})


@command(on_chain=False)
def verify_proof(
    run: Invocation,
    file: Annotated[Path, argument("FILE", "File that prove wrote.")],
    root: Annotated[str, option("HASH", "State root, from a block header that you trust.")],
) -> None:
    """Check a proof against a state root, without a chain.

    Example: trailboss verify-proof timer.json --root 0x1f2e…
    """
    state_root = parse_hash("the root", root)
    document = read_document(file)
    if isinstance(document, dict):
        # What a node answers to POST /proof says more than the proof.
        document = document.get("proof", document)
    statement = proofs.Proof.from_json(document).verify(state_root)
    shown = {"holds": True, "statement": str(statement), "state_root": state_root, "records": shown_records(statement)}
    run.show(shown, {"holds": str(statement), "state root": state_root})


def write_document(out: Path, document: object) -> None:
    """Write a proof's JSON to a file."""
    try:
        out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise Mistake(f"cannot write {out}: {error.strerror}", "name a file in a folder that is there") from None


def read_document(file: Path) -> Any:
    """Return the JSON of a proof's file."""
    try:
        return json.loads(read_file(file, "proof"))
    except (ValueError, RecursionError) as error:
        raise Mistake(f"the proof {file} is not JSON: {error}", "name the file of a proof") from None


def shown_records(statement: proofs.Statement) -> list[dict[str, Any]]:
    """Return the records that a proof shows, ready for JSON."""
    return [
        struct_dict(record) | ({"balance": amount_of(record.balance)} if isinstance(record, Account) else {})
        for record in statement.records
    ]
