"""What a transaction asks for, decoded: in one line for lists, field by field for its own page."""

from enum import Enum
from typing import Any, Final

from trailboss.explorer import cells
from trailboss.explorer.address_labels import Names
from trailboss.explorer.documents import Content
from trailboss.explorer.text import octet_words, titled, visible
from trailboss.model import transactions
from trailboss.model.transactions import CancelTimer, ExtendTimer, Instruction, MoveTimer
from trailboss.primitives.octets import Address
from trailboss.views.records import content_of
from trailboss.views.text import WIDE, value_words

CODE_FIELDS: Final = ("code", "manifest")  # fields that may be long; their length says enough
DECODED_MAX: Final = 600  # characters of a decoded value that are shown
DECODED_BYTES_MAX: Final = 65_536  # bytes that are decoded; of more only the first are shown


def instruction_line(instruction: Instruction, names: Names) -> Content:
    """Return an instruction in one line."""
    return cells.without_copy(cells.line(*_parts(instruction, names)))


def _parts(instruction: Instruction, names: Names) -> tuple[Content | str, ...]:
    name = instruction.name
    match instruction:
        case transactions.ExecuteActor(actor, handler, _):
            return "calls ", cells.said(handler, 60), " of ", cells.address(actor, names)
        case transactions.Transfer(to, amount):
            return "sends ", cells.money(amount), " to ", cells.address(to, names)
        case transactions.FundActor(actor, amount):
            return "funds ", cells.address(actor, names), " with ", cells.money(amount)
        case CancelTimer(timer_id) | ExtendTimer(timer_id, _) | MoveTimer(timer_id, _):
            return name, " ", cells.timer(timer_id)
        case transactions.SetBalance(account, amount):
            return name, " ", cells.address(account, names), " ", cells.money(amount)
        case transactions.ReplyJob(job, _):
            return (f"replies to runner job {job}",)
        case transactions.SetRunner(jobs_max):
            return (f"{name} {jobs_max:,}",)
        case transactions.SetStorage(actor, slot, value):
            return name, " ", cells.address(actor, names), f" {octet_words(slot)}{' removed' if value is None else ''}"
        case transactions.SetCode(account, _):
            return name, " ", cells.address(account, names)
        case transactions.SetMock(target, handler):
            return name, " ", cells.said(handler, 60), " of ", cells.address(target, names)
        case transactions.SetGovParam(key, value):
            return name, f" {decoded(key)} = {int.from_bytes(value, 'big'):,}"
    return (name,)


def instruction_facts(instruction: Instruction, names: Names) -> dict[str, Content]:
    """Return the fields of an instruction by their labels."""
    fields = ((name, getattr(instruction, name)) for name in instruction.__struct_fields__)
    shown = {titled(name.replace("_", " ")): _field(name, value, names) for name, value in fields if value is not None}
    return {"Instruction": cells.text(instruction.name), **shown}


def _field(name: str, value: Any, names: Names) -> Content:
    match value:
        case Address():
            return cells.address(value, names)
        case bytes() if name == "timer_id":
            return cells.timer(value)
        case bytes():
            return cells.text(f"{len(value):,} bytes") if name in CODE_FIELDS else payload(value)
        case Enum():
            return cells.text(value.name.lower())
        case int():
            return cells.money(value) if name == "amount" else cells.text(f"{value:,}")
    return cells.said(str(value))


def payload(octets: bytes) -> Content:
    """Return bytes that an actor gets or gives: decoded if they are canonical CBOR of something, else as they are."""
    if not octets:
        return cells.text("empty", kind="dim")
    found, raw = decoded(octets), cells.octets(octets)
    return raw if found == raw[0].text else cells.line(found, cells.text(f" ({len(octets):,} bytes)", kind="dim"))


def decoded(octets: bytes) -> str:
    """Return bytes in words: what they encode if that is a map, a list or text; else as text or digits."""
    content = content_of(octets) if len(octets) <= DECODED_BYTES_MAX else octets
    return octet_words(octets) if content is octets else visible(value_words(content, WIDE), DECODED_MAX)
