"""Cells: ids with their links, money with its base units, sentences whose ids are links; and rows and facts of them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from trailboss.explorer import links
from trailboss.explorer.address_labels import Names
from trailboss.explorer.documents import FULL, Cell, Content, Facts, PageFact, Row, Stat
from trailboss.explorer.text import TEXT_MAX, octet_words, shortened, titled, visible
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, format_cby
from trailboss.views.mechanism import base
from trailboss.views.mechanism.base import Value, ValueKind

COPIED_MAX: Final = 4_096  # bytes that a copy button holds; more of them would make pages heavy
SHORT_UNIT: Final = 100_000  # base units in the last decimal of an amount that is shown short
NOTHING: Final[Content] = (Cell("·", kind="dim"),)  # stands for an empty value
Words = Content | str | int | None  # cells, words of the explorer's own, a number of things, or an empty value
_IDS: Final = re.compile(r"(timer |transaction |code_hash )?0x([0-9a-fA-F]{64}|[0-9a-fA-F]{40})(?![0-9a-fA-F])")


def line(*parts: Words) -> Content:
    """Return parts as cells in one line. What an actor chose goes through `said`."""
    return tuple(cell for part in parts for cell in _content(part))


def _content(part: Words) -> Content:
    match part:
        case None:
            return NOTHING
        case int():
            return (Cell(f"{part:,}", kind="number"),)
        case str():
            return (Cell(part),)
    return part


def row(key: object, *shown: Words, tone: str = "") -> Row:
    """Return a row of a table."""
    return Row(tuple(map(_content, shown)), str(key), tone)


def facts(key: str, title: str, rows: Mapping[str, Words], *, span: str = FULL) -> Facts:
    """Return facts by their labels; those without a value are left out."""
    found = tuple(PageFact(label, _content(what)) for label, what in rows.items() if what is not None)
    return Facts(key, title, found, span=span)


def stat(label: str, what: Words, hint: Words = "", share: int | None = None) -> Stat:
    """Return a number with its name, a few words about it, and how full something is in percent."""
    return Stat(label, _content(what), _content(hint) if hint else (), share)


def text(what: object, kind: str = "", note: str = "") -> Content:
    """Return words of the explorer's own in a style."""
    return (Cell(str(what), kind=kind, note=note),)


def said(what: str, limit: int = TEXT_MAX) -> Content:
    """Return words that an actor chose."""
    return (Cell(visible(what, limit)),)


def link(words: str, href: str, kind: str = "") -> Content:
    """Return words that lead somewhere on this node."""
    return (Cell(words, href=href, kind=kind),)


def badge(words: str, tone: str = "") -> Content:
    """Return a state in a frame."""
    return (Cell(words, kind=f"badge {tone}".rstrip()),)


def money(amount: int) -> Content:
    """Return an amount in CBY, with base units on hover."""
    return (Cell(f"{format_cby(amount)} CBY", note=f"{amount:,} base units", kind="number"),)


def short_money(amount: int) -> Content:
    """Return an amount in CBY with few decimals, rounded down, and the whole of it on hover."""
    kept = amount - amount % SHORT_UNIT
    return (Cell(f"{format_cby(kept)} CBY", note=f"{format_cby(amount)} CBY, {amount:,} base units", kind="number"),)


def bare_money(amount: int) -> Content:
    """Return an amount for a column whose heading says CBY."""
    return (Cell(format_cby(amount), note=f"{amount:,} base units", kind="number"),)


def height(value: int) -> Content:
    """Return a height without a link; the greatest of all stands for never."""
    return text("never" if value == U64_MAX else value, kind="number")


def block(value: int | None) -> Content:
    """Return a height with the link to its block."""
    return NOTHING if value is None else (Cell(str(value), href=links.block(value), kind="number"),)


def future(value: int, *, now: int) -> Content:
    """Return a height that may lie ahead: a link only where there is a block."""
    return height(value) if value > now else block(value)


def address(octets: bytes, names: Names, *, whole: bool = False) -> Content:
    """Return an address: by its name where it has one, or ``whole`` with its name beside it."""
    found, name = str(Address(octets)), names.get(octets)
    if whole:
        label = names.short(octets)
        return (Cell(found, copy=found, kind="mono id"), *(badge(label) if label else ()))
    shown, kind = (name, "") if name else (shortened(found), "mono")
    return (Cell(shown, href=links.account(octets), copy=found, note=found, kind=kind),)


def whole_address(octets: bytes) -> Content:
    """Return an address in full, that leads to its page."""
    found = str(Address(octets))
    return (Cell(found, href=links.account(octets), copy=found, kind="mono id"),)


def without_copy(content: Content) -> Content:
    """Return cells without their copy buttons: for the middle of a sentence."""
    return tuple(replace(cell, copy="") if cell.copy else cell for cell in content)


def timer(timer_id: bytes | None) -> Content:
    """Return a timer's id."""
    return short_root(timer_id, links.timer(timer_id)) if timer_id else NOTHING


def block_hash(octets: bytes) -> Content:
    """Return a block's hash."""
    return short_root(octets, links.block(Hash32(octets)))


def transaction(tx_hash: bytes) -> Content:
    """Return a transaction's hash."""
    return short_root(tx_hash, links.transaction(tx_hash))


def root(octets: bytes) -> Content:
    """Return an id in full."""
    found = str(Hash32(octets))
    return (Cell(found, copy=found, kind="mono id"),)


def short_root(octets: bytes, href: str = "") -> Content:
    """Return an id, cut in its middle."""
    found = str(Hash32(octets))
    return (Cell(shortened(found), href=href, copy=found, note=found, kind="mono"),)


def octets(value: bytes) -> Content:
    """Return bytes: as text if they are, with a button that copies all of them if they are few enough."""
    copied = f"0x{value.hex()}" if 0 < len(value) <= COPIED_MAX else ""
    return (Cell(octet_words(value), copy=copied, kind="mono"),)


def value(kind: ValueKind, what: Value, names: Names) -> Content:
    """Return a value of a mechanism's table or fact."""
    match what:
        case None:
            return NOTHING
        case Address():
            return address(what, names)
        case Hash32():
            return timer(what) if kind is ValueKind.TIMER else short_root(what)
        case int() if kind is ValueKind.HEIGHT:
            return block(what)
        case int() if kind is ValueKind.MONEY:
            return bare_money(what)
        case _ if kind is ValueKind.NUMBER:
            return _content(what) if isinstance(what, int) else text(what, kind="number")
    return sentence(str(what), names)


def mechanism_facts(found: Iterable[base.Fact], names: Names) -> dict[str, Content]:
    """Return facts of a mechanism by their labels."""
    return {
        titled(each.label): tuple(
            replace(cell, kind=f"{cell.kind} warn".lstrip()) if each.is_warning else cell
            for cell in value(each.kind, each.value, names)
        )
        for each in found
    }


def sentence(what: str, names: Names) -> Content:
    """Return words in which every timer id, hash and address is short, and leads to its page."""
    return without_copy(tuple(_pieces(what, names)))


def _pieces(what: str, names: Names) -> Iterator[Cell]:
    done = 0
    for found in _IDS.finditer(what):
        kind, digits = found[1] or "", found[2]
        if found.start() > done or kind:
            yield Cell(visible(what[done : found.start()] + kind, len(what) + len(kind)))
        yield from _linked(kind, bytes.fromhex(digits), names)
        done = found.end()
    if done < len(what):
        yield Cell(visible(what[done:], len(what)))


def _linked(kind: str, octets: bytes, names: Names) -> Content:
    if len(octets) == Address.WIDTH:
        return address(octets, names)
    if kind == "code_hash ":  # a program has no page
        return short_root(octets)
    shown = {"timer ": timer, "transaction ": transaction}.get(kind)
    return shown(octets) if shown else short_root(octets, links.search(f"0x{octets.hex()}"))
