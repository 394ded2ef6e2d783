"""State sync as the engine sees it: offers and chunks as messages, and what is answered when they lie."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.chain.joining import Offer, filled_chain, offer_of, small_parts
from trailboss.chain import Chain
from trailboss.network.answers import JoiningAnswers
from trailboss.network.messages import MESSAGES, Request, Response
from trailboss.network.sync import Joining, SnapshotOffer

ACCEPT, ABORT, RETRY = 1, 2, 3  # of both kinds of answers
REJECT_FORMAT, REJECT_SENDER = 4, 5


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    """A snapshot of several chunks."""
    small_parts(monkeypatch)
    local, _ = filled_chain()
    yield offer_of(local.chain)
    local.close()


@pytest.fixture
def joining(offer: Offer, tmp_path: Path) -> Joining:
    """A node without a chain."""
    return Joining(tmp_path / "chain", offer.chain.genesis)


def offered(joining: Joining, offer: Offer, **fields: Any) -> int:
    """Offer a snapshot, some fields of which may be other ones, and return the answer."""
    request, answer = MESSAGES["RequestOfferSnapshot"](), MESSAGES["ResponseOfferSnapshot"]()
    for name in ("height", "format", "chunks", "hash", "metadata"):
        setattr(request.snapshot, name, fields.get(name, getattr(offer.snapshot, name)))
    request.app_hash = fields.get("app_hash", bytes(offer.view.head.hash))
    joining.offer(request, answer)
    return int(answer.result)


def sent(joining: Joining, index: int, chunk: bytes, sender: bytes = b"peer") -> Any:
    """Send a chunk, and return the answer."""
    answer = MESSAGES["ResponseApplySnapshotChunk"]()
    joining.apply_chunk(MESSAGES["RequestApplySnapshotChunk"](index=index, chunk=chunk, sender=sender), answer)
    return answer


def test_node_joins_by_a_snapshot(joining: Joining, offer: Offer, tmp_path: Path) -> None:
    """It stands at nothing until the last chunk, and at the snapshot's block and app hash after it."""
    assert offered(joining, offer) == ACCEPT
    assert len(offer.chunks) > 2
    for index, chunk in enumerate(offer.chunks):
        assert joining.standing()[0] == 0
        assert sent(joining, index, chunk).result == ACCEPT
    assert joining.standing() == (offer.view.height, offer.view.head.hash)
    joining.close()
    with Chain.open(tmp_path / "chain") as chain:
        assert chain.state_root == offer.view.state_root


def test_wrong_chunk_costs_its_sender_and_nothing_else(joining: Joining, offer: Offer) -> None:
    """It is fetched from another peer, and the snapshot goes on."""
    assert offered(joining, offer) == ACCEPT
    wrong = offer.chunks[0][:-1] + bytes((offer.chunks[0][-1] ^ 1,))
    for false in (wrong, b"", offer.chunks[1]):
        answer = sent(joining, 0, false, b"liar")
        assert (answer.result, list(answer.refetch_chunks), list(answer.reject_senders)) == (RETRY, [0], [b"liar"])
    for index, chunk in enumerate(offer.chunks):
        assert sent(joining, index, chunk).result == ACCEPT


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({"format": 2}, REJECT_FORMAT),
        ({"metadata": b"\x00"}, REJECT_SENDER),
        ({"hash": bytes(32)}, REJECT_SENDER),
        ({"height": 14}, REJECT_SENDER),
        ({"chunks": 1}, REJECT_SENDER),
        ({"app_hash": bytes(32)}, REJECT_SENDER),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_false_offer_is_refused_and_leaves_nothing(
    joining: Joining, offer: Offer, tmp_path: Path, fields: dict[str, Any], result: int
) -> None:
    """A right one may follow."""
    assert offered(joining, offer, **fields) == result
    assert not (tmp_path / "chain").exists()
    assert sent(joining, 0, offer.chunks[0]).result == ABORT
    assert offered(joining, offer) == ACCEPT


def test_snapshot_that_is_given_up_leaves_nothing(joining: Joining, offer: Offer, tmp_path: Path) -> None:
    """Neither when another one is offered, nor when the node ends."""
    assert offered(joining, offer) == ACCEPT
    assert sent(joining, 0, offer.chunks[0]).result == ACCEPT
    assert offered(joining, offer) == ACCEPT
    assert sent(joining, 0, offer.chunks[0]).result == ACCEPT
    joining.close()
    assert not (tmp_path / "chain").exists()
    assert joining.standing()[0] == 0


def test_node_offers_its_snapshots_and_their_chunks(offer: Offer) -> None:
    """Those of due heights alone; a chunk that is not there is empty."""
    snapshots = SnapshotOffer(offer.view.height)
    snapshots.note(offer.view)
    snapshots.close()
    listed = Response().list_snapshots
    snapshots.list_snapshots(Request().list_snapshots, listed)
    [found] = listed.snapshots
    assert (found.height, found.hash, found.metadata) == (
        offer.view.height,
        offer.snapshot.hash,
        offer.snapshot.metadata,
    )
    chunks = []
    for index in range(found.chunks + 1):
        answer = Response().load_snapshot_chunk
        request = MESSAGES["RequestLoadSnapshotChunk"](height=found.height, format=found.format, chunk=index)
        snapshots.load_chunk(request, answer)
        chunks.append(answer.chunk)
    assert chunks == [*offer.chunks, b""]
    other = SnapshotOffer(offer.view.height + 1)
    other.note(offer.view)
    other.close()
    empty = Response().list_snapshots
    other.list_snapshots(Request().list_snapshots, empty)
    assert list(empty.snapshots) == []


def test_node_that_joins_knows_no_blocks(joining: Joining) -> None:
    """It stands at nothing, and what asks for a block ends the joining."""
    asked = []
    answers = JoiningAnswers(joining, lambda request, _: asked.append(request))
    info = Response().info
    answers.at_once["info"](Request().info, info)
    assert (info.last_block_height, info.last_block_app_hash) == (0, b"")
    answers.on_thread["finalize_block"](Request().finalize_block, Response().finalize_block)
    assert len(asked) == 1
