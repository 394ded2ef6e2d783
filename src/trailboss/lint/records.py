"""What the linter finds, and what it looks for."""

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"  # the deployment, or every fire, fails
    WARNING = "warning"  # it works today and can hurt
    NOTE = "note"  # a choice that is worth knowing about; shown when its rule is selected


class LintRule(Struct, frozen=True):
    """One thing that the linter looks for."""

    rule: str  # its id, ``TB`` and three digits, or the code of a refusal
    name: str  # its name, for a heading
    severity: Severity
    summary: str  # one sentence: what is wrong with what it finds


class LintFinding(Struct, frozen=True):
    """One finding."""

    path: str  # file, as it was given; empty until it is known
    line: int  # from 1
    column: int  # from 1, in characters
    end_line: int
    end_column: int  # the first column that does not belong to it any more
    rule: str
    severity: Severity
    message: str  # what is found, and what to do
