"""The linter of actor sources: what a deployment would refuse, and what hurts later. It runs nothing."""

from trailboss.lint.actor_files import actor_files
from trailboss.lint.catalogue import RULES, UPGRADE
from trailboss.lint.linter import LintTerms, called_by_timers, lint_source, selected
from trailboss.lint.records import LintFinding, LintRule, Severity
from trailboss.lint.sarif import sarif_log

__all__ = [
    "RULES",
    "UPGRADE",
    "LintFinding",
    "LintRule",
    "LintTerms",
    "Severity",
    "actor_files",
    "called_by_timers",
    "lint_source",
    "sarif_log",
    "selected",
]
