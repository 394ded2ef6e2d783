"""Alerts of `trailboss watch`: when one is raised, once for each dry spell, and how it is sent. Decision: D-98."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from http.client import HTTPException
from typing import Final, Self

from msgspec import Struct

from trailboss.cli.errors import Mistake
from trailboss.cli.remote.client import JSON, connection_to, headers_for, reason_of, split_url
from trailboss.forecast.watchtower import WatchedPayer
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.json_values import to_json_value
from trailboss.views.text import counted

NEAR: Final = "near"
DRY: Final = "dry"
CALL_SECONDS: Final = 30  # time limit of a command or a POST
VARIABLE: Final = "TRAILBOSS_"
REDIRECTED: Final = 300


class Alert(Struct, frozen=True, kw_only=True):
    """An alert about a payer. Money is base units."""

    alert: str  # ``near``: it runs out of money soon; ``dry``: a timer has ended because it could not pay
    payer: Address  # the payer; at the first look, the actor that could not pay before it
    height: int  # the last block
    within: int  # how many fires ahead is soon
    balance: int  # its balance; of one that has run dry, what was there to take
    fires_left: int = 0  # fires that it pays for
    blocks_left: int | None = None  # blocks until one cannot be paid; None of one that has run dry
    dry_at: int | None = None  # the block in which it runs dry, or has done so; None at the first look
    required: int = 0  # what that fire needs to start
    actor: Address | None = None  # of one that has run dry: the owner of the timer
    timer_id: Hash32 | None = None  # of one that has run dry: the timer; None at the first look

    @classmethod
    def of_near(cls, found: WatchedPayer, height: int, within: int) -> Self:
        """Return the alert of a payer that runs out of money soon."""
        same = ("payer", "balance", "blocks_left", "dry_at", "required")
        facts = {name: getattr(found, name) for name in same}
        return cls(alert=NEAR, height=height, within=within, fires_left=found.fires_left or 0, **facts)

    def __str__(self) -> str:
        if self.alert == NEAR:
            fires, blocks = counted(self.fires_left, "more fire"), counted(self.blocks_left or 0, "more block")
            return f"{self.payer} pays for {fires}: it runs dry in block {self.dry_at:,}, after {blocks}"
        when = "lately" if self.dry_at is None else f"in block {self.dry_at:,}"
        return f"{self.payer} has run dry: a timer of {self.actor} ended unfunded {when}"


class _Spell(Struct):
    """A payer with an alert."""

    balance: int | None  # its lowest balance since; None before the first look
    is_dry: bool  # whether a timer has ended because it could not pay


class Spells:
    """The dry spells of payers: each has one alert, and ends when enough money comes in.

    Enough pays for more fires than are soon; of a payer that has run dry any money ends the spell.
    """

    def __init__(self, within: int) -> None:
        self._within = within
        self._spells: dict[bytes, _Spell] = {}

    def near(self, payers: Iterable[WatchedPayer]) -> Iterator[WatchedPayer]:
        """Yield the payers that run dry soon and have had no alert in this spell."""
        for each in payers:
            spell = self._spells.get(each.payer)
            if spell is not None and spell.balance is not None and each.balance > spell.balance:
                if each.timers and (spell.is_dry or not each.is_near(self._within)):
                    del self._spells[each.payer]
                    spell = None
            elif spell is not None:
                spell.balance = each.balance
            if spell is None and each.is_near(self._within):
                self._spells[each.payer] = _Spell(each.balance, is_dry=False)
                yield each

    def begin_dry(self, payer: bytes) -> bool:
        """Note that a payer has run dry, and return whether it has had no alert in this spell."""
        is_new = payer not in self._spells
        self._spells.setdefault(payer, _Spell(None, is_dry=True)).is_dry = True
        return is_new


Call = Callable[[Alert], str]  # sends an alert; returns what went wrong, or nothing


def parse_call(text: str) -> Call:
    """Return what sends alerts: a POST to a URL, or a command.

    Raises:
        Mistake: If it is neither.
    """
    if "://" in text:
        return _posting(text)
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise Mistake(f"{text!r} is no command: {error}", "close what is quoted") from None
    if not command or shutil.which(command[0]) is None:
        raise Mistake(
            f"--alert is {text!r}: there is no such program",
            "give a command, as './page.sh' or 'mail -s dry me', or a URL that takes a POST",
        )
    return _running(command)


def _posting(url: str) -> Call:
    try:
        target = split_url(url)
    except ValueError as error:
        raise Mistake(f"--alert {url!r} is no URL: {error}", "give another URL, or a command") from None
    path = f"{target.path or '/'}{f'?{target.query}' if target.query else ''}"

    def call(alert: Alert) -> str:
        body = json.dumps(to_json_value(alert)).encode()
        try:
            with closing(connection_to(target, CALL_SECONDS)) as connection:
                connection.request("POST", path, body, headers_for(target, JSON))
                status = connection.getresponse().status
        except (OSError, HTTPException) as error:
            return f"{url} cannot be reached: {reason_of(error)}"
        return f"{url} answers {status}" if status >= REDIRECTED else ""

    return call


def _running(command: list[str]) -> Call:
    def call(alert: Alert) -> str:
        facts = to_json_value(alert)
        variables = {f"{VARIABLE}{name.upper()}": str(value) for name, value in facts.items() if value is not None}
        try:
            # What it prints is not data of ours.
            given, env = json.dumps(facts).encode(), os.environ | variables
            ended = subprocess.run(command, input=given, stdout=2, env=env, timeout=CALL_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"{command[0]} has not ended after {CALL_SECONDS} seconds, and was stopped"
        except OSError as error:
            return f"{command[0]} cannot be run: {error.strerror}"
        return f"{command[0]} ended with status {ended.returncode}" if ended.returncode else ""

    return call
