"""What no honest validator proposes: whatever can be known of a proposal from the state before its block.

An honest proposal comes from `Mempool.take`, which holds to the same rules, so it is never refused. Decision: D-103.
"""

from collections.abc import Sequence

from trailboss.chain.admission import check_admission, check_sender, standing_of
from trailboss.chain.reader import ChainReader
from trailboss.codec.wire import decode_transaction
from trailboss.crypto.digest import sha256
from trailboss.mempool import Mempool
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.primitives.octets import Hash32


def check_proposal(view: ChainReader, mempool: Mempool, proposal: Sequence[bytes]) -> None:
    """Refuse a proposal for the block after a view; what is in the mempool has had its signature checked.

    Raises:
        Rejection: Of the first transaction, named by its place, that no honest proposer puts there: it cannot be
            decoded, is not signed, does not follow its sender's nonce, offers too little, cannot be paid for next to
            those before it, or does not fit the block's limits next to them.
    """
    limits = view.rules().params.limits
    promised: dict[bytes, int] = {}
    counted: dict[bytes, int] = {}
    cycles = cells = 0
    for place, raw in enumerate(proposal):
        try:
            transaction = decode_transaction(raw)
            sender = transaction.sender
            standing = standing_of(view, sender)
            standing = standing._replace(nonce=standing.nonce + counted.get(sender, 0))
            needs = check_admission(view, transaction, standing, promised=promised.get(sender, 0), ahead=0)
            cycles, cells = cycles + needs.cycles, cells + needs.cells
            if cycles > limits.block_cycles_max or cells > limits.block_cells_max:
                what = f"the block's transactions need {cycles} cycles and {cells} cells before they run"
                bounds = f"above {limits.block_cycles_max} and {limits.block_cells_max}"
                raise Rejection(RejectionReason.BLOCK_FULL, f"{what}, {bounds}")
            if mempool.find(Hash32(sha256(raw))) is None:
                check_sender(view, transaction)
        except Rejection as rejection:
            what = f"transaction {place} of {len(proposal)}: {rejection.what}"
            raise Rejection(rejection.reason, what, place=place) from rejection
        promised[sender] = promised.get(sender, 0) + needs.cost
        counted[sender] = counted.get(sender, 0) + 1
