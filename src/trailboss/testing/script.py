"""The calls that have changed a local chain, as the lines of code that make them again."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from trailboss.chain import Snapshot
from trailboss.model.transactions import ExecuteActor
from trailboss.primitives.octets import Address, Hash32
from trailboss.testing.base_chain import BaseChain
from trailboss.testing.local_chain import LocalChain
from trailboss.testing.parties import ActorHandle, PendingReceipt, TestAccount

INDENT: Final = "    "
_READERS: Final = frozenset((
    "actor", "auction", "balance", "block", "check_invariants", "close", "decisions", "ended_timer", "events",
    "explain", "globalbox", "mailbox", "nonce", "prove", "quote", "receipts", "rehearse_activation", "runway", "timers",
))  # fmt: skip
"""Calls that change nothing."""
_SUMS: Final = frozenset(("mine_until", "one_block"))
"""Calls of which the parts are written down."""


class UnwritableError(Exception):
    """A value has no form in code."""


class CallLine(Struct):
    """One call of a chain.

    Attributes:
        code: The statement.
        depth: Blocks of code around it.
        error: What it raised, or None.
        changed: Whether the chain has changed.
    """

    code: str
    depth: int
    error: Exception | None = None
    changed: bool = True


class CallScript:
    """The calls so far, and the names of what they returned.

    Attributes:
        lines: The calls, in order.
        imports: Classes that the lines name.
    """

    def __init__(self, chain: LocalChain) -> None:
        self._chain = chain
        self.lines: list[CallLine] = []
        self.imports: set[type] = set()
        self.depth = 0
        self._names: dict[bytes, str] = {}
        self._marks: dict[Snapshot, str] = {}

    def copy(self) -> "CallScript":
        """Return a script that goes on from here by itself."""
        other = CallScript(self._chain)
        other.lines, other.imports = [*self.lines], {*self.imports}
        other._names, other._marks = {**self._names}, {**self._marks}
        return other

    def call_code(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> str:
        """Return the code of a call; values are written as they stand before it."""
        first = args[0] if args else None
        if name == "send" and isinstance(first, ExecuteActor) and first.actor in self._names:
            name, args = f"{self._names[first.actor]}.call", (first.handler, first.payload, *args[1:])
        else:
            name = f"chain.{name}"
        given = [self.code_of(value) for value in args]
        given += [f"{key}={self.code_of(value)}" for key, value in options.items()]
        return f"{name}({', '.join(given)})"

    def assign(self, result: object) -> str:
        """Return the beginning of a statement that gives a result a name, empty for one that needs none or has one."""
        if isinstance(result, ActorHandle) and result.address not in self._names:
            number = 1 + len(self._names)
            name = self._names[result.address] = "actor" if number == 1 else f"actor_{number}"
            return f"{name} = "
        if isinstance(result, Snapshot) and result not in self._marks:
            name = self._marks[result] = f"mark_{1 + len(self._marks)}"
            return f"{name} = "
        return ""

    def code_of(self, value: Any) -> str:
        """Return an expression that is equal to a value, on any chain with the same calls.

        Addresses and ids of timers follow from an actor's source, so they are written as where they come from.

        Raises:
            UnwritableError: If it has none.
        """
        match value:
            case None | bool() | int() | str() | float() if not isinstance(value, Enum):
                return repr(value)
            case bytes():
                return self._octets(value)
            case BaseChain():
                return "chain"
            case ActorHandle():
                return self._names.get(value.address) or f"chain.actor({bytes(value.address)!r})"
            case TestAccount() if account := self._account(value.address):
                return account
            case Path():
                return repr(str(value))
            case Snapshot() if value in self._marks:
                return self._marks[value]
            case Enum():
                self.imports.add(type(value))
                return f"{type(value).__name__}.{value.name}"
            case Struct():
                self.imports.add(type(value))
                fields = (f"{key}={self.code_of(each)}" for key, each in asdict(value).items())
                return f"{type(value).__name__}({', '.join(fields)})"
            case list():
                return f"[{', '.join(map(self.code_of, value))}]"
            case tuple():
                return f"({''.join(f'{self.code_of(each)}, ' for each in value).rstrip()})"
            case dict():
                return f"{{{', '.join(f'{self.code_of(key)}: {self.code_of(each)}' for key, each in value.items())}}}"
        raise UnwritableError(f"a {type(value).__name__} has no form in code")

    def _octets(self, value: bytes) -> str:
        octets = bytes(value)
        if octets in self._names:
            return f"{self._names[octets]}.address"
        if len(octets) == Address.WIDTH and (account := self._account(octets)):
            return f"{account}.address"
        if len(octets) == Hash32.WIDTH and (timer := self._chain.chain.timer(octets)) is not None:
            owner = self._names.get(timer.actor)
            listed: list[bytes] = [each.timer_id for each in self._chain.timers(timer.actor if owner else None)]
            return f"{owner or 'chain'}.timers()[{listed.index(octets)}].timer_id"
        return repr(octets)

    def _account(self, address: bytes) -> str:
        if address == self._chain.deployer.address:
            return "chain.deployer"
        numbers = (number for number, account in enumerate(self._chain.accounts) if account.address == address)
        number = next(numbers, None)
        return "" if number is None else f"chain.accounts[{number}]"


def _scripted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that writes down its outermost calls, if they change the chain."""

    @wraps(method)
    def call(self: "ScriptedChain", *args: Any, **options: Any) -> Any:
        if self.is_within:
            return method(self, *args, **options)
        script, before = self.script, self.standing()
        try:
            code = script.call_code(name, args, options)
        except UnwritableError as unwritable:
            code = f"chain.{name}(...)  # {unwritable}"
        line = CallLine(code, script.depth)
        self.is_within = True
        try:
            result = method(self, *args, **options)
        except Exception as error:
            line.error, line.changed = error, self.standing() != before
            script.lines.append(line)
            raise
        finally:
            self.is_within = False
        beginning = script.assign(result)
        # What a block is to hold returns a receipt that waits for it, or the handle that has one.
        if beginning or self.standing() != before or isinstance(result, PendingReceipt | ActorHandle):
            line.code = beginning + code
            script.lines.append(line)
        return result

    return call


class ScriptedChain(LocalChain):
    """A local chain that writes down the calls that change it.

    Attributes:
        script: The calls.
        is_within: Whether a call is under way: what it calls in turn is a part of it.
    """

    def __init__(self, **options: Any) -> None:
        self.is_within = False
        super().__init__(**options)
        self.script = CallScript(self)
        self.begin_here()

    def begin_here(self) -> None:
        """Let `restart` come back to this point."""
        self._first, self._begun = self.chain.snapshot(), self.script.copy()

    def restart(self) -> None:
        """Go back to the point where it begins: genesis, unless `begin_here` has set another."""
        self.chain.revert(self._first)
        self.is_within = False
        self.script = self._begun.copy()

    def standing(self) -> tuple[int, bytes]:
        """Return height and hash of the head: every call that changes the chain changes them."""
        return self.chain.height, self.chain.head.hash

    @contextmanager
    def one_block(self) -> Iterator[None]:
        """Gather the transactions sent within and build one block of them at the end; does not nest."""
        if self.is_within:
            with super().one_block():
                yield
            return
        line = CallLine("with chain.one_block():", self.script.depth)
        self.script.lines.append(line)
        self.script.depth += 1
        try:
            with super().one_block():
                yield
        except Exception as error:
            line.error = error
            raise
        finally:
            self.script.depth -= 1


for _name, _method in inspect.getmembers(LocalChain, inspect.isfunction):
    if not _name.startswith("_") and _name not in _READERS | _SUMS:
        setattr(ScriptedChain, _name, _scripted(_name, _method))
