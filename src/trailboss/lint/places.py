"""Where a finding stands."""

import ast
from collections.abc import Sequence

from trailboss.lint.catalogue import RULES
from trailboss.lint.records import LintFinding, Severity

_OPENED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.For | ast.While


def finding_at(
    rule: str, node: ast.expr | ast.stmt, lines: Sequence[str], message: str, severity: Severity | None = None
) -> LintFinding:
    """Return a finding at a node: of a definition or a loop its first line, without what stands within.

    Args:
        rule: Its id.
        node: Where it stands.
        lines: Lines of the source.
        message: What is found, and what to do.
        severity: None for that of the rule.
    """
    line = node.lineno
    end_line = line if isinstance(node, _OPENED) else node.end_lineno or line
    end = len(lines[line - 1].encode().rstrip()) if isinstance(node, _OPENED) else node.end_col_offset or 0
    column, end_column = _characters(lines, line, node.col_offset), _characters(lines, end_line, end)
    return LintFinding("", line, column, end_line, end_column, rule, severity or RULES[rule].severity, message)


def finding_in(rule: str, line: int, column: int, message: str) -> LintFinding:
    """Return a finding at a line and a column, both from 1."""
    return LintFinding("", line, column, line, column + 1, rule, RULES[rule].severity, message)


def _characters(lines: Sequence[str], line: int, byte: int) -> int:
    """Return the column, from 1, of a byte of a line: the parser counts bytes, people count characters."""
    return len(lines[line - 1].encode()[:byte].decode(errors="ignore")) + 1
