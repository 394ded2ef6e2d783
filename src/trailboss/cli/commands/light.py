"""``light``: proofs that lead from the signatures of a network's validators to what the chain holds."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import sleep
from typing import Annotated, Any, Final

from trailboss.chain import proofs
from trailboss.cli import options
from trailboss.cli.command import Invocation, command
from trailboss.cli.commands.proofs import Out, read_document, shown_records, write_document
from trailboss.cli.errors import Mistake, NotFound
from trailboss.cli.lazy import group
from trailboss.cli.options import Number, Text, argument, option
from trailboss.cli.output import note, print_json
from trailboss.cli.remote.chain import RemoteChain
from trailboss.cli.remote.signed_headers import await_signed_header
from trailboss.cli.targets import find_actor, node_url, resolve_actor, resolve_timer
from trailboss.cli.values import parse_hash, parse_payload, read_text
from trailboss.execution.genesis import Genesis, parse_genesis
from trailboss.light.endings import EndingProof, TimerEnding, prove_ending
from trailboss.light.proof import LightProof, LightStatement
from trailboss.model.blocks import Header
from trailboss.model.events import TIMER_ENDINGS
from trailboss.primitives.octets import Hash32
from trailboss.primitives.units import U64_MAX, Height
from trailboss.views.records import event_view

light = group("Prove to someone who has only the genesis of a network, by its validators' signatures.")

POLL_SECONDS: Final = 0.1
SUBJECTS: Final = "give the ID of a timer, or: account WHO, slot ACTOR NAME, storage ACTOR, timers FIRST LAST"


@light.command()
@command(on_chain=False)
def prove(
    run: Invocation,
    subject: Annotated[
        list[str],
        argument("SUBJECT", "ID of a timer; or account WHO, slot ACTOR NAME, storage ACTOR, timers FIRST LAST."),
    ],
    node: Annotated[str, option("URL", "URL of a node of the network.", None, "--node --url", envvar="COWBOY_RPC_URL")],
    engine: Annotated[Text, option("URL", "URL of an engine's RPC, for the signatures.", "the node")] = None,
    height: Annotated[Number, options.height("Block after which it is so; it is awaited.", "the last block")] = None,
    due: Annotated[Number, options.height("Height at which a timer that is not there was due.")] = None,
    out: Out = None,
) -> None:
    """Prove what the chain holds, or how a timer ended, by the validators' signatures.

    Example: trailboss light prove 0x6e3d2443 --node http://localhost:4000 --out timer.json
    """
    url = node_url(node)
    with closing(_chain_at(url, height)) as chain:
        header, shown = _shown(chain, subject, height, due)
    signed = await_signed_header(url, None if engine is None else node_url(engine), header.height + 1)
    proof = LightProof(signed, header, shown)
    statement = proof.verify(chain.genesis.validators, chain.genesis.engine_chain_id())
    if out is None:
        # The proof itself is the data, with --json and without.
        print_json(proof.to_json())
        note(f"{statement}; signed by {statement.support}")
        return
    write_document(out, proof.to_json())
    run.show(_document(statement) | {"proof": str(out)}, _facts("proven", statement) | {"proof": str(out)})


@light.command()
@command(on_chain=False)
def verify(
    run: Invocation,
    file: Annotated[Path, argument("FILE", "File that light prove wrote.")],
    genesis_file: Annotated[Path, option("FILE", "Genesis of the network, a TOML file.", name="--genesis")],
) -> None:
    """Check a light proof against the genesis of a network, without a chain and without a node.

    Example: trailboss light verify timer.json --genesis genesis.toml
    """
    genesis = parse_genesis(read_text(genesis_file, "genesis"))
    _check_network(genesis, str(genesis_file))
    proof = LightProof.from_json(read_document(file))
    statement = proof.verify(genesis.validators, genesis.engine_chain_id())
    run.show({"holds": True} | _document(statement), _facts("holds", statement))


def _check_network(genesis: Genesis, place: str) -> None:
    if not genesis.validators:
        raise Mistake(
            f"the genesis of {place} states no validators, so nothing is signed",
            "name a network; for other chains there are `trailboss prove` and `trailboss verify-proof`",
        )


def _chain_at(url: str, height: int | None) -> RemoteChain:
    """Return the present chain of a node, once it has reached a height."""
    while True:
        chain = RemoteChain(url)
        _check_network(chain.genesis, url)
        if height is None or chain.height >= height:
            return chain
        chain.close()
        sleep(POLL_SECONDS)


def _shown(
    chain: RemoteChain, words: Sequence[str], height: int | None, due: int | None
) -> tuple[Header, proofs.Proof | EndingProof]:
    """Return a proof and the header that commits to it."""
    subject = _subject(chain, words, due)
    if isinstance(subject, Hash32):
        return _ending(chain, subject, height)
    proof = chain.prove(subject)
    # The chain may have gone on until a proof was of its present height.
    if height is not None and chain.height > height:
        raise _gone(chain, height)
    return chain.head.header, proof


def _subject(chain: RemoteChain, words: Sequence[str], due: int | None) -> proofs.Subject | Hash32:
    """Return what is to be proven of the state, or the id of a timer that has ended."""
    match words:
        case ["account", who]:
            return proofs.AccountSubject(resolve_actor(chain, who))
        case ["slot", actor, name]:
            return proofs.SlotSubject(find_actor(chain, actor), parse_payload(name))
        case ["storage", actor]:
            return proofs.StorageSubject(find_actor(chain, actor))
        case ["timers", first, last] if first.isdecimal() and last.isdecimal() and int(first) <= int(last) <= U64_MAX:
            return proofs.TimersSubject(Height(int(first)), Height(int(last)))
        case [timer] if due is not None:
            return proofs.TimerSubject(Height(due), parse_hash("the timer id", timer))
        case [timer]:
            timer_id = resolve_timer(chain, timer)
            is_live = chain.timer(timer_id) is not None
            return proofs.timer_subject(chain.store, timer_id) if is_live else timer_id
    raise Mistake(f"{' '.join(words)!r} cannot be proven", SUBJECTS)


def _ending(chain: RemoteChain, timer_id: Hash32, height: int | None) -> tuple[Header, EndingProof]:
    steps = chain.explain(timer_id).steps
    ended_in = next((step.block_height for step in steps if step.event.name in TIMER_ENDINGS), None)
    if ended_in is None or (height is not None and ended_in > height):
        raise _gone(chain, height)
    block = chain.blocks[ended_in]
    proof = prove_ending(timer_id, block.receipts, block.events)
    if proof is None:
        raise _gone(chain, height)
    return block.header, proof


def _gone(chain: RemoteChain, height: int | None) -> NotFound:
    return NotFound(
        f"{chain.url} is at height {chain.height}, and proves no earlier state, as that after block {height}",
        "leave --height out, or give a height that is still to come",
    )


def _document(statement: LightStatement) -> dict[str, Any]:
    header, proven = statement.header, statement.proven
    found = {
        "statement": str(statement),
        "height": header.height,
        "block_hash": statement.hash,
        "state_root": Hash32(header.state_root),
        "receipts_root": Hash32(header.receipts_root),
        "signed_at": statement.signed_at.text(),
        "support": statement.support,
    }
    if isinstance(proven, TimerEnding):
        return found | {"event": event_view(proven.event, header.height)}
    return found | {"records": shown_records(proven)}


def _facts(label: str, statement: LightStatement) -> dict[str, Any]:
    return {
        label: str(statement),
        "signed by": str(statement.support),
        "signed at": statement.signed_at.text(),
        "block": statement.hash,
    }
