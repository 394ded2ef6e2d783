"""What a node of a network answers its engine, as messages: the application's answers, and the snapshots'.

What only looks at the mempool is answered on the event loop; what concerns the next block, on the chain's thread.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from trailboss import __version__
from trailboss.network.abci import Handler
from trailboss.network.application import NANOSECONDS_PER_MS, OK, REFUSED, Application, Committee
from trailboss.network.engine_files import APPLICATION_VERSION
from trailboss.network.sync import Joining, SnapshotOffer
from trailboss.network.sync_answers import OfferResult
from trailboss.node.logs import log
from trailboss.primitives.octets import Hash32

RECHECK: Final = 1  # kind of CheckTx: whether a transaction that was accepted still waits
ACCEPT, REJECT = 1, 2  # votes on a proposal
ABSENT: Final = 1  # flag of a validator that did not sign a block; 2 signed it, 3 signed that there be none
NANOSECONDS: Final = 1_000_000_000
UNKNOWN_QUERY: Final = 1
NO_QUERY: Final = "ask the node's REST API: it answers with proofs"


class ChainAnswers:
    """The answers of a node that has its chain."""

    def __init__(self, application: Application, snapshots: SnapshotOffer) -> None:
        self._application = application
        self._snapshots = snapshots
        self.forget = application.forget
        self.at_once: Mapping[str, Handler] = {
            "echo": echo,
            "flush": nothing,
            "info": lambda _, answer: state_standing(answer, *application.standing()),
            "query": self._query,
            "check_tx": self._check_tx,
            "list_snapshots": snapshots.list_snapshots,
        }
        self.on_thread: Mapping[str, Handler] = {
            "init_chain": self._init_chain,
            "prepare_proposal": self._prepare_proposal,
            "process_proposal": self._process_proposal,
            "extend_vote": nothing,
            "verify_vote_extension": self._verify_vote_extension,
            "finalize_block": self._finalize_block,
            "commit": self._commit,
            "load_snapshot_chunk": snapshots.load_chunk,
            "offer_snapshot": self._refuse_snapshot,
        }

    # On the event loop

    def _query(self, _: Any, answer: Any) -> None:
        answer.code, answer.log = UNKNOWN_QUERY, NO_QUERY
        answer.height = self._application.standing()[0]

    def _check_tx(self, request: Any, answer: Any) -> None:
        if request.type == RECHECK:
            answer.code = OK if self._application.still_waits(request.tx) else REFUSED
            return
        outcome = self._application.check_transaction(request.tx)
        rejection = outcome.rejection
        # The node that took a transaction from a client has it in its mempool before its engine asks.
        if rejection is not None and not self._application.still_waits(request.tx):
            answer.code, answer.log, answer.codespace = rejection.reason.code or REFUSED, rejection.what, "trailboss"

    # On the thread that has the chain

    def _init_chain(self, request: Any, answer: Any) -> None:
        validators = [(each.pub_key.ed25519, each.power) for each in request.validators]
        time_ms = _nanoseconds(request.time) // NANOSECONDS_PER_MS
        genesis = stated_genesis(request.app_state_bytes)
        answer.app_hash = self._application.begin(
            request.chain_id, time_ms, validators, genesis, request.initial_height
        )

    def _prepare_proposal(self, request: Any, answer: Any) -> None:
        answer.txs.extend(self._application.propose(request.max_tx_bytes))

    def _process_proposal(self, request: Any, answer: Any) -> None:
        rejection = self._application.check_proposal(request.txs)
        answer.status = ACCEPT if rejection is None else REJECT
        if rejection is not None:
            log().warning(
                "voted against a proposal",
                height=request.height,
                proposer=request.proposer_address.hex(),
                reason=rejection.reason.slug,
                what=rejection.what,
            )

    def _verify_vote_extension(self, _: Any, answer: Any) -> None:
        # Genesis turns extensions off, so there is none; refusing would only lose a vote.
        answer.status = ACCEPT

    def _finalize_block(self, request: Any, answer: Any) -> None:
        for each in request.misbehavior:
            log().warning(
                "a validator is proven to misbehave", validator=each.validator.address.hex(), height=each.height
            )
        votes = request.decided_last_commit.votes
        committee = Committee(
            request.proposer_address,
            [each.validator.address for each in votes if each.block_id_flag != ABSENT],
            [each.validator.address for each in votes if each.block_id_flag == ABSENT],
        )
        time_ns = _nanoseconds(request.time)
        results, app_hash = self._application.finalize(request.height, time_ns, request.txs, committee)
        for result in results:
            answer.tx_results.add(
                code=result.code, gas_wanted=result.cycles_limit, gas_used=result.cycles_used, log=result.words
            )
        answer.app_hash = app_hash

    def _commit(self, _: Any, answer: Any) -> None:
        self._application.commit()
        self._snapshots.note(self._application.view)
        answer.SetInParent()

    def _refuse_snapshot(self, _: Any, answer: Any) -> None:
        # A node that has a chain goes on with it.
        answer.result = OfferResult.ABORT


class JoiningAnswers:
    """The answers of a node that fetches its chain from others."""

    def __init__(self, joining: Joining, finish: Handler) -> None:
        """Answer about snapshots; ``finish`` is called when the engine asks for a block."""
        self.at_once: Mapping[str, Handler] = {
            "echo": echo,
            "flush": nothing,
            "info": lambda _, answer: state_standing(answer, *joining.standing()),
            "list_snapshots": nothing,
        }
        self.on_thread: Mapping[str, Handler] = {
            "offer_snapshot": joining.offer,
            "apply_snapshot_chunk": joining.apply_chunk,
            **dict.fromkeys(("init_chain", "prepare_proposal", "process_proposal", "finalize_block"), finish),
        }

    def forget(self) -> None:
        """Nothing is begun that the engine would ask for again."""


def echo(request: Any, answer: Any) -> None:
    """Answer with what was sent."""
    answer.message = request.message


def nothing(_: Any, answer: Any) -> None:
    """Answer, and say nothing."""
    answer.SetInParent()


def state_standing(answer: Any, height: int, app_hash: Hash32) -> None:
    """Answer with the program, and with height and app hash of the last committed block."""
    answer.data, answer.version, answer.app_version = "trailboss", __version__, APPLICATION_VERSION
    answer.last_block_height = height
    if height:
        answer.last_block_app_hash = app_hash


def stated_genesis(app_state: bytes) -> bytes:
    """Return the encoded genesis that an engine's genesis states; empty if it states none."""
    try:
        return bytes.fromhex(msgspec.json.decode(app_state)["genesis"].removeprefix("0x"))
    except (msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError):
        return b""


def _nanoseconds(time: Any) -> int:
    return int(time.seconds) * NANOSECONDS + int(time.nanos)
