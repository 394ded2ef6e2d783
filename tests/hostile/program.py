"""The form of a hostile program: plain data, so that any engine can be given it."""

from textwrap import dedent, indent
from typing import Any

from msgspec import Struct


class HostileProgram(Struct, frozen=True):
    """A program that attacks whoever runs it.

    Attributes:
        name: Unique in the corpus.
        reason: What it attacks, in one sentence.
        source: Text of the actor.
        handler: What is called.
        payload: What the handler gets.
        read_only: Whether the frame is that of an agent or a view.
        others: Sources of other actors; the first has the address ``bytes([1]) * 20``, and so on.
    """

    name: str
    reason: str
    source: str
    handler: str = "go"
    payload: bytes = b""
    read_only: bool = False
    others: tuple[str, ...] = ()


def module(name: str, reason: str, source: str, **more: Any) -> HostileProgram:
    """Return a program from its whole source."""
    return HostileProgram(name, reason, dedent(source).lstrip("\n"), **more)


def body(name: str, reason: str, lines: str, imports: str = "", **more: Any) -> HostileProgram:
    """Return a program from the body of its handler ``go``, after some imports."""
    preamble = f"import {imports}\n\n\n" if imports else ""
    text = indent(dedent(lines).strip("\n"), "    ")
    return HostileProgram(name, reason, f"{preamble}def go(payload):\n{text}\n", **more)
