"""Somebody is called once a dry spell, by a command or a URL, and what goes wrong is said."""

import json
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from msgspec.structs import replace

from trailboss.cli import alerts as alerting
from trailboss.cli.alerts import Alert, Spells, parse_call
from trailboss.cli.errors import Mistake
from trailboss.forecast.watchtower import WatchedPayer
from trailboss.primitives.octets import Address

WITHIN = 10
PAYER = WatchedPayer(
    payer=Address(b"\x0a" * 20),
    balance=2**60,
    timers=2,
    has_more=False,
    fires_left=5,
    blocks_left=50,
    dry_at=150,
    required=9,
    available=8,
    unfunded=0,
    expired=0,
    reverted=0,
)
ALERT = Alert.of_near(PAYER, 100, WITHIN)


def seen(balance: int, fires: int | None, timers: int = 2) -> WatchedPayer:
    """Return the payer as it is seen some time."""
    return replace(PAYER, balance=balance, fires_left=fires, timers=timers)


# Once a dry spell


@pytest.mark.parametrize(
    ("looks", "called"),
    [
        ([seen(90, 11), seen(80, None)], [False, False]),
        ([seen(90, 11), seen(80, 10), seen(70, 9), seen(0, 0)], [False, True, False, False]),
        # Prices move, no money comes in.
        ([seen(80, 10), seen(80, 12), seen(80, 10)], [True, False, False]),
        # Money comes in, and not enough.
        ([seen(80, 10), seen(20, 2), seen(70, 8), seen(60, 7)], [True, False, False, False]),
        # Money comes in and is spent.
        ([seen(80, 10), seen(20, 2), seen(200, 20), seen(80, 10), seen(70, 9)], [True, False, False, True, False]),
        ([seen(80, 10), seen(900, None), seen(80, 10)], [True, False, True]),
    ],
)
def test_payer_is_called_for_once_a_dry_spell(looks: list[WatchedPayer], called: list[bool]) -> None:
    """The spell ends when money comes in that reaches beyond what is soon."""
    spells = Spells(WITHIN)
    assert [bool(list(spells.near([look]))) for look in looks] == called


def test_payer_that_ran_dry_is_called_for_again_when_money_has_come_in() -> None:
    """However little: its timers were gone, and it has scheduled new ones."""
    spells = Spells(WITHIN)
    assert spells.begin_dry(PAYER.payer)
    assert not spells.begin_dry(PAYER.payer)
    assert not list(spells.near([seen(7, None, timers=0)]))
    assert not list(spells.near([seen(7, 0)]))
    assert list(spells.near([seen(60, 6)])) == [seen(60, 6)]
    assert not spells.begin_dry(PAYER.payer)


def test_payers_have_spells_of_their_own() -> None:
    """One that has been called for does not hide another."""
    other = replace(PAYER, payer=Address(b"\x0b" * 20))
    spells = Spells(WITHIN)
    assert list(spells.near([PAYER])) == [PAYER]
    assert list(spells.near([PAYER, other])) == [other]


# How


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Return a command that writes what it gets into a file beside it."""
    path = tmp_path / "page me.py"
    path.write_text(
        f"#!{sys.executable}\n"
        "import json, os, pathlib, sys\n"
        "told = {k: v for k, v in os.environ.items() if k.startswith('TRAILBOSS_')}\n"
        "came = [sys.argv[1:], told, json.load(sys.stdin)]\n"
        "pathlib.Path(__file__).with_suffix('.json').write_text(json.dumps(came))\n"
        "sys.exit(3 if 'fail' in sys.argv else 0)\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_command_gets_the_facts_when_it_is_called(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In variables, and as JSON on stdin, large amounts with their text."""
    monkeypatch.delenv("TRAILBOSS_CHAIN", raising=False)
    assert parse_call(f"'{script}' -s 'runs dry'")(ALERT) == ""
    arguments, variables, document = json.loads(script.with_suffix(".json").read_text())
    assert arguments == ["-s", "runs dry"]
    assert document["payer"] == variables["TRAILBOSS_PAYER"] == str(PAYER.payer)
    assert document["balance_text"] == variables["TRAILBOSS_BALANCE"] == str(2**60)
    assert (document["alert"], variables["TRAILBOSS_ALERT"]) == ("near", "near")
    assert (document["fires_left"], variables["TRAILBOSS_FIRES_LEFT"]) == (5, "5")
    assert (document["blocks_left"], document["dry_at"], document["within"]) == (50, 150, WITHIN)
    assert document["timer_id"] is None
    assert "TRAILBOSS_TIMER_ID" not in variables


def test_failure_of_a_command_is_said(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its status, that it does not end, that it is gone."""
    assert parse_call(f"'{script}' fail")(ALERT) == f"{script} ended with status 3"
    call = parse_call(f"'{script}'")
    monkeypatch.setattr(alerting, "CALL_SECONDS", 0)
    assert call(ALERT) == f"{script} has not ended after 0 seconds, and was stopped"
    script.unlink()
    assert "cannot be run: No such file" in call(ALERT)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("./nowhere.sh", "there is no such program"),
        ("", "there is no such program"),
        ("'open", "is no command: No closing quotation"),
        ("ftp://localhost/x", "is no URL"),
        ("http://a:port", "is no URL"),
    ],
)
def test_call_is_refused_when_it_cannot_work(text: str, said: str) -> None:
    """Before anybody relies on it."""
    with pytest.raises(Mistake) as caught:
        parse_call(text)
    assert said in caught.value.what


@contextmanager
def listening(status: int) -> Iterator[tuple[str, list[Any]]]:
    """Answer with a status for as long as the block lasts; yield the URL, and the documents that come."""
    came: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(status)
            self.send_header("location", "http://127.0.0.1:9/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/page", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("status", [204, 307, 500])
def test_url_gets_the_facts_by_post(status: int) -> None:
    """Once; an answer that is no yes is said, and nobody goes elsewhere."""
    with listening(status) as (url, came):
        failure = parse_call(url)(ALERT)
    assert [document["balance_text"] for document in came] == [str(2**60)]
    assert failure == ("" if status == 204 else f"{url} answers {status}")
    assert parse_call(url)(ALERT).startswith(f"{url} cannot be reached: ")
