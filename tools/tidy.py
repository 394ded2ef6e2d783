"""House lint: the rules of the house that ruff, mypy and import-linter do not know.

Prints one line for each finding and exits with 1 if there is any. Exceptions stand in ``tools/tidy_allow.toml``, each
with its reason; one that is no longer needed is a finding itself, so the list only shrinks.
"""

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tools.tidy_names import GUEST, SOURCE, name_faults, type_faults

MODULE_LINES_MAX: Final = 600
FUNCTION_LINES_MAX: Final = 60
ALLOW_FILE: Final = "tools/tidy_allow.toml"
CORE: Final = (
    "primitives",
    "crypto",
    "codec",
    "params",
    "model",
    "state",
    "fees",
    "metering",
    "vm",
    "sandbox",
    "timer_queue",
    "mechanisms",
    "governance",
    "execution",
)
FILES_ALLOWED_IN: Final = ("state", "params")
NUMBERS_ALLOWED_IN: Final = ("params", "codec", "crypto")
"""Parameters are numbers, and so are the layouts of bytes on the wire."""
PLAIN_NUMBERS: Final = (-1, 0, 1, 2)
SEARCHED: Final = ("src", "tools", "tests", "benchmarks", "examples")
MEASURED: Final = ("src", "tools")

MARKER: Final = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
SOURCE_LINE: Final = re.compile(r"\b(?:Spec|Source): ")
SPEC_LINE: Final = re.compile(r"\bSpec: (?P<cites>.*)$")
CITE: Final = re.compile(r"(?P<document>CIP-\d+(?: ?v\d+|old)?|overview)(?P<sections>(?: ?§\d+(?:\.\d+)*,?)*)")
DECISION_LINE: Final = re.compile(r"\bDecision: (?P<cites>.*)$")
DECISION: Final = re.compile(r"\bD-(\d+)\b")
MUTABLE_CALLS: Final = ("list", "dict", "set", "bytearray", "defaultdict", "deque", "OrderedDict", "Counter")
ORDER_CALLS: Final = ("list", "tuple", "enumerate", "iter", "next", "map", "zip", "bytes")
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Finding(Struct, frozen=True):
    """One place that breaks a rule.

    Attributes:
        path: File, relative to the root.
        line: Line, from one.
        rule: Name of the rule, as the allow-list uses it.
        message: What is wrong there.
        name: Function, class or name concerned; empty for a whole module.
        size: Measured lines, for the two length rules; else 0.
    """

    path: str
    line: int
    rule: str
    message: str
    name: str = ""
    size: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


class Documents(Struct, frozen=True):
    """What code may cite.

    Attributes:
        sections: Section numbers of each document; an empty tuple stands for a document without numbers.
        decisions: Numbers of the decision records.
    """

    sections: dict[str, tuple[str, ...]]
    decisions: frozenset[int]


def load_documents(root: Path) -> Documents:
    """Read the pinned documents and the decision records under ``root``."""
    pins = tomllib.loads((root / "docs/spec/pins.toml").read_text(encoding="utf-8"))
    sections = {name: tuple(pin["sections"]) for name, pin in pins.items() if "sections" in pin}
    sections |= {name: sections[pin["same_as"]] for name, pin in pins.items() if "same_as" in pin}
    records = (root / "docs/decisions").glob("[0-9][0-9][0-9][0-9]-*.md")
    return Documents(sections, frozenset(int(path.name[:4]) for path in records))


def citation_faults(text: str, documents: Documents) -> Iterator[str]:
    """Yield what is wrong with the text after ``Spec:``: an unknown document or section, or no clause at all."""
    cites = list(CITE.finditer(text))
    if not cites:
        yield f"no clause in {text!r}; write for example CIP-5 §6.3"
    for cite in cites:
        document = cite["document"].replace(" ", "")
        known = documents.sections.get(document)
        if known is None:
            yield f"{document} is not in docs/spec/pins.toml"
            continue
        for section in re.findall(r"§([\d.]+\d|\d)", cite["sections"]):
            if section not in known:
                yield f"{document} §{section} is not in docs/spec/pins.toml"


def module_findings(path: str, text: str, documents: Documents) -> list[Finding]:
    """Check one Python module.

    Args:
        path: Path relative to the root, with forward slashes; it decides which rules apply.
        text: Source of the module.
        documents: What it may cite.
    """
    found = [*comment_findings(path, text)]
    if not path.startswith(MEASURED):
        return found
    tree = ast.parse(text)
    found += citation_findings(path, text, documents)
    found += length_findings(path, text, tree)
    parts = path.split("/")
    package = parts[2].removesuffix(".py") if path.startswith(SOURCE) else ""
    if package and not any(each in path for each in GUEST):
        faults = name_faults(path.removeprefix(SOURCE), tree)
        found += [Finding(path, line, rule, message, name) for line, rule, message, name in faults]
    if package in CORE:
        found += determinism_findings(path, tree, package)
        found += state_findings(path, tree)
        if package == "params":
            found += documentation_findings(path, text, tree)
        if package not in NUMBERS_ALLOWED_IN:
            found += number_findings(path, tree)
    return found


def comment_findings(path: str, text: str) -> Iterator[Finding]:
    """Find leftover markers, and section numbers in comments, where they would outlive the line they explain."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        if MARKER.search(token.string):
            yield Finding(path, token.start[0], "leftover", f"leftover marker: {token.string}")
        if "§" in token.string and not SOURCE_LINE.search(token.string) and path.startswith("src"):
            yield Finding(path, token.start[0], "comment-section", "cite a section as a docstring does")


def citation_findings(path: str, text: str, documents: Documents) -> Iterator[Finding]:
    """Check that every cited clause and decision exists."""
    for number, line in enumerate(text.splitlines(), start=1):
        if (spec := SPEC_LINE.search(line)) is not None:
            for fault in citation_faults(spec["cites"], documents):
                yield Finding(path, number, "spec", fault)
        if (decision := DECISION_LINE.search(line)) is not None:
            cited = [int(digits) for digits in DECISION.findall(decision["cites"])]
            if not cited:
                yield Finding(path, number, "decision", f"no decision in {line.strip()!r}; write for example D-09")
            for each in cited:
                if each not in documents.decisions:
                    yield Finding(path, number, "decision", f"D-{each:02} is not in docs/decisions")


def length_findings(path: str, text: str, tree: ast.Module) -> Iterator[Finding]:
    """Find modules and functions that are too long; a docstring does not count into its function."""
    lines = text.count("\n")
    if lines > MODULE_LINES_MAX:
        yield Finding(path, 1, "module-lines", f"{lines} lines, limit {MODULE_LINES_MAX}", size=lines)
    for node in functions(tree):
        first = node.body[0]
        docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if ast.get_docstring(node) else 0
        size = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring
        if size > FUNCTION_LINES_MAX:
            message = f"{node.name} has {size} lines, limit {FUNCTION_LINES_MAX}"
            yield Finding(path, node.lineno, "function-lines", message, node.name, size)


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield every function and method of a tree."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def determinism_findings(path: str, tree: ast.Module, package: str) -> Iterator[Finding]:
    """Find what could make two nodes differ, and refusals that do not say what they refuse."""
    sets = set_names(tree)
    for node in ast.walk(tree):
        for rule, message, name in determinism_faults(node, sets, package):
            yield Finding(path, getattr(node, "lineno", 1), rule, message, name)


def determinism_faults(node: ast.AST, sets: frozenset[str], package: str) -> Iterator[tuple[str, str, str]]:
    """Yield (rule, message, name concerned) for one node."""
    match node:
        case ast.Constant(value=float() | complex()):
            yield "float", "float literal; the core computes with integers", ""
        case ast.BinOp(op=ast.Div()) | ast.AugAssign(op=ast.Div()):
            yield "division", "true division gives a float; use // and say how it rounds", ""
        case ast.AsyncFunctionDef(name=name):
            yield "async", f"{name} is async; the core is synchronous", name
        case ast.Call(func=ast.Name(id="hash" | "id" | "float" as name)):
            yield "call", f"{name}() differs between processes or is not an integer", name
        case ast.Call(func=ast.Name(id="open")) if package not in FILES_ALLOWED_IN:
            yield "file", f"files are read in {' and '.join(FILES_ALLOWED_IN)} only", "open"
        case ast.Call(func=ast.Name(id=name), args=args) if name in ORDER_CALLS:
            if any(is_set(each, sets) for each in args):
                yield "set-order", f"{name}() over a set has no order; use sorted()", name
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name), args=[], keywords=[])):
            if name[:1].isupper():
                yield "bare-raise", f"raise {name} says nothing; name the value and the rule", name
        case ast.For(iter=source) if is_set(source, sets):
            yield "set-order", "iteration over a set has no order; use sorted()", ""
        case ast.ListComp() | ast.DictComp() | ast.GeneratorExp():
            if any(is_set(each.iter, sets) for each in node.generators):
                yield "set-order", "iteration over a set has no order; use sorted()", ""


def is_set(node: ast.expr, sets: frozenset[str]) -> bool:
    """Tell whether an expression is plainly a set."""
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Name(id=name):
            return name in sets
        case ast.BinOp(left=left, op=ast.Sub() | ast.BitOr() | ast.BitAnd() | ast.BitXor(), right=right):
            return is_set(left, sets) or is_set(right, sets)
    return False


def set_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that a module only ever binds to sets."""
    as_set: set[str] = set()
    other: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                (as_set if is_set_annotation(annotation) else other).add(name)
            case ast.arg(arg=name, annotation=annotation):
                (as_set if is_set_annotation(annotation) else other).add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                (as_set if is_set(value, frozenset()) else other).add(name)
    return frozenset(as_set - other)


def is_set_annotation(annotation: ast.expr | None) -> bool:
    """Tell whether an annotation names a set type."""
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(base, ast.Name) and base.id in ("set", "frozenset", "Set", "AbstractSet")


def state_findings(path: str, tree: ast.Module) -> Iterator[Finding]:
    """Find module-level state that could change: lower-case containers, and ``global``."""
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [each.id for each in targets if isinstance(each, ast.Name)]
        value = node.value
        mutable = isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp) or (
            isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in MUTABLE_CALLS
        )
        for name in names if mutable else []:
            if name.lstrip("_") != name.lstrip("_").upper() and name != "__all__":
                yield Finding(path, node.lineno, "module-state", f"{name} is mutable at module level", name)
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Global):
            yield Finding(path, inner.lineno, "module-state", f"global {', '.join(inner.names)}", inner.names[0])


def number_findings(path: str, tree: ast.Module) -> Iterator[Finding]:
    """Find numbers in functions that belong in ``params`` or in an upper-case constant.

    Widths in ``to_bytes(8, "big")`` and powers such as ``2**64 - 1`` are read as what they are. A slice bound is a
    layout, and layouts have names.
    """
    inside = {node: function for function in functions(tree) for node in ast.walk(function)}
    exempt = {each for node in inside for each in exempt_numbers(node)}
    for node, function in inside.items():
        if not isinstance(node, ast.Constant) or type(node.value) is not int:
            continue
        if node.value not in PLAIN_NUMBERS and node not in exempt:
            message = f"{node.value} in {function.name}; give it a name or make it a parameter"
            yield Finding(path, node.lineno, "number", message, function.name)


def exempt_numbers(node: ast.AST) -> Iterable[ast.AST]:
    """Return the number nodes below ``node`` that explain themselves."""
    match node:
        case ast.Call(func=ast.Attribute(attr="to_bytes"), args=[ast.Constant() as width, *_]):
            return [width]
        case ast.BinOp(left=ast.Constant() as base, op=ast.Pow(), right=ast.Constant() as exponent):
            return [base, exponent]
    return []


def documentation_findings(path: str, text: str, tree: ast.Module) -> Iterator[Finding]:
    """Find fields of parameter records without an explanation.

    A field is explained by a comment behind it or above it, or with all others of its class where the docstring says
    what "each field" is. A field that is itself such a record (``fees: FeeParams``) explains itself.
    """
    facts = field_facts(text)
    for record in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        if "each field" in (ast.get_docstring(record) or "").lower():
            continue
        for field in record.body:
            match field:
                case ast.AnnAssign(annotation=ast.Name(id=kind)) if kind.endswith("Params"):
                    continue
                case ast.AnnAssign(target=ast.Name(id=name)) if f"{record.name}.{name}" not in facts:
                    message = f"{record.name}.{name} has no unit, reason or clause"
                    yield Finding(path, field.lineno, "parameter-docs", message, name)


def field_facts(text: str) -> dict[str, str]:
    """Return the comment behind each annotated field of a module's classes, or above it, by ``Record.field``."""
    lines, found = text.splitlines(), {}
    for record in (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)):
        for field in record.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                behind = lines[field.lineno - 1].partition("  # ")[2]
                above = reversed([*takewhile(_is_comment, reversed(lines[: field.lineno - 1]))])
                if fact := behind or " ".join(line.strip().removeprefix("# ") for line in above):
                    found[f"{record.name}.{field.target.id}"] = fact.removesuffix(".") + "."
    return found


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def allowed(found: list[Finding], allowances: list[dict[str, Any]]) -> list[Finding]:
    """Return the findings that no allowance covers, and one for each allowance that covers none.

    An allowance of a length holds up to its ``most`` lines, so that what is long does not grow longer.
    """
    used: set[int] = set()
    remaining = []
    for finding in found:
        for index, entry in enumerate(allowances):
            same = entry["rule"] == finding.rule and entry["path"] == finding.path
            if same and entry.get("name", finding.name) == finding.name and finding.size <= entry.get("most", 0):
                used.add(index)
                break
        else:
            remaining.append(finding)
    for index, entry in enumerate(allowances):
        if not entry.get("reason", "").strip():
            remaining.append(Finding(ALLOW_FILE, 1, "allow-list", f"entry {index + 1} gives no reason"))
        if index not in used:
            message = (
                f"entry {index + 1} ({entry['rule']}, {entry['path']}) covers nothing; remove it or correct its limit"
            )
            remaining.append(Finding(ALLOW_FILE, 1, "allow-list", message))
    return remaining


def check_tree(root: Path) -> list[Finding]:
    """Return every finding under ``root``, allowances applied, in order of path and line."""
    documents = load_documents(root)
    found: list[Finding] = []
    trees: dict[str, ast.Module] = {}
    for folder in SEARCHED:
        for path in sorted((root / folder).rglob("*.py")):
            relative, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            found += module_findings(relative, text, documents)
            if relative.startswith(SOURCE) and not any(each in relative for each in GUEST):
                trees[relative] = ast.parse(text)
    found += [Finding(path, line, "type-name", message, name) for path, line, message, name in type_faults(trees)]
    allowances = tomllib.loads((root / ALLOW_FILE).read_text(encoding="utf-8")).get("allow", [])
    return sorted(allowed(found, allowances), key=lambda each: (each.path, each.line, each.rule))


def main() -> int:
    """Print the findings; return the exit status."""
    found = check_tree(Path(__file__).resolve().parent.parent)
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
