"""The validators of a network: who proposed, who signed, who is behind; and where this node stands among them."""

from typing import Final

from trailboss.explorer import cells, links
from trailboss.explorer import documents as parts
from trailboss.explorer.cells import Words
from trailboss.explorer.documents import bare, columns, numbers
from trailboss.explorer.links import Query
from trailboss.explorer.page_context import Reading
from trailboss.node.network import NetworkStatus, ValidatorStatus
from trailboss.views.text import counted

COLUMNS: Final = bare("Validator", "State") + numbers("Power", "Proposed", "Signed", "Last signed") + columns("Tips to")
BEHIND_BLOCKS: Final = 3  # blocks without a signature after which a validator is shown as behind


def validators(reading: Reading, _query: Query, _subject: str) -> parts.Document:
    """Return the validators in the order of genesis. Complexity: O(validators)."""
    network = reading.node.network
    if network is None:
        words = "This chain is run by one node. To try a network on this machine: trailboss testnet init DIR"
        notice = parts.Notice("alone", "There are no validators", cells.text(words), tone="warn")
        return parts.Document("Validators", "Validators", (notice,))
    listed = network.validators()
    seen = max((each.blocks for each in listed), default=0)
    table = parts.PageTable(
        "validators",
        "Who votes on blocks",
        COLUMNS,
        tuple(_row(each, reading) for each in listed),
        note=f"proposed and signed: of the last {counted(seen, 'block')} that this node has seen",
    )
    return parts.Document("Validators", "Validators", (table, _standing(network.status())))


def _row(validator: ValidatorStatus, reading: Reading) -> parts.Row:
    # A block states who signed the one before it.
    known, last = reading.height - 1, validator.last_signed
    state, tone = "unknown", ""
    if validator.blocks:
        missed = known - (known - validator.blocks if last is None else last)
        state, tone = ("signs", "good") if missed < BEHIND_BLOCKS else (f"behind by {counted(missed, 'block')}", "bad")
    here = (*cells.text(" "), *cells.badge("this node")) if validator.is_here else ()
    signed = f"{validator.signed:,} of {validator.blocks:,}" if validator.blocks else None
    height = None if last is None else cells.link(f"{last:,}", links.block(last), kind="number")
    name = (*cells.text(validator.identity.hex()[:10], kind="mono"), *here)
    account = cells.address(validator.fee_account, reading.names)
    return cells.row(
        validator.identity.hex(),
        *(name, cells.badge(state, tone), validator.power, validator.proposed or None, signed, height, account),
    )


def _standing(status: NetworkStatus) -> parts.Facts:
    rows: dict[str, Words] = {
        "Name": status.name,
        "Network": status.engine_chain_id,
        "Engine": status.engine or "does not answer",
        "Engine restarts": status.engine_restarts or None,
        "Blocks": "catching up with the others" if status.is_catching_up else "as high as the others",
        "Connected with": ", ".join(status.peers) or "no other node",
    }
    return cells.facts("standing", "This node", rows)
