"""Votes on what one market has: its parameters, the activation of the lane, the weights of the auction.

Decision: D-34
"""

from collections.abc import Callable, Mapping
from typing import Final

from trailboss.codec.canonical import encode_canonical
from trailboss.governance.markets import AUCTION_KEY, SUBJECTS
from trailboss.governance.parameters import ACTIVATION, RESCALE_WEIGHTS
from trailboss.governance.rules import Rules
from trailboss.model.auction import SCORE_UNIT, AuctionState
from trailboss.model.configs import decode_record, encode_record
from trailboss.model.events import PARAMETER_SET, EventRecord
from trailboss.model.markets import MarketKind
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import system_address
from trailboss.state.overlay import Overlay

RESCALE_MAX: Final = 10 * SCORE_UNIT
ACTIVATION_NOTICE: Final = 2
"""Blocks between the vote and the activation at least. Decision: D-34."""
_NOT_SUCCEEDED: Final = {MarketKind.AUCTION: "the auction", MarketKind.GLOBALBOX: "globalbox"}
"""What the lane does not succeed, and its name in messages."""


def check_subject(rules: Rules, key: bytes, value: int, subject: str) -> None:
    """Refuse a parameter of a market that the chain does not have."""
    kind, name = SUBJECTS.get(subject, (rules.market.kind, ""))
    if rules.market.kind is not kind:
        raise refused(key.decode(), value, f"left alone: this chain has no {name}")


def check_vote(rules: Rules, key: bytes, value: int) -> None:
    """Refuse a value that its market does not allow in this block; 0 withdraws a vote on an activation ahead."""
    if key == ACTIVATION and (value or rules.market.kind is MarketKind.LANE):
        check_activation(rules, value)


def check_activation(rules: Rules, height: int) -> None:
    """Refuse a height with too short a notice, and any on a chain whose lane is active or can never be.

    Spec: CIP-1v3 §13.2. Decision: D-34
    """
    other = _NOT_SUCCEEDED.get(rules.market.kind)
    if other is not None:
        raise refused(ACTIVATION.decode(), height, f"left alone: the lane succeeds fifo, and this chain has {other}")
    if rules.market.kind is MarketKind.LANE:
        begun = rules.params.lane.activation_height
        rule = f"left alone: the lane is active from height {begun} on, and this is block {rules.height}"
        raise refused(ACTIVATION.decode(), height, rule)
    least = rules.height + ACTIVATION_NOTICE
    if height < least:
        raise refused(
            ACTIVATION.decode(), height, f"at least {least}, {ACTIVATION_NOTICE} blocks ahead of height {rules.height}"
        )


def rescale_weights(overlay: Overlay, rules: Rules, factor: int) -> EventRecord:
    """Multiply the weights of the auction's actors by at most 10, or reset them. Spec: CIP-1v1 §3. Decision: D-59."""
    # CHECK
    name = RESCALE_WEIGHTS.decode()
    if rules.market.kind is not MarketKind.AUCTION:
        raise refused(name, factor, "left out: this chain has no auction and so no weights")
    if factor > RESCALE_MAX:
        raise refused(name, factor, f"within 0..={RESCALE_MAX}, in parts of {SCORE_UNIT}")
    octets = overlay.read(AUCTION_KEY)
    before = rules.market.kept(AuctionState) if octets is None else decode_record(octets, AuctionState)
    # RUN
    overlay.write(AUCTION_KEY, encode_record(AuctionState((*before.rescales, factor))))
    emitter = system_address(rules.params.governance.basefee_actor)
    return EventRecord(PARAMETER_SET, emitter, encode_canonical({"key": RESCALE_WEIGHTS, "value": factor}))


def refused(name: str, value: int, rule: str) -> Rejection:
    """Return the refusal of a governed value."""
    return Rejection(
        RejectionReason.INVALID_PARAMETER, f"{name} = {value} must be {rule}", parameter=name, value=str(value)
    )


ACTS: Final[Mapping[bytes, Callable[[Overlay, Rules, int], EventRecord]]] = {RESCALE_WEIGHTS: rescale_weights}
"""Keys of SetGovParam that set no parameter, and what a vote on them does."""
