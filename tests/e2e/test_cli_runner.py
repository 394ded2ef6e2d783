"""`trailboss runner`, `jobs` and `reply` on a directory and on a node, and canned replies. Decision: D-113."""

from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.e2e.conftest import Ask, Run
from tests.e2e.test_cli_remote import running_node
from tests.integration.test_runner import ORACLE

FIRST_LINES = """\
job  kind  actor        asks                             sent in  state
1    http  {actor}…  https://weather.example/Laramie        {block}  open
"""


@pytest.mark.parametrize("kind", ["directory", "node"])
def test_jobs_wait_and_are_replied_to(run: Run, ask: Ask, tmp_path: Path, kind: str) -> None:
    """Refused without a runner, then listed, answered as text and as JSON, and answered once."""
    (tmp_path / "oracle.py").write_text(ORACLE)
    if kind == "directory":
        run("init", "--vm", "native")
        check(run, ask, "chain")
    else:
        with running_node("--pace", "auto", "--vm", "native") as url:
            check(run, ask, url)


def check(run: Run, ask: Ask, place: str) -> None:
    at = ("--chain", place)
    actor = ask("deploy", "oracle.py", "--value", "100cby", *at)["actor"]
    refused = run("call", actor, "ask", '"Laramie"', "--cbor", *at, status=1)
    assert "trailboss dev --runner, trailboss runner" in " ".join(refused.stderr.split())
    assert "the chain has no runner: start one with `trailboss runner`" in run("jobs", *at).stderr
    assert "takes jobs; at most 1,000 wait for a reply at a time" in run("runner", *at).stdout
    run("call", actor, "ask", '"Laramie"', "--cbor", *at)
    [job] = ask("jobs", *at)["jobs"]
    assert (job["job"], job["actor"], job["kind"], job["state"]) == (1, actor, "http", "open")
    assert run("jobs", *at).stdout == FIRST_LINES.format(actor=actor[:10], block=job["block"])
    told = run("reply", 1, '{"text": "sleet"}', "--from-json", *at, columns=200).stdout
    assert f"resumed  ask__resume of {actor}\n" in told
    assert "then     it waits for job 2 (llm)\n" in told
    assert ask("reply", 2, "wet\nand cold", *at)["status"] == "ok"
    assert ask("jobs", *at)["jobs"] == []
    both = ask("jobs", "--state", "all", "--actor", actor[:8], *at)["jobs"]
    assert [(each["job"], each["state"]) for each in both] == [(1, "answered"), (2, "answered")]
    assert "runner job 2 has had its reply in block" in run("reply", 2, "dry", *at, status=1).stderr
    for number in (9, 2**64):
        assert f"there is no runner job {number}" in run("reply", number, "dry", *at, status=1).stderr
    run("call", actor, "ask", '"Cody"', "--cbor", *at)
    assert ask("reply", 3, "--failure", "retries_exhausted", *at)["status"] == "ok"
    assert "none: jobs are refused" in run("runner", "--stop", *at).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reply", 1), "a reply has a value or --failure"),
        (("reply", 1, "x", "--failure", "retries_exhausted"), "a reply has a value or --failure"),
        (("reply", 1, "--failure", "because"), "there is no failure 'because'"),
        (("reply", 1, "x", "--from-json"), "the value is no JSON"),
        (("jobs", "--state", "done"), "there is no state 'done'"),
        (("runner", "--stop", "--jobs-max", 5), "both --jobs-max and --stop are given"),
    ],
)
def test_what_makes_no_sense_is_refused(
    run: Run, ask: Ask, tmp_path: Path, arguments: tuple[object, ...], words: str
) -> None:
    """By name, with what can be given instead."""
    (tmp_path / "oracle.py").write_text(ORACLE)
    run("init", "--vm", "native")
    run("runner")
    actor = ask("deploy", "oracle.py", "--value", "100cby")["actor"]
    run("call", actor, "ask", '"Laramie"', "--cbor")
    assert words in run(*arguments, status=2).stderr


def test_node_replies_as_its_file_says(run: Run, ask: Ask, tmp_path: Path) -> None:
    """The first that fits, each job once; what none fits waits for a reply by hand."""
    (tmp_path / "oracle.py").write_text(ORACLE)
    (tmp_path / "replies.toml").write_text(
        '[[reply]]\nkind = "http"\ncontains = "Laramie"\nvalue = {text = "sleet"}\n\n'
        '[[reply]]\nkind = "http"\ncontains = "Cody"\nfailure = "no_replacement_available"\n\n'
        '[[reply]]\nkind = "llm"\nvalue = "wet"\n'
    )
    with running_node("--pace", "auto", "--vm", "native", "--runner", str(tmp_path / "replies.toml")) as url:
        at = ("--chain", url)
        actor = ask("deploy", "oracle.py", "--value", "100cby", *at)["actor"]
        for city in ("Laramie", "Cody", "Casper"):
            run("call", actor, "ask", f'"{city}"', "--cbor", *at)
            await_answers(ask, url, city)
        jobs = ask("jobs", "--state", "all", *at)["jobs"]
        assert [(each["kind"], each["state"]) for each in jobs] == [
            ("http", "answered"), ("llm", "answered"), ("http", "answered"), ("http", "open"),
        ]  # fmt: skip
        run("reply", jobs[-1]["job"], "sun", *at)
        await_answers(ask, url, "")
        assert ask("jobs", *at)["jobs"] == []


def await_answers(ask: Ask, url: str, city: str) -> None:
    """Wait until no job waits but those that no reply fits."""
    end = monotonic() + 20
    while monotonic() < end:
        waiting = ask("jobs", "--chain", url)["jobs"]
        if len(waiting) == (city == "Casper"):
            return
        sleep(0.1)
    raise AssertionError(f"jobs wait: {waiting}")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[[reply]]\nkind = 5\nvalue = 1\n", "reply 1: Expected `str`, got `int`"),
        ('[[reply]]\nvalue = 1\n\n[[reply]]\nkind = "llm"\n', "reply 2: give either a value or a failure"),
        ('[[reply]]\nvalue = 1\nfailure = "retries_exhausted"\n', "reply 1: give either a value or a failure"),
        ('[[reply]]\nfailure = "because"\n', "reply 1: Invalid enum value 'because'"),
        ('[[reply]]\nvalue = 1\nurl = "x"\n', "reply 1: Object contains unknown field `url`"),
        (
            '[[reply]]\nkind = "lm"\nvalue = 1\n',
            "reply 1: there is no kind of runner job 'lm': the SDK asks for llm, http",
        ),
        ("[[reply]]\nvalue = 2026-01-01\n", "reply 1: canonical CBOR cannot carry this value"),
        ("[[reply]]\nfailure = 'retries_exhausted'\nattempts = 0\n", "reply 1: Expected `int` >= 1"),
        ("[reply]\nvalue = 1\n", "hold something else than tables [[reply]]"),
        ("reply = [1]\n", "hold something else than tables [[reply]]"),
        ("reply", "are not TOML"),
    ],
)
def test_file_of_replies_is_refused_before_the_node_runs(run: Run, tmp_path: Path, text: str, rule: str) -> None:
    """With the file, the number of the reply and the rule."""
    (tmp_path / "replies.toml").write_text(text)
    told = " ".join(run("dev", "--vm", "native", "--port", 0, "--runner", "replies.toml", status=1).stderr.split())
    assert rule in told
    assert "replies.toml" in told
