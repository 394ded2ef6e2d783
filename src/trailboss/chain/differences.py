"""Where two chains differ at one height, in words: genesis, transactions, receipts, events, state, header."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain.key_names import ABSENT, field_words, key_words, octet_words, value_words
from trailboss.execution.genesis import Genesis
from trailboss.model.blocks import Block, Header, Origin, ReceiptRecord
from trailboss.model.events import EventRecord
from trailboss.model.transactions import Transaction, transaction_hash
from trailboss.primitives.errors import ErrorObject, InvariantError
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import Amount
from trailboss.state.commitment import differing_keys
from trailboss.state.store import ReadableStore

Item = TypeVar("Item")


class Difference(Struct, frozen=True):
    """One thing that two chains have otherwise."""

    kind: str  # ``genesis``, ``length``, ``transaction``, ``receipt``, ``event``, ``state`` or ``header``
    what: str  # which thing
    left: str  # what the first chain has
    right: str  # what the second chain has


class Parting(Struct, frozen=True):
    """Where two chains part."""

    height: int  # the first height at which they differ
    # What differs there: of transactions, receipts, events and state entries the first one each.
    differences: tuple[Difference, ...]
    names: tuple[str, str]  # what the two chains are called

    def first(self, kind: str) -> Difference | None:
        """Return the first difference of a kind, or None."""
        return next((difference for difference in self.differences if difference.kind == kind), None)

    def __str__(self) -> str:
        width = max(map(len, self.names)) + 1
        lines = [f"{self.names[0]} and {self.names[1]} part at block {self.height}:"]
        for difference in self.differences:
            lines.append(f"  {difference.what}")
            for name, words in zip(self.names, (difference.left, difference.right), strict=True):
                lines.append(f"    {name + ':':<{width}} {words}")
        return "\n".join(lines)


def genesis_difference(left: Genesis, right: Genesis) -> Difference | None:
    """Return the first field in which two geneses differ, of accounts and parameters the first entry, or None."""
    for name in ("chain_id", "preset", "mechanism", "proposer"):
        ours, theirs = getattr(left, name), getattr(right, name)
        if ours != theirs:
            return Difference("genesis", f"genesis {name}", str(ours), str(theirs))
    if left.system_deployers != right.system_deployers:
        sides = (" ".join(map(str, genesis.system_deployers)) or "none" for genesis in (left, right))
        return Difference("genesis", "genesis system_deployers", *sides)
    balances = ({str(address): balance for address, balance in each.accounts.items()} for each in (left, right))
    entries = _entry_difference("accounts", *balances) or _entry_difference("params", left.overrides, right.overrides)
    if entries is None and left.validators != right.validators:
        sides = (f"{len(genesis.validators)} validators" for genesis in (left, right))
        return Difference("genesis", "genesis validators", *sides)
    if entries is None and left.development != right.development:
        return Difference("genesis", "genesis development", str(left.development), str(right.development))
    return entries


def block_differences(left: Block, right: Block) -> Iterator[Difference]:
    """Yield what differs between what two blocks of one height hold: the first transaction, receipt and event each.

    Receipts and events that may only follow from another transaction are left out. Of an error only code and slug
    count, as in the receipts root. Decision: D-46
    """
    index = _first_differing(left.transactions, right.transactions)
    if index is not None:
        sides = (_transaction_words(_item(block.transactions, index)) for block in (left, right))
        yield Difference("transaction", f"transaction {index}", *sides)
    ours, theirs = ([_committed(receipt) for receipt in block.receipts] for block in (left, right))
    receipt_index = _first_differing(ours, theirs)
    if receipt_index is not None and (index is None or receipt_index < index):
        yield _receipt_difference(receipt_index, _item(ours, receipt_index), _item(theirs, receipt_index))
    event_index = _first_differing(left.events, right.events)
    if event_index is not None and index is None:
        sides = (_event_words(_item(block.events, event_index)) for block in (left, right))
        yield Difference("event", f"event {event_index} of the block itself", *sides)


def header_differences(left: Header, right: Header) -> Iterator[Difference]:
    """Yield every field in which two headers differ."""
    for name in Header.__struct_fields__:
        values = [getattr(header, name) for header in (left, right)]
        if values[0] != values[1]:
            yield Difference("header", f"header {name}", *(field_words(name, value) for value in values))


def state_difference(left: ReadableStore, right: ReadableStore) -> list[Difference]:
    """Return the first key, in order of namespaces, under which two states differ; nothing if none does."""
    keys = differing_keys(left.roots, right.roots)
    first = next(keys, None)
    if first is None:
        return []
    ours, theirs = left.read(first), right.read(first)
    held = theirs if ours is None else ours
    if held is None:
        raise InvariantError(f"state key {first.hex()} is in a tree and has no value")
    more = sum(1 for _ in keys)
    what = key_words(first, held) + (f", the first of {more + 1} keys that differ" if more else "")
    return [Difference("state", what, *value_words(first, ours, theirs))]


def changes_difference(left: Mapping[bytes, bytes | None], right: Mapping[bytes, bytes | None]) -> Iterator[Difference]:
    """Yield the first key, in order of namespaces, that two blocks of one height and one parent leave otherwise.

    Each gives the values that it has changed, by full key.
    """
    keys = sorted(key for key in left.keys() | right.keys() if left.get(key) != right.get(key))
    if keys:
        first, more = keys[0], len(keys) - 1
        ours, theirs = left.get(first), right.get(first)
        held = theirs if ours is None else ours
        what = "" if held is None else key_words(first, held)
        if more:
            what += f", the first of {more + 1} keys that differ"
        yield Difference("state", what, *value_words(first, ours, theirs))


def _entry_difference(name: str, left: Mapping[str, int], right: Mapping[str, int]) -> Difference | None:
    for key in sorted(left.keys() | right.keys()):
        if left.get(key) != right.get(key):
            sides = (str(entries.get(key, ABSENT)) for entries in (left, right))
            return Difference("genesis", f"genesis {name}.{key}", *sides)
    return None


def _first_differing(left: Sequence[object], right: Sequence[object]) -> int | None:
    """Return the first index at which two sequences have unequal items, or only one has an item; None if they agree."""
    pairs = enumerate(zip_longest(left, right))
    return next((index for index, (ours, theirs) in pairs if ours != theirs), None)


def _item(items: Sequence[Item], index: int) -> Item | None:
    return items[index] if index < len(items) else None


def _transaction_words(transaction: Transaction | None) -> str:
    if transaction is None:
        return ABSENT
    instruction = transaction.instruction
    fields = (f"{name} {field_words(name, getattr(instruction, name))}" for name in instruction.__struct_fields__)
    call = f"{instruction.name} ({', '.join(fields)})"
    return f"{call} by {transaction.sender}, nonce {transaction.nonce}, hash {transaction_hash(transaction)}"


def _committed(receipt: ReceiptRecord) -> ReceiptRecord:
    """Return a receipt without what no root commits to: its error's words, what was reserved, what was printed."""
    error = receipt.error and ErrorObject(receipt.error.code, receipt.error.slug, "", "", "")
    return replace(receipt, error=error, reserved=Amount(0), printed=())


def _receipt_difference(index: int, left: ReceiptRecord | None, right: ReceiptRecord | None) -> Difference:
    """Return the first field in which two receipts differ; if there is only one, what it is of."""
    if left is None or right is None:
        sides = (ABSENT if receipt is None else _origin_words(receipt) for receipt in (left, right))
        return Difference("receipt", f"receipt {index}", *sides)
    name = next(name for name in left.__struct_fields__ if getattr(left, name) != getattr(right, name))
    what = f"receipt {index} ({_origin_words(left)}): {name}"
    at = _first_differing(left.events, right.events)
    if name == "events" and at is not None:
        sides = (_event_words(_item(receipt.events, at)) for receipt in (left, right))
        return Difference("receipt", f"{what} {at}", *sides)
    sides = (_receipt_words(name, getattr(receipt, name)) for receipt in (left, right))
    return Difference("receipt", what, *sides)


def _receipt_words(name: str, value: object) -> str:
    if isinstance(value, ErrorObject):
        return f"E{value.code} {value.slug}"
    return "none" if value is None else field_words(name, value)


def _origin_words(receipt: ReceiptRecord) -> str:
    if receipt.origin is Origin.TRANSACTION:
        return f"transaction {Hash32(receipt.origin_hash)}"
    if receipt.origin is Origin.TIMER:
        return f"timer {Hash32(receipt.timer_id)}"
    return f"message from {Address(receipt.sender)} to {Address(receipt.actor)}"


def _event_words(event: EventRecord | None) -> str:
    return ABSENT if event is None else f"{event.name} of {Address(event.emitter)}, data {octet_words(event.data)}"
