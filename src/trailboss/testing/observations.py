"""What expectations observe: the receipts, events and balances of the blocks built within a ``with``.

Each class here checks one kind of expectation; `trailboss.testing.expectations` makes them. Decision: D-121
"""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from msgspec import Struct

from trailboss.model.blocks import Origin
from trailboss.model.events import TIMER_ENDINGS, TIMER_SCHEDULED
from trailboss.primitives.errors import ErrorObject, Rejection, RejectionReason, TrailbossError
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import format_cby
from trailboss.testing.base_chain import BaseChain
from trailboss.testing.differences import cut_lines, field_lines, money_text, value_text
from trailboss.testing.parties import ActorHandle, RevertedError, TestAccount, address_of_party
from trailboss.views import Event, Receipt
from trailboss.views.labels import labelled, labels_in_use, use_labels
from trailboss.views.text import counted

CODES: Final = frozenset(reason.code for reason in RejectionReason)
SLUGS: Final = frozenset(reason.slug for reason in RejectionReason)
EXPLAINED_MAX: Final = 3  # timers that did not fire, and events that are not quite right, that are explained
REFUSED: Final = "refused"
_CODE: Final = re.compile(r"E(\d+)")
_PLAIN: Final = (bool, int, float, str, bytes, type(None))


def party_address(call: str, party: Any) -> Address:
    """Return the address of a party that an expectation names; TypeError at the line of the test if it is none."""
    try:
        return address_of_party(party)
    except Rejection:
        raise TypeError(f"{call}: {party!r} is no account, actor or address of 20 bytes") from None


def event_value(value: Any) -> Any:
    """Return a value as an event has it, accounts and actors as addresses; TypeError if no event can have it."""
    if isinstance(value, TestAccount | ActorHandle):
        return bytes(value.address)
    if isinstance(value, Mapping):
        return {name: event_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [event_value(item) for item in value]
    if not isinstance(value, _PLAIN):
        raise TypeError(f"{value!r:.80} is of type {type(value).__name__}, which no event can have")
    return value


def fault_of_reason(reason: Any) -> Exception | None:
    """Return why nothing can fail for a reason that a test gives, or None."""
    if isinstance(reason, bool) or not isinstance(reason, str | int | re.Pattern | None):
        return TypeError(f"expect_revert({reason!r}): give a code, a slug, a part of the message or a pattern")
    if reason == "":
        return ValueError("expect_revert('') is a part of every message: leave it out to expect any failure")
    code = FailureReason(reason).code
    if code is not None and code not in CODES:
        return ValueError(f"expect_revert({reason!r}): there is no error E{code}; docs/reference/errors.md lists all")
    return None


class FailureReason(Struct, frozen=True):
    """What a failure must be: a code, a slug, a part of its message, a pattern, or anything."""

    given: str | int | re.Pattern[str] | None

    @property
    def code(self) -> int | None:
        """The code, if it is one."""
        if isinstance(self.given, int):
            return self.given
        found = _CODE.fullmatch(self.given) if isinstance(self.given, str) else None
        return None if found is None else int(found[1])

    def matches(self, error: ErrorObject) -> bool:
        """Return whether it is what an execution failed with."""
        if self.given is None:
            return True
        if self.code is not None:
            return error.code == self.code
        if isinstance(self.given, re.Pattern):
            return self.given.search(f"E{error.code} {error.slug}: {error.what}") is not None
        return error.slug == self.given if self.given in SLUGS else str(self.given) in error.what

    def __str__(self) -> str:
        if self.given is None:
            return "for any reason"
        if self.code is not None:
            return f"with E{self.code}"
        if isinstance(self.given, re.Pattern):
            return f"with a message that matches {self.given.pattern!r}"
        return f"with {self.given}" if self.given in SLUGS else f"with a message that contains {self.given!r}"


class Observation:
    """The blocks that are built within a ``with``, and what must have happened in them."""

    def __init__(self, chain: BaseChain) -> None:
        self._chain = chain
        self._start, self._parent, self._refused = 0, b"", 0

    def __enter__(self) -> Self:
        chain = self._chain
        self._start, self._parent = chain.height, chain.block().hash
        self._refused = len(chain.refusals())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is not None and not self._is_part(error):
            return False
        use_labels(self._chain.labels)
        fault = self._fault()
        if fault:
            raise ValueError(fault) from None
        lines = self._findings()
        if lines:
            raise AssertionError(labelled("\n".join(lines))) from None
        return error is not None

    def _is_part(self, _error: BaseException) -> bool:
        """Whether an exception from within is what is expected, or may be."""
        return False

    @abstractmethod
    def _findings(self) -> list[str]:
        """Return the lines of the message if the expectation does not hold, else none."""

    def _fault(self) -> str:
        """Return why nothing can be said about the blocks within; empty if something can."""
        chain = self._chain
        if chain.height < self._start or chain.block(self._start).hash != self._parent:
            return f"block {self._start}, after which this expectation began, was reverted within"
        refused = self._refusals()
        if chain.height > self._start or (self._counts_refusals and refused):
            return ""
        why = f": {refused[0].summary()}" if refused else "; views have no receipt: look at their answer"
        return labelled(f"nothing happened within this expectation: no block was built{why}")

    _counts_refusals = False  # whether a refusal alone is something that the expectation is about

    def _refusals(self) -> list[Receipt]:
        return self._chain.refusals()[self._refused :]

    def _receipts(self) -> list[Receipt]:
        return self._chain.receipts(self._start + 1)


class RevertExpectation(Observation):
    """Exactly one failure of a transaction or fire."""

    _counts_refusals = True

    def __init__(self, chain: BaseChain, reason: FailureReason, actor: Address | None) -> None:
        super().__init__(chain)
        self._reason, self._actor = reason, actor
        self._found: Receipt | None = None

    @property
    def receipt(self) -> Receipt:
        """The receipt that failed; raises TrailbossError before the end of the ``with``."""
        if self._found is None:
            raise TrailbossError("the expectation is still open: read the receipt after its `with`")
        return self._found

    def _is_part(self, error: BaseException) -> bool:
        return isinstance(error, RevertedError)

    def _findings(self) -> list[str]:
        every = [*self._refusals(), *self._receipts()]
        ours = [each for each in every if self._actor in (None, each.actor)]
        found = [each for each in ours if each.error is not None and self._reason.matches(each.error)]
        if len(found) == 1:
            [self._found] = found
            return []
        whose = "" if self._actor is None else f" of {self._actor}"
        # What failed otherwise comes first, then what succeeded, then what other actors did.
        others = sorted(every, key=lambda each: (each not in found, each.error is None, each not in ours))
        lines = [f"  {each.summary()}" for each in others]
        hint = ["give actor= to mean one of them"] if found and self._actor is None else []
        return [
            f"expected: exactly one receipt{whose} fails {self._reason}",
            f"happened: {len(found) or 'none'} of {counted(len(every), 'receipt')}",
            *cut_lines(lines),
            *hint,
        ]


class EventExpectation(Observation):
    """An event so many times."""

    def __init__(self, chain: BaseChain, name: str, emitter: Address | None, data: Any, times: int) -> None:
        super().__init__(chain)
        self._name, self._emitter, self._data, self._times = name, emitter, data, times
        self.events: list[Event] = []
        """The events that were expected, once the ``with`` has ended."""

    def _findings(self) -> list[str]:
        every = self._chain.events(since=self._start + 1)
        self.events = [event for event in every if not self._differences(event)]
        if len(self.events) == self._times:
            return []
        wanted = "" if self._data is None else f" with {value_text(self._data)}"
        emitter = "" if self._emitter is None else f" of {self._emitter}"
        lines = [
            f"expected: {self._name}{emitter}{wanted}, {counted(self._times, 'time')}",
            f"happened: {counted(len(self.events), 'time')}",
            *cut_lines([f"  {event!r}" for event in self.events]),
        ]
        near = [event for event in every if event.name == self._name and event not in self.events]
        for event in sorted(near, key=lambda each: len(self._differences(each)))[:EXPLAINED_MAX]:
            lines.append(f"  {self._name} in block {event.block_height}, but")
            lines += (f"    {line}" for line in self._differences(event))
        others = Counter(event.name for event in every if event.name != self._name)
        if others and not self.events:
            lines.append("other events: " + ", ".join(f"{name} × {count}" for name, count in others.most_common()))
        elif not every:
            lines.append("there were no events at all")
        return lines

    def _differences(self, event: Event) -> list[str]:
        """Return how an event differs from the expected one; none if it is one."""
        if event.name != self._name:
            return [f"name: {event.name}"]
        lines = []
        if self._emitter not in (None, event.emitter):
            lines.append(f"emitter: expected {self._emitter}, was {event.emitter}")
        if isinstance(self._data, Mapping):
            lines += field_lines(self._data, event.data)
        elif self._data is not None and event.data != self._data:
            lines.append(f"data: expected {value_text(self._data)}, was {value_text(event.data)}")
        return lines


class FireExpectation(Observation):
    """So many fires of timers."""

    def __init__(
        self,
        chain: BaseChain,
        actor: Address | None,
        timer_id: bytes | None,
        *,
        count: int,
        reverted: bool | None,
        within: int | None,
    ) -> None:
        super().__init__(chain)
        self._actor, self._timer_id, self._count = actor, timer_id, count
        self._reverted, self._within = reverted, within
        self.receipts: list[Receipt] = []
        """The receipts of the fires that were expected, once the ``with`` has ended."""

    def _findings(self) -> list[str]:
        fires = [each for each in self._receipts() if each.origin == Origin.TIMER and self._is_ours(each)]
        self.receipts = [each for each in fires if self._is_as_expected(each)]
        if len(self.receipts) == self._count:
            return []
        whose = "" if self._actor is None else f" of {self._actor}"
        whose += "" if self._timer_id is None else f" of timer {Hash32(self._timer_id)}"
        how = {True: ", reverted", False: "", None: ", reverted or not"}[self._reverted]
        when = "" if self._within is None else f" within {counted(self._within, 'block')}"
        fires_words = counted(self._count, "fire")
        others = [each for each in fires if each not in self.receipts]
        return [
            f"expected: {fires_words}{whose}{how}{when}",
            f"happened: {len(self.receipts)}, in blocks {self._start + 1} to {min(self._last(), self._chain.height)}",
            *cut_lines([f"  {each.summary()}" for each in (*others, *self.receipts)]),
            *(self._missing() if len(fires) < self._count else []),
        ]

    def _is_ours(self, receipt: Receipt) -> bool:
        return self._actor in (None, receipt.actor) and self._timer_id in (None, receipt.timer_id)

    def _is_as_expected(self, receipt: Receipt) -> bool:
        return receipt.block_height <= self._last() and self._reverted in (None, not receipt.ok)

    def _last(self) -> int:
        return self._chain.height if self._within is None else self._start + self._within

    def _missing(self) -> list[str]:
        """Return why timers did not fire: those that ended otherwise within, and those that are live."""
        set_by = {event.timer_id: event.emitter for event in self._chain.events(TIMER_SCHEDULED)}
        ended = [
            event.timer_id
            for event in self._chain.events(since=self._start + 1)
            if TIMER_ENDINGS.get(event.name, "fired") != "fired" and event.timer_id is not None
        ]
        live = [timer.timer_id for timer in self._chain.timers()]
        ours = [each for each in (*ended, *live) if self._actor in (None, set_by[each])]
        lines = []
        for timer_id in [each for each in ours if self._timer_id in (None, each)][:EXPLAINED_MAX]:
            life = self._chain.explain(timer_id)
            label, said = life.lines()[-1]
            lines.append(f"  timer {labels_in_use().short(timer_id)} is {life.state}: {label}: {said}")
        return lines or ["  no timer ended otherwise, and none is live"]


class BalanceChanges(Observation):
    """By how much balances change."""

    def __init__(self, chain: BaseChain, expected: Mapping[bytes, int | None], *, with_fees: bool) -> None:
        super().__init__(chain)
        self._expected, self._with_fees = expected, with_fees
        self._before: dict[bytes, int] = {}
        self._after: dict[bytes, int] | None = None
        self.fees: _ByParty = _ByParty({})
        """Base units that each party paid for execution, once the ``with`` has ended."""

    def __enter__(self) -> Self:
        super().__enter__()
        self._before = self._balances()
        return self

    def __getitem__(self, party: Any) -> int:
        """Return the change of a party's balance so far, or within, in base units; KeyError for any other party."""
        address = address_of_party(party)
        now = self._balances() if self._after is None else self._after
        return now[address] - self._before[address]

    def __repr__(self) -> str:
        return labelled(", ".join(f"{Address(each)} {money_text(self[each])}" for each in self._expected))

    def _balances(self) -> dict[bytes, int]:
        return {address: self._chain.balance(address) for address in self._expected}

    def _findings(self) -> list[str]:
        self._after = self._balances()
        paid: Counter[bytes] = Counter(dict.fromkeys(self._expected, 0))
        for receipt in self._receipts():
            if receipt.payer in paid:
                paid[receipt.payer] += receipt.fee_paid
        self.fees = _ByParty(paid)
        counts = "fees included" if self._with_fees else "without fees"
        lines, is_wrong = [], False
        for address, expected in self._expected.items():
            change = self[address] + (0 if self._with_fees else paid[address])
            is_wrong |= expected not in (None, change)
            lines.append(self._line(address, change))
        return [f"balances changed otherwise than expected ({counts})", *lines] if is_wrong else []

    def _line(self, address: bytes, change: int) -> str:
        expected, fees = self._expected[address], self.fees[address]
        paid = f", {'of it' if self._with_fees else 'and'} {format_cby(fees)} CBY in fees" if fees else ""
        if expected is None or expected == change:
            return f"  {Address(address)}: {money_text(change)}{paid}{'' if expected is None else ', as expected'}"
        off, wanted = money_text(change - expected), money_text(expected)
        return f"  {Address(address)}: expected {wanted}, was {money_text(change)}{paid}; off by {off}"


class _ByParty(Struct, frozen=True):
    """Amounts by party."""

    amounts: Mapping[bytes, int]

    def __getitem__(self, party: Any) -> int:
        return self.amounts[address_of_party(party)]
