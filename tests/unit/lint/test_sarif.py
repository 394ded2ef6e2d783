"""The SARIF log has the structure that its readers want."""

from urllib.parse import urlsplit

from trailboss.lint import RULES, LintFinding, Severity, sarif_log

PLACE = {"line": 3, "column": 5, "end_line": 3, "end_column": 9}
FINDING = LintFinding("actors/a b.py", **PLACE, rule="TB005", severity=Severity.WARNING, message="anyone")


def test_log_has_one_run_with_all_rules():
    """Each with an absolute address for help, as SARIF 2.1.0 §3.49.12 wants."""
    log = sarif_log([], "1.2.3", "urn:page")
    assert (log["version"], log["$schema"].rpartition("/")[2]) == ("2.1.0", "sarif-schema-2.1.0.json")
    [run] = log["runs"]
    driver = run["tool"]["driver"]
    assert (run["results"], driver["semanticVersion"]) == ([], "1.2.3")
    assert [rule["id"] for rule in driver["rules"]] == list(RULES)
    for rule in driver["rules"]:
        assert urlsplit(rule["helpUri"]).scheme
        assert rule["helpUri"].endswith(f"#{rule['id'].lower()}")
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")


def test_result_names_its_rule_its_file_and_its_region():
    """A path is a relative address, in the characters of one; an absolute path is a file's."""
    absolute = LintFinding("/a.py", **PLACE, rule="E1213", severity=Severity.ERROR, message="no")
    [run] = sarif_log([FINDING, absolute], "1", "urn:page")["runs"]
    first, second = run["results"]
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == first["ruleId"] == "TB005"
    assert (first["level"], first["message"]) == ("warning", {"text": "anyone"})
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "actors/a%20b.py"}
    assert place["region"] == {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 9}
    assert run["columnKind"] == "unicodeCodePoints"
    assert second["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///a.py"}
