"""How deep a program nests and how many tokens it has, read before any parser sees it.

The depth that an interpreter's parser and compiler accept depends on version and build, and some crash beyond it.
Whatever is nested too deep here, the limit on the syntax tree would refuse too, except redundant brackets within
brackets. The tokens bound the memory of parser and compiler.
"""

import re
from collections.abc import Iterator
from keyword import iskeyword
from typing import Final

from msgspec import Struct, field

from trailboss.primitives.errors import Fact, Rejection, RejectionReason

NESTING_MAX: Final = 100  # levels of a program: far below what every interpreter's own parser and compiler accept
TOKENS_MAX: Final = 50_000  # of a program, line ends among them: a parser takes some 500 bytes for one
FIELD_TOKENS: Final = 20  # for which a field of a formatted string counts: CPython copies what follows each of them
TAB_WIDTH: Final = 8  # columns between tab stops in an indentation, as in Python
LINE_CHARACTERS_MAX: Final = 200  # characters of a program's line that an error or a receipt shows
_TOKEN: Final = re.compile(
    r"""
    (?P<comment>\#[^\r\n]*) | (?P<joined>\\(?:\r\n|[\r\n])) | (?P<newline>\r\n|[\r\n]) | (?P<space>[ \t\f]+)
    | (?P<string>[rbfuRBFU]{0,2}(?:\"{3}(?:[^\\]|\\.)*?\"{3} | '{3}(?:[^\\]|\\.)*?'{3}
        | (?!\"{3}|'{3})(?:"(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*')))
    | (?P<broken>["'\\])
    | (?P<number>0[xXoObB]\w+ | \.?\d(?:[eE][-+]\d|[\w.])*) | (?P<name>\w+)
    | (?P<operator>\*\*=? | //=? | <<=? | >>=? | -> | := | [-+*/%@&|^=<>!]= | .)
    """,
    re.VERBOSE | re.DOTALL,
)
_BINARY: Final = {  # left-nesting operators, by precedence
    operator: place
    for place, operators in enumerate(("|", "^", "&", "<< >>", "+ -", "* / // % @", "**"))
    for operator in operators.split()
}
_TRAILER: Final = max(_BINARY.values()) + 1  # an attribute, a call or a subscript binds closer than any of them
_UNARY: Final = ("-", "+", "~", "not", "await")
_SAME_STATEMENT: Final = ("else", "except", "finally", "case")
"""First words of a line that continues the statement above it."""


class _Level(Struct):
    """What has been read between two brackets, or in a statement outside of any."""

    base: int  # levels around it
    prefixes: int = 0  # unary operators directly before the current operand
    lambdas: int = 0  # lambdas around the current position
    headers: int = 0  # lambdas among them whose arguments are being read
    branches: int = 0  # conditional expressions whose last branch holds the current position
    chains: list[int] = field(default_factory=lambda: [0] * (_TRAILER + 1))  # nested operators here, by precedence

    @property
    def inner(self) -> int:
        """Levels around the content of a bracket that opens here."""
        return self.base + self.prefixes + self.lambdas + self.branches + 1

    @property
    def depth(self) -> int:
        """Levels at the current position, at least."""
        return self.base + self.prefixes + self.lambdas + self.branches + max(self.chains)

    def end(self) -> None:
        """Read the end of an expression."""
        self.prefixes = self.lambdas = self.headers = self.branches = 0
        self.bind(0)

    def bind(self, place: int) -> None:
        """Read an operator that binds less closely than those from ``place`` on."""
        self.prefixes = 0
        self.chains[place:] = [0] * (_TRAILER + 1 - place)


class _Block(Struct):
    """A block of statements: its column, the levels around its statements, and the ``elif`` of the present one."""

    column: int
    depth: int
    branches: int = 0


def check_nesting(source: str) -> None:
    """Refuse a program that nests too deep, or has too many tokens. `Rejection` ``INVALID_DATA``."""
    for count, (place, depth) in enumerate(_depths(source, 0, is_module=True), 1):
        if count > TOKENS_MAX:
            what = f"the source has more than {TOKENS_MAX} names, numbers, texts, operators and line ends"
            raise Rejection(RejectionReason.INVALID_DATA, what, "deploy it as several actors", limit=TOKENS_MAX)
        if depth > NESTING_MAX:
            before = source[:place]
            line, column = len(before.splitlines() or [""]), place - max(before.rfind("\n"), before.rfind("\r"))
            raise no_python(source, line, column, f"nested deeper than {NESTING_MAX} levels")


def no_python(source: str, line: int, column: int, what: str) -> Rejection:
    """Return the refusal of source that is not Python of the grammar, with the offending line."""
    lines = source.splitlines()
    text = lines[line - 1].strip()[:LINE_CHARACTERS_MAX] if 1 <= line <= len(lines) else ""
    facts: dict[str, Fact] = {"line": line, "column": column, "rule": "syntax", "traceback": f"line {line}: {text}"}
    what = f"line {line}, column {column}: not Python 3.11: {what}"
    return Rejection(RejectionReason.INVALID_DATA, what, "correct the line", **facts)


def _depths(text: str, base: int, *, is_module: bool = False) -> Iterator[tuple[int, int]]:
    """Yield position and depth of each token of a text that is within ``base`` levels; 0 for one that adds none."""
    levels, blocks, after_operand = [_Level(base)], [_Block(0, base)], False
    for place, kind, token, column in _tokens(text):
        level = levels[-1]
        if kind == "newline":
            if len(levels) == 1:
                level.end()
                after_operand = False
            yield place, 0
            continue
        if column is not None and is_module and len(levels) == 1:
            level.base = _statement(blocks, column, token)
        elif token == "else":
            level.branches += 1
        if token in ("(", "[", "{"):
            if token == "{" and not is_module:
                yield from [(place, 0)] * FIELD_TOKENS
            level.chains[_TRAILER] += after_operand
            levels.append(_Level(level.inner))
            after_operand = False
        elif token in (")", "]", "}"):
            del levels[max(len(levels) - 1, 1) :]
            after_operand = True
        elif kind in ("name", "number", "string"):
            after_operand = True
            for start, expression in _expressions(kind, token):
                yield from [(place, 0)] * FIELD_TOKENS
                yield from ((place + start + each, depth) for each, depth in _depths(expression, level.inner))
            if column is None:
                yield place, 0
                continue
        elif kind == "operator":
            _operator(level, token, after_operand=after_operand)
            after_operand = False
        yield place, levels[-1].depth


def _tokens(text: str) -> Iterator[tuple[int, str, str, int | None]]:
    """Yield position, kind and text of each token but space and comments; its column if it is the first of its line.

    They end at a quote or a backslash that begins nothing: the parser refuses the source there.
    """
    column: int | None = 0
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup or "", match.group()
        if kind == "space":
            column = None if column is None else len(token.rpartition("\f")[2].expandtabs(TAB_WIDTH))
        elif kind == "broken":
            return
        elif kind not in ("comment", "joined"):
            if kind == "name" and iskeyword(token) and token not in ("None", "True", "False"):
                kind = "operator"
            yield match.start(), kind, token, column
            column = 0 if kind == "newline" else None


def _statement(blocks: list[_Block], column: int, token: str) -> int:
    """Read the first token of a statement; return the levels around it."""
    while len(blocks) > 1 and column < blocks[-1].column:
        blocks.pop()
    block = blocks[-1]
    if column > block.column:
        block = _Block(column, block.depth + block.branches + 1)
        blocks.append(block)
    if token == "elif":
        block.branches += 1
    elif token not in _SAME_STATEMENT:
        block.branches = 0
    return block.depth + block.branches


def _operator(level: _Level, token: str, *, after_operand: bool) -> None:
    """Read an operator, a keyword or a separator."""
    if not after_operand and token in _UNARY:
        level.prefixes += 1
    elif token == ".":
        level.chains[_TRAILER] += after_operand
    elif token in _BINARY:
        if after_operand:
            level.bind(_BINARY[token] + 1)
            level.chains[_BINARY[token]] += 1
    elif token == "lambda":
        level.lambdas += 1
        level.headers += 1
    elif level.headers and token in (":", ",", "=", "*", "/"):
        level.headers -= token == ":"
        level.bind(0)
    elif token in (",", ";", "=", ":", ":=", "->") or (token.endswith("=") and token[:1] not in "<>!="):
        level.end()
    else:
        level.bind(0)


def _expressions(kind: str, token: str) -> Iterator[tuple[int, str]]:
    """Yield position and text of each expression in a formatted string; nothing for any other token."""
    if kind != "string" or "f" not in token[:2].lower():
        return
    depth, start, place = 0, 0, 0
    while place < len(token):
        character = token[place]
        if depth == 0 and token[place : place + 2] in ("{{", "}}"):
            place += 1
        elif character in "([{" and (depth or character == "{"):
            depth += 1
            start = place + 1 if depth == 1 else start
        elif character in ")]}" and depth:
            depth -= 1
            if depth == 0:
                yield start, token[start:place]
        place += 1
