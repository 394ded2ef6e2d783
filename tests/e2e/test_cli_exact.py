"""Amounts above 2⁵³ - 1 that commands print with ``--json`` have their text beside them."""

import json
from pathlib import Path

from tests.e2e.conftest import Run
from tests.unit.codec.test_exact import lacking

RICH = 2**100 + 1


def test_command_line_prints_texts_when_it_prints_json(run: Run) -> None:
    """As the node does, of a directory; refusals likewise."""
    run("init", "chain")
    run("set-balance", "3", str(RICH))
    asked = [
        ("balance",),
        ("status",),
        ("runway", "3"),
        ("events",),
        ("block", "1"),
        ("params",),
        ("prove", "timers", "0", str(2**64 - 1)),
    ]
    printed = {words: run(*words, "--json").stdout for words in asked}
    assert [each for text in printed.values() for each in lacking(json.loads(text))] == []
    assert f'"balance_text": "{RICH}"' in printed["balance",]
    refused = run("send", "4", str(2**120), "--json", status=1)
    assert lacking(json.loads(refused.stderr or refused.stdout)) == []


def test_proof_holds_when_it_was_printed_with_texts(run: Run) -> None:
    """The texts are no part of it."""
    run("init", "chain")
    root = json.loads(run("status", "--json").stdout)["state_root"]
    proof = run("prove", "timers", "0", str(2**64 - 1), "--json").stdout
    assert '"last_text"' in proof
    Path("proof.json").write_text(proof, encoding="utf-8")
    run("verify-proof", "proof.json", "--root", root)
