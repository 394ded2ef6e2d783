"""The search: a height, a hash, a timer, an address, the beginning of one of them, or the name of an account."""

from collections.abc import Iterator
from typing import Final

from trailboss.explorer import cells
from trailboss.explorer.documents import Document, Notice, PageTable, Row, bare
from trailboss.explorer.failures import missing_document
from trailboss.explorer.links import Query
from trailboss.explorer.page_context import Reading, Redirect
from trailboss.explorer.text import visible
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX
from trailboss.views.timer_list import REVERTED

FOUND_MAX: Final = 20
PREFIX_MIN: Final = 2
HEXADECIMAL: Final = frozenset("0123456789abcdefABCDEF")
HOW: Final = (
    "Search for a block's height, for a block, a transaction or a timer by its hash or id, for an account or an actor "
    "by its address, or for the first digits of one of these; a development account is found by its name, such as "
    "account 3."
)
COLUMNS: Final = bare("What", "Which") + bare("", wide=True)


def search(reading: Reading, query: Query, _subject: str) -> Document | Redirect:
    """Return what a search finds; the page itself if that is one thing."""
    asked = query.text("q")
    if not asked:
        return Document("Search", "Search", (Notice("how", "What can be found", content=cells.text(HOW)),))
    rows = {row.key: row for row in _rows(reading, asked)}
    if len(rows) == 1:
        (only,) = rows.values()
        return Redirect(only.cells[1][0].href)
    nothing = Notice("nothing", f"Nothing is called {visible(asked)}", content=cells.text(HOW), tone="warn")
    if not rows:
        return Document("Nothing found", "Search", (nothing,), status=404)
    table = PageTable("found", f"Found for {visible(asked)}", COLUMNS, tuple(rows.values()), "")
    return Document("Search", "Search", (table,))


def _rows(reading: Reading, asked: str) -> Iterator[Row]:
    plain = asked.replace(",", "").replace("_", "").removeprefix("#")
    if plain.isascii() and plain.isdecimal() and len(plain) <= len(str(U64_MAX)) and int(plain) <= reading.height:
        yield cells.row(f"block {int(plain)}", "Block", cells.block(int(plain)), None)
    for address in reading.names.named(asked):
        yield cells.row(address.hex(), "Account", cells.address(address, reading.names), None)
    digits = asked[2:] if asked[:2] in ("0x", "0X") else asked
    if HEXADECIMAL.issuperset(digits) and PREFIX_MIN <= len(digits) <= 2 * Hash32.WIDTH:
        yield from _by_digits(reading, digits.lower())


def _by_digits(reading: Reading, digits: str) -> Iterator[Row]:
    if len(digits) == 2 * Hash32.WIDTH:
        waiting = reading.node.mempool.find(bytes.fromhex(digits))
        if waiting is not None or reading.node.mempool.refusal(bytes.fromhex(digits)) is not None:
            yield cells.row(digits, "Transaction", cells.transaction(bytes.fromhex(digits)), "not in a block")
    found = reading.node.index.search(digits, reading.view.blocks, FOUND_MAX)
    for height in found.blocks:
        found_hash = cells.block_hash(reading.view.blocks[height].hash)
        yield cells.row(f"block {height}", "Block", found_hash, cells.block(height))
    for transaction in found.transactions:
        in_block = cells.line("in block ", cells.block(transaction.height))
        yield cells.row(transaction.hash.hex(), "Transaction", cells.transaction(transaction.hash), in_block)
    for timer_id in found.timers:
        timer, about = reading.node.index.timer(timer_id, reading.height), None
        if timer is not None:
            about = cells.line(f"{REVERTED if timer.reverted else timer.state}, ", cells.said(timer.handler))
        yield cells.row(timer_id.hex(), "Timer", cells.timer(timer_id), about)
    addresses = list(found.addresses)
    if len(digits) == 2 * Address.WIDTH and not addresses:
        whole = Address(bytes.fromhex(digits))
        addresses = [whole] if reading.view.account(whole) is not None else []
    for address in addresses:
        account, shown = reading.view.account(address), cells.address(address, reading.names)
        kind = "Actor" if account is not None and account.code_hash else "Account"
        yield cells.row(address.hex(), kind, shown, cells.text(address, kind="mono dim"))


def nowhere(_reading: Reading, query: Query, _subject: str) -> Document:
    """Return the page for a path that is none."""
    return missing_document(f"There is no page at {query.path}")
