"""A failure of a machine, written as a plain pytest test."""

import ast
import builtins
import inspect
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from msgspec import Struct, field

import trailboss.testing
from trailboss.testing.corpus import MachineStep
from trailboss.testing.script import INDENT, CallLine, CallScript, UnwritableError

WRITTEN: Final[list[str]] = []  # what this process has written, as the end of a run of pytest lists it
KEPT_DECORATORS: Final = ("property", "staticmethod", "classmethod")
DIGEST_DIGITS: Final = 8
MESSAGE_LINES: Final = 4
SUPPRESSED: Final = "with suppress(TrailbossError)"
MINED: Final = re.compile(r"chain\.mine\((?:blocks=)?(\d*)\)")
_BASE: Final = "trailboss.testing.machine"


class Failure(Struct, kw_only=True):
    """What has failed in a machine, and how it came to that.

    Attributes:
        error: What was raised.
        function: The machine's own rule or invariant that raised it; None for a rule that every machine has.
        arguments: What the rule was called with, as code.
        attributes: The machine's attributes before, as code; None for what has no form in code.
        options: Those of the chain, as code.
        lines: The calls of the chain.
        first_line: Where those of the rule begin; None for an invariant.
        imports: Classes that the lines name.
        steps: Steps of the machine.
        heights: Height of the chain before each step, and at the end.
    """

    error: Exception
    function: Callable[..., Any] | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    lines: list[CallLine] = field(default_factory=list)
    first_line: int | None = None
    imports: set[type] = field(default_factory=set)
    steps: list[MachineStep] = field(default_factory=list)
    heights: list[int] = field(default_factory=list)


class _Source:
    """Functions of a machine, with all that they read, as code that stands alone."""

    def __init__(self, machine: type, attributes: dict[str, str | None]) -> None:
        self._machine = machine
        self._attributes = attributes
        self.given: dict[str, str] = {}  # attributes of the machine, as code
        self.members: dict[str, str] = {}  # of the class that stands in for it
        self.imports: set[str] = set()
        self.globals: dict[str, str] = {}

    def add_method(self, function: Callable[..., Any], name: str) -> None:
        """Take a method, and what it reads."""
        if name in self.members:
            return
        self.members[name] = ""
        code, node = _definition(function)
        self.members[name] = textwrap.indent(code, INDENT)
        own = node.args.args[0].arg if node.args.args else ""
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == own:
                self._add_attribute(each.attr)
        self._add_names(function, node)

    def _add_attribute(self, name: str) -> None:
        if name in self._attributes:
            self.given[name] = _written(self._attributes[name], f"self.{name}")
            return
        found = inspect.getattr_static(self._machine, name, None)
        if isinstance(found, property):
            self.add_method(_written(found.fget, f"self.{name}"), name)
        elif isinstance(found, staticmethod | classmethod):
            self.add_method(found.__func__, name)
        elif inspect.isfunction(found):
            self.add_method(found, name)
        else:
            self.members[name] = f"{INDENT}{name} = {_literal(found, f'self.{name}')}\n"

    def _add_names(self, function: Callable[..., Any], node: ast.AST) -> None:
        closed = inspect.getclosurevars(function).nonlocals
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and not hasattr(builtins, each.id):
                if each.id in closed:
                    self.globals[each.id] = f"{each.id} = {_literal(closed[each.id], each.id)}\n"
                elif each.id in function.__globals__:
                    self._add_global(each.id, function.__globals__[each.id], function.__module__)

    def _add_global(self, name: str, value: Any, module: str) -> None:
        if name in self.globals:
            return
        home, known = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if isinstance(value, ModuleType):
            alias = "" if value.__name__ == name else f" as {name}"
            self.imports.add(f"import {value.__name__}{alias}")
        elif isinstance(home, str) and home != module and isinstance(known, str) and "." not in known:
            self.imports.add(import_of(value, name))
        elif inspect.isfunction(value):
            self.globals[name] = ""
            code, node = _definition(value)
            self._add_names(value, node)
            # What it reads stands above it.
            self.globals[name] = self.globals.pop(name, "") or code
        else:
            self.globals[name] = f"{name} = {_literal(value, name)}\n"


def code_or_none(script: CallScript, value: Any) -> str | None:
    """Return an expression for a value, or None if it has none."""
    try:
        return script.code_of(value)
    except UnwritableError:
        return None


def note_regressions(machine: type, failures: Sequence[Failure], error: BaseException) -> None:
    """Write a test for each failure that a run has reported, and add a note that names it to what was raised."""
    reported = {id(each) for each in _leaves(error)}
    for failure in failures:
        if id(failure.error) in reported:
            path, what = write_regression(machine, failure)
            shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
            WRITTEN.append(f"{shown}: {what}")
            failure.error.add_note(WRITTEN[-1])


def write_regression(machine: Any, failure: Failure) -> tuple[Path, str]:
    """Write a failure as a test next to its machine, or in its folder ``regressions``.

    Returns:
        The path, and a sentence: whether the test fails by itself, as tried at once.
    """
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^a-zA-Z0-9]+", "_", machine.__name__).strip("_").lower()
    body, missing = _body_of(machine, failure)
    folder = _folder_of(machine)
    digest = sha256(body.encode()).hexdigest()[:DIGEST_DIGITS]
    name = f"test_regression_{stem}_{digest}"
    text = _head_of(machine, failure) + body.replace("test_NAME", name)
    path = folder / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    raised = missing or _try(text, path, failure.error)
    return path, raised or "a test of this failure, which fails by itself until the bug is gone"


def import_of(value: Any, name: str = "") -> str:
    """Return the statement that imports a class or a function, from `trailboss.testing` where it is there."""
    own, known = value.__module__, value.__qualname__
    if own.partition(".")[0] == "trailboss" and known in trailboss.testing.__all__:
        own = "trailboss.testing"
    return f"from {own} import {known}" + (f" as {name}" if name not in ("", known) else "")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _body_of(machine: Any, failure: Failure) -> tuple[str, str]:
    """Return the code below the first lines, and why it cannot fail as the machine did, if it cannot."""
    source = _Source(machine, {**failure.attributes, "chain": "chain"})
    imports = {"from trailboss.testing import LocalChain", *map(import_of, failure.imports)}
    last, missing, lines = "", "", failure.lines
    function = failure.function
    if function is not None and function.__module__ == _BASE:
        imports.add("from trailboss.testing.timer_book import check_books")
        last = "check_books(chain)"
    elif function is not None:
        lines = lines[: failure.first_line]
        try:
            source.add_method(function, function.__name__)
            given = ", ".join(f"{name}={_written(code, name)}" for name, code in failure.arguments.items())
            own = ", ".join(f"{name}={code}" for name, code in source.given.items())
            last = f"Found({own}).{function.__name__}({given})"
            imports |= {"from types import SimpleNamespace", *source.imports}
        except UnwritableError as unwritable:
            source = _Source(machine, {})
            missing = f"the steps of this failure; complete it by hand, for {unwritable}"
            last = f"# {function.__name__} of {machine.__name__} failed here: {unwritable}."
    options = ", ".join(f"{name}={code}" for name, code in failure.options.items())
    statements = list(statements_of(lines, failure.error))
    written, near = repr(str(machine.source)), os.path.relpath(str(machine.source), _folder_of(machine).resolve())
    if Path(str(machine.source)).is_absolute() and any(written in each for each in statements):
        imports.add("from pathlib import Path")
        statements = [each.replace(written, f"Path(__file__).parent / {near!r}") for each in statements]
    if any(SUPPRESSED in each for each in statements):
        imports |= {"from contextlib import suppress", "from trailboss.primitives.errors import TrailbossError"}
    parts = [_sorted_imports(imports)]
    if source.globals:
        parts.append("".join(source.globals.values()))
    if source.members:
        what = f'{INDENT}"""What {machine.__name__} reads."""\n\n'
        parts.append(f"\nclass Found(SimpleNamespace):\n{what}" + "\n".join(source.members.values()))
    calls = [f"chain = LocalChain({options})", *statements, *filter(None, [last])]
    parts.append("\ndef test_NAME():\n" + "".join(f"{INDENT}{each}\n" for each in calls))
    return "\n".join(parts), missing


def _head_of(machine: Any, failure: Failure) -> str:
    first = f"{type(failure.error).__name__}: {failure.error}".splitlines()[:MESSAGE_LINES]
    message = "\n".join(first).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{machine.__name__} found this. The test fails until the bug is gone.\n\n{message}\n"""\n\n'


def _folder_of(machine: Any) -> Path:
    if machine.regressions is not None:
        return Path(machine.regressions)
    home = getattr(sys.modules.get(machine.__module__), "__file__", None)
    return Path(home).parent if home else Path()


def statements_of(lines: Iterable[CallLine], error: Exception | None = None) -> Iterator[str]:
    """Yield the calls; one that raised and let its rule go on may raise. Empty blocks in a row are one call."""
    for are_empty, statements in groupby(_statements_of(lines, error), lambda each: MINED.fullmatch(each) is not None):
        if are_empty:
            blocks = sum(int(MINED.sub(r"\1", each) or 1) for each in statements)
            yield f"chain.mine({blocks})"
        else:
            yield from statements


def _statements_of(lines: Iterable[CallLine], error: Exception | None) -> Iterator[str]:
    for line in lines:
        margin = INDENT * line.depth
        if line.error is None or line.error is error:
            yield margin + line.code
        elif line.code.startswith("with "):
            yield f"{margin}{SUPPRESSED}, {line.code.removeprefix('with ')}"
        elif line.changed:
            yield f"{margin}{SUPPRESSED}:"
            yield margin + INDENT + line.code


def _sorted_imports(imports: Iterable[str]) -> str:
    """Return imports as one would write them: Python's own first, those of one module together."""
    names: dict[str, set[str]] = {}
    groups: dict[bool, list[str]] = {True: [], False: []}
    for each in sorted(imports):
        match = re.fullmatch(r"from (\S+) import (.+)", each)
        if match is None:
            groups[each.split()[1].partition(".")[0] in sys.stdlib_module_names].append(each)
        else:
            names.setdefault(match[1], set()).add(match[2])
    for home, known in sorted(names.items()):
        is_python = home.partition(".")[0] in sys.stdlib_module_names
        groups[is_python].append(f"from {home} import {', '.join(sorted(known))}")
    return "\n\n".join("\n".join(group) for group in groups.values() if group) + "\n"


def _definition(function: Callable[..., Any]) -> tuple[str, ast.FunctionDef]:
    """Return the source of a function without its decorators but those of Python, and its tree."""
    function = inspect.unwrap(function)
    try:
        source = textwrap.dedent(inspect.getsource(function))
        node = ast.parse(source).body[0]
    except (OSError, SyntaxError):
        raise UnwritableError(f"the source of {function.__name__} cannot be read") from None
    if not isinstance(node, ast.FunctionDef):
        raise UnwritableError(f"{function.__name__} is no plain function")
    kept = [each.id for each in node.decorator_list if isinstance(each, ast.Name) and each.id in KEPT_DECORATORS]
    node.decorator_list = []
    code = "".join(source.splitlines(keepends=True)[node.lineno - 1 :])
    return "".join(f"@{name}\n" for name in kept) + code, node


def _written(code: Any, name: str) -> Any:
    if code is None:
        raise UnwritableError(f"{name} has no form in code")
    return code


def _literal(value: Any, name: str) -> str:
    try:
        if ast.literal_eval(repr(value)) == value:
            return repr(value)
    except (ValueError, SyntaxError):
        pass
    raise UnwritableError(f"{name}, a {type(value).__name__}, has no form in code")


def _try(text: str, path: Path, error: Exception) -> str:
    """Run a test; return what is wrong with it, or nothing if it fails as it should."""
    namespace: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(compile(text, str(path), "exec"), namespace)
        namespace[path.stem]()
    except Exception as raised:  # noqa: BLE001  # whatever the test raises is compared
        if type(raised).__name__ == type(error).__name__:
            return ""
        return f"the steps of this failure; here they raise {type(raised).__name__}: {raised}"
    return "the steps of this failure, which do not fail by themselves: it depends on more than the chain"
