"""The reference page of the pytest plugin and of `LocalChain`, written from their code.

A base class of `LocalChain` is a section, a comment between its calls begins another one. Options, markers, fixtures
and hooks are those of the plugin module. So what is added there is on the page.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any, Final

from msgspec import Struct

from tools.tidy import field_facts
from trailboss import testing
from trailboss.testing import ActorHandle, Event, LocalChain, Receipt, TimerView, plugin
from trailboss.testing.base_chain import BaseChain

INTRO: Final = """
# The pytest plugin and LocalChain

The package brings a plugin: a test with an argument `chain` gets a fresh chain of its own, and pytest has the options
below. A script or a notebook gets one by `LocalChain(…)`. [Testing actors](../tutorial/testing-actors.md) shows how the
calls are used and how [coverage](../tutorial/testing-actors.md#coverage) is measured, the
[cookbook](../cookbook/index.md) what the calls are good for.

Amounts are base units, 10⁹ of them one CBY; heights and lengths of time are blocks; ids are 32 bytes, addresses 20. A
`Party` is what has an address: an account, an actor's handle, or the bytes. What is refused changes nothing, and the
error names the value and the rule.
"""
MARKER: Final = """
The marker nearest to the test wins: one on a test goes before one on its class, and that before the module's
`pytestmark`. Its arguments are those of `LocalChain`:
"""
FIRST: Final = "Deploy and send"
"""Title of the calls of `BaseChain` before its first comment."""
RECORDS: Final = (ActorHandle, Receipt, Event, TimerView)
"""What the calls return, explained field by field."""
MEMBER: Final = re.compile(r"(?<!`)`(\w+)`(?!`)")
COMMENT: Final = re.compile(r"^    # (\w[^\n]*)\n\n", re.MULTILINE)
STARS: Final[Mapping[Any, str]] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
PROPERTIES: Final = (property, cached_property)
PARAGRAPH: Final = "\n\n"
LINE: Final = 100
INDENT: Final = "    "


def plugin_page() -> str:
    """Return the page."""
    calls = [section for home in _homes() for section in _sections(home)]
    titles = [f"[{title}](#{_anchor(title)})" for title, _, _ in calls]
    parts = [
        INTRO.lstrip(),
        *_plugin_parts(),
        "## LocalChain\n",
        f"The calls of a chain, by subject: {', '.join(titles)}.\n",
        *_described(inspect.cleandoc(LocalChain.__doc__ or "")),
        *_call(LocalChain.__init__, LocalChain.__name__, _function(BaseChain, "__init__")),
    ]
    for title, intro, members in calls:
        parts += [f"## {title}\n", *([f"{intro}\n"] if intro else []), *members]
    parts.append("## What the calls return\n")
    for record in RECORDS:
        parts += _record(record)
    return "\n".join([*parts, *_names()])


# The plugin


class _Options:
    """Stands for pytest's parser and configuration, and notes what the plugin adds to them."""

    def __init__(self) -> None:
        self.options: list[tuple[tuple[str, ...], Mapping[str, Any]]] = []
        self.markers: list[str] = []

    def getgroup(self, *_: str) -> "_Options":
        return self

    def addoption(self, *names: str, **attributes: Any) -> None:
        self.options.append((names, attributes))

    def addinivalue_line(self, name: str, line: str) -> None:
        if name == "markers":
            self.markers.append(line)

    @property
    def option(self) -> SimpleNamespace:
        return SimpleNamespace(**{_destination(names): _default(each) for names, each in self.options})

    def getoption(self, name: str) -> Any:
        return getattr(self.option, _destination((name,)))


def _destination(names: tuple[str, ...]) -> str:
    return names[0].lstrip("-").replace("-", "_")


def _default(attributes: Mapping[str, Any]) -> Any:
    return attributes.get("default", False if attributes.get("action") == "store_true" else None)


def _plugin_parts() -> Iterator[str]:
    noted: Any = _Options()
    plugin.pytest_addoption(noted)
    plugin.pytest_configure(noted)
    yield "## Options\n"
    yield _table(("option", "what it does"), (_option(names, each) for names, each in noted.options))
    functions = [node for node in ast.parse(inspect.getsource(plugin)).body if isinstance(node, ast.FunctionDef)]
    yield "## Fixtures\n"
    fixtures = [each for each in functions if any("fixture" in ast.unparse(mark) for mark in each.decorator_list)]
    yield _table(("fixture", "what it is"), ((f"`{each.name}`", _prose(ast.get_docstring(each))) for each in fixtures))
    yield "## Markers\n"
    for line in noted.markers:
        signature, _, what = line.partition(": ")
        yield f"`@pytest.mark.{signature}`: {what.replace('see LocalChain', 'see below')}.\n"
    yield MARKER.strip() + "\n"
    yield '```py\n@pytest.mark.trailboss(mechanism="lane", params={"timers.max_timers_per_actor": 1})\n```\n'
    hooks = [each for each in functions if each.name.startswith("pytest_")]
    added = [each for each in hooks if each.name not in ("pytest_addoption", "pytest_configure")]
    if added:
        yield "## What it adds to pytest's output\n"
        yield "".join(f"- {_prose(ast.get_docstring(each)).replace(PARAGRAPH, ' ')}\n" for each in added)


def _option(names: tuple[str, ...], attributes: Mapping[str, Any]) -> tuple[str, str]:
    choices = attributes.get("choices", ())
    value = attributes.get("metavar") or (f"{{{','.join(choices)}}}" if choices else "")
    shape = "[={}]" if attributes.get("nargs") == "?" else " {}"
    written = "/".join(names) + (shape.format(value) if value else "")
    default = _default(attributes)
    shown = f" Default: {default}." if default not in (None, False, 0) else ""
    what = attributes["help"].replace("%%", "%")
    return f"`{written}`", f"{what[:1].upper()}{what[1:].removesuffix('.')}.{shown}"


# The calls of a chain


def _homes() -> tuple[type, ...]:
    """Return the classes whose calls `LocalChain` has, what all others stand on first."""
    own = [LocalChain] if _members(LocalChain) else []
    others = [each for each in LocalChain.__mro__ if each not in (object, BaseChain, LocalChain)]
    return BaseChain, *own, *others


def _sections(home: type) -> list[tuple[str, str, list[str]]]:
    """Return title, introduction and calls of each section of a class."""
    source = inspect.getsource(home)
    comments = {source.count("\n", 0, match.start()) + 1: match[1] for match in COMMENT.finditer(source)}
    doc = "\n".join(_described(inspect.cleandoc(home.__doc__ or ""))).rstrip()
    first = (FIRST, "") if home is BaseChain else (_title(home.__name__), doc)
    found: list[tuple[str, str, list[str]]] = [(*first, [])]
    for node in _members(home):
        passed = [line for line in comments if line < node.lineno]
        for line in passed:
            title, _, intro = comments.pop(line).partition(": ")
            found.append((title, f"{intro[:1].upper()}{intro[1:]}." if intro else "", []))
        if home is BaseChain or not hasattr(BaseChain, node.name):
            found[-1][2].extend(_call(inspect.getattr_static(home, node.name), node.name, node))
    return [section for section in found if section[2]]


def _members(home: type) -> list[ast.FunctionDef]:
    return [each for each in _functions(home) if not each.name.startswith("_")]


def _function(home: type, name: str) -> ast.FunctionDef:
    return next(each for each in _functions(home) if each.name == name)


def _functions(home: type) -> list[ast.FunctionDef]:
    return [each for each in _body(home) if isinstance(each, ast.FunctionDef)]


@cache
def _body(home: type) -> list[ast.stmt]:
    node = ast.parse(inspect.getsource(home)).body[0]
    assert isinstance(node, ast.ClassDef)
    return node.body


def _call(value: Any, name: str, node: ast.FunctionDef) -> Iterator[str]:
    """Yield the entry of one call: its name, its signature, and what its docstring says."""
    if name != LocalChain.__name__:
        yield f"### {name}\n"
    yield f"```py\n{_written(name, value, node)}\n```\n"
    yield from _described(inspect.cleandoc(ast.get_docstring(node) or ""))


def _written(name: str, value: Any, node: ast.FunctionDef) -> str:
    returns = ast.unparse(node.returns) if node.returns else "None"
    if isinstance(value, PROPERTIES):
        return f"{name}: {returns}"
    end = "" if node.name == "__init__" else f" -> {returns}"
    return _signature(name, [*_parameters(node, inspect.signature(value))], end)


def _parameters(node: ast.FunctionDef, signature: inspect.Signature) -> Iterator[str]:
    arguments = node.args
    written = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    types = {each.arg: ast.unparse(each.annotation) for each in written if each and each.annotation}
    named_only = False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not named_only:
            named_only = True
            yield "*"
        kind = types.get(parameter.name, "Any").strip("'\"")
        default = "" if parameter.default is inspect.Parameter.empty else f" = {_literal(parameter.default)}"
        yield f"{STARS.get(parameter.kind, '')}{parameter.name}: {kind}{default}"


def _literal(value: object) -> str:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"
    return repr(value).replace("'", '"')


def _signature(name: str, parameters: list[str], returns: str) -> str:
    whole = f"{name}({', '.join(parameters)}){returns}"
    if len(whole) <= LINE:
        return whole
    lines = [""]
    for each in parameters:
        if len(lines[-1]) + len(each) + 2 > LINE - len(INDENT):
            lines.append("")
        lines[-1] += f"{each}, "
    return "\n".join([f"{name}(", *(f"{INDENT}{line.rstrip()}" for line in lines), f"){returns}"])


def _described(doc: str) -> Iterator[str]:
    """Yield what a docstring says: its text, its arguments as a list, and its errors."""
    text, *rest = re.split(r"\n\n(?=(?:Args|Attributes|Returns|Raises):\n)", doc)
    items = []
    for block in rest:
        title, _, body = block.partition("\n")
        if title == "Returns:":
            items.append(f"- Returns: {_prose(body)}\n")
            continue
        pairs = (" ".join(entry.split()).partition(": ") for entry in re.split(r"\n(?=    \S)", body))
        lead = "Raises " if title == "Raises:" else ""
        items += [f"- {lead}`{name}`: {_prose(what)}\n" for name, _, what in pairs]
    yield f"{_prose(text)}\n"
    if items:
        yield "".join(items)


def _record(record: type[Struct]) -> Iterator[str]:
    """Yield the entry of a record: its fields, and its calls."""
    yield f"### {record.__name__}\n"
    yield f"{_prose(record.__doc__)}\n"
    facts = field_facts(inspect.getsource(record))
    rows = []
    for name in record.__struct_fields__:
        fact = facts.get(f"{record.__name__}.{name}")
        if fact:
            linked = _linked(fact)
            rows.append((f"`{name}`", f"`{_annotation(record, name)}`", f"{linked[:1].upper()}{linked[1:]}"))
    calls = {node: inspect.getattr_static(record, node.name) for node in _members(record)}
    for node in (node for node, value in calls.items() if isinstance(value, PROPERTIES)):
        rows.append(
            (
                f"`{node.name}`",
                f"`{ast.unparse(node.returns) if node.returns else ''}`",
                _prose(ast.get_docstring(node)),
            )
        )
    if rows:
        yield _table(("field", "type", "what it is"), rows)
    for node, value in calls.items():
        if not isinstance(value, PROPERTIES):
            yield f"```py\n{_written(f'{record.__name__}.{node.name}', value, node)}\n```\n"
            yield from _described(ast.get_docstring(node) or "")


def _annotation(record: type, name: str) -> str:
    found = (each for each in _body(record) if isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == name)
    return ast.unparse(next(found).annotation).strip("'").replace(" | ", " or ")


def _names() -> Iterator[str]:
    """Yield the table of what else can be imported."""
    yield "## Names to import\n"
    yield "What `from trailboss.testing import …` gives beside `LocalChain`:\n"
    others = ((name, getattr(testing, name)) for name in testing.__all__ if name != LocalChain.__name__)
    yield _table(
        ("name", "what it is"),
        ((f"`{name}`", f"{value:,}" if isinstance(value, int) else _sentence(value)) for name, value in others),
    )


def _sentence(value: object) -> str:
    return _prose((inspect.getdoc(value) or "").partition(PARAGRAPH)[0])


# Text


def _title(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()


def _anchor(title: str) -> str:
    return re.sub(r"[^\w]+", "-", title.lower()).strip("-")


def _prose(doc: str | None) -> str:
    """Return the paragraphs of a docstring as Markdown, with links to the calls that it names."""
    paragraphs = inspect.cleandoc(doc or "").split(PARAGRAPH)
    return PARAGRAPH.join(_linked(" ".join(each.split())) for each in paragraphs)


def _linked(text: str) -> str:
    names = _call_names()
    linked = MEMBER.sub(lambda match: f"[`{match[1]}`](#{match[1]})" if match[1] in names else match[0], text)
    return linked.replace("``", "`")


@cache
def _call_names() -> frozenset[str]:
    return frozenset(node.name for home in _homes() for node in _members(home))


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [[each.replace("|", "\\|").replace(PARAGRAPH, " ") for each in row] for row in (headings, *rows)]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([lines[0], f"|{' --- |' * len(cells[0])}", *lines[1:]]) + "\n"
