"""What a dry run takes to be otherwise, as people type it with ``--assume``."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from trailboss.cli.errors import Mistake
from trailboss.cli.targets import OpenChain, resolve_actor
from trailboss.cli.values import SHOWN_MAX, parse_amount, parse_number, parse_payload, read_text
from trailboss.primitives.octets import Address
from trailboss.rehearsal.overrides import BASEFEES, Overrides

FORMS: Final = f"balance:WHO=AMOUNT, slot:ACTOR:NAME=VALUE, slot:ACTOR:NAME, code:ACTOR=FILE, {'=N, '.join(BASEFEES)}=N"


def read_assumptions(chain: OpenChain, texts: Iterable[str]) -> Overrides:
    """Return the overrides that some texts stand for; `Mistake` for one that stands for none, or one given twice."""
    balances: dict[Address, int] = {}
    slots: dict[Address, dict[bytes, bytes | None]] = {}
    code: dict[Address, bytes] = {}
    basefees: dict[str, int] = {}
    seen: set[str] = set()
    for text in texts:
        subject, has_value, value = text.partition("=")
        if subject in seen:
            raise Mistake(f"{subject[:SHOWN_MAX]} is assumed twice", "give one value")
        seen.add(subject)
        match subject.split(":", 2):
            case ["balance", who] if has_value:
                balances[resolve_actor(chain, who)] = parse_amount(value)
            case ["slot", actor, name]:
                held = slots.setdefault(resolve_actor(chain, actor), {})
                held[parse_payload(name)] = parse_payload(value) if has_value else None
            case ["code", actor] if has_value:
                code[resolve_actor(chain, actor)] = read_text(Path(value), "source").encode()
            case [name] if has_value and name in BASEFEES:
                basefees[name] = parse_number(name, value)
            case _:
                raise Mistake(f"cannot assume {text[:SHOWN_MAX]!r}", f"write one of {FORMS}")
    return Overrides(balances=balances, slots=slots, code=code, **basefees)
