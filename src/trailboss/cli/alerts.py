"""Alerts of a watchtower: when somebody is called, once a dry spell, and how.

Decision: D-98
"""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Self

import httpx
from msgspec import Struct

from trailboss.cli.errors import Mistake
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.forecast.watchtower import WatchedPayer
from trailboss.views.json_values import to_json_value

NEAR: Final = "near"
DRY: Final = "dry"
CALL_SECONDS: Final = 30
"""As long as a command, or whoever answers at a URL, may take."""
VARIABLE: Final = "TRAILBOSS_"
REDIRECTED: Final = 300


class Alert(Struct, frozen=True, kw_only=True):
    """What somebody is called for. Money is base units.

    Attributes:
        alert: ``near``: its purse runs dry soon; ``dry``: a timer has ended because it could not pay.
        payer: Whose purse; at the first look, of an actor that could not pay before it, the actor.
        height: The last block.
        within: How many fires ahead is soon.
        balance: What it holds; of one that has run dry, what was there to take.
        fires_left: Fires that it pays for.
        blocks_left: Blocks until one finds too little; None of one that has run dry.
        dry_at: The block in which it does, or has done so; None at the first look.
        required: What that fire needs to start.
        actor: Of one that has run dry: the actor whose timer it was.
        timer_id: Likewise: the timer; None at the first look.
    """

    alert: str
    payer: Address
    height: int
    within: int
    balance: int
    fires_left: int
    blocks_left: int | None
    dry_at: int | None
    required: int
    actor: Address | None = None
    timer_id: Hash32 | None = None

    @classmethod
    def of_near(cls, found: WatchedPayer, height: int, within: int) -> Self:
        """Return the alert of a payer that runs dry soon."""
        return cls(
            alert=NEAR,
            payer=found.payer,
            height=height,
            within=within,
            balance=found.balance,
            fires_left=found.fires_left or 0,
            blocks_left=found.blocks_left,
            dry_at=found.dry_at,
            required=found.required,
        )

    @classmethod
    def of_dry(cls, found: WatchedPayer, height: int, within: int) -> Self:
        """Return the alert of an actor that has run dry before the first look."""
        return cls(
            alert=DRY,
            payer=found.payer,
            height=height,
            within=within,
            balance=found.balance,
            fires_left=0,
            blocks_left=None,
            dry_at=None,
            required=0,
            actor=found.payer,
        )

    def __str__(self) -> str:
        if self.alert == NEAR:
            fires = f"{self.fires_left:,} more fire{'' if self.fires_left == 1 else 's'}"
            return (
                f"{self.payer} pays for {fires}: it runs dry in block {self.dry_at:,}, after {self.blocks_left:,} more"
            )
        when = "lately" if self.dry_at is None else f"in block {self.dry_at:,}"
        return f"{self.payer} has run dry: a timer of {self.actor} ended unfunded {when}"


class _Spell(Struct):
    """A payer that somebody has been called for.

    Attributes:
        balance: The least that it has held since; None while it has not been looked at.
        is_dry: Whether a timer has ended for it.
    """

    balance: int | None
    is_dry: bool


class Spells:
    """Keeps who has been called for: once a dry spell, which ends when money comes in and reaches far enough.

    Far enough is beyond the fires that are soon; of a payer that has run dry any money ends the spell.
    """

    def __init__(self, within: int) -> None:
        """Begin with nobody.

        Args:
            within: Fires ahead that are soon.
        """
        self._within = within
        self._spells: dict[bytes, _Spell] = {}

    def near(self, payers: Iterable[WatchedPayer]) -> Iterator[WatchedPayer]:
        """Yield those of the payers, as they are now, that run dry soon and for whom nobody has been called."""
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
        """Take note that a payer has run dry, and return whether nobody has been called for it."""
        known = self._spells.get(payer)
        if known is None:
            self._spells[payer] = _Spell(None, is_dry=True)
            return True
        known.is_dry = True
        return False


Call = Callable[[Alert], str]
"""Calls somebody; returns what went wrong, or nothing."""


def parse_call(text: str) -> Call:
    """Return how somebody is called: by a POST to a URL, or by a command.

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
        scheme = httpx.URL(url).scheme
    except httpx.InvalidURL as error:
        raise Mistake(f"{url!r} is no URL: {error}", "give one that begins with http:// or https://") from None
    if scheme not in ("http", "https"):
        raise Mistake(f"{url!r} is not of HTTP", "give a URL that begins with http:// or https://, or a command")

    def call(alert: Alert) -> str:
        try:
            answer = httpx.post(url, json=to_json_value(alert), timeout=CALL_SECONDS, trust_env=False)
        except httpx.HTTPError as error:
            return f"{url} cannot be reached: {str(error) or type(error).__name__}"
        return f"{url} answers {answer.status_code}" if answer.status_code >= REDIRECTED else ""

    return call


def _running(command: list[str]) -> Call:
    def call(alert: Alert) -> str:
        facts = to_json_value(alert)
        told = {f"{VARIABLE}{name.upper()}": str(value) for name, value in facts.items() if value is not None}
        try:
            # What it prints is not data of ours.
            ended = subprocess.run(
                command,
                input=json.dumps(facts).encode(),
                stdout=2,
                env=os.environ | told,
                timeout=CALL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{command[0]} has not ended after {CALL_SECONDS} seconds, and was stopped"
        except OSError as error:
            return f"{command[0]} cannot be run: {error.strerror}"
        return f"{command[0]} ended with status {ended.returncode}" if ended.returncode else ""

    return call
