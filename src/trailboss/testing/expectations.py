"""Expectations around statements of a test: what must happen in the blocks that they build."""

import re
from collections.abc import Mapping
from typing import Any

from trailboss.testing.base_chain import BaseChain
from trailboss.testing.observations import (
    BalanceChanges,
    EventExpectation,
    FailureReason,
    FireExpectation,
    RevertExpectation,
    event_value,
    fault_of_reason,
    party_address,
)
from trailboss.testing.parties import Party


class Expectations(BaseChain):
    """Calls for ``with``: each is checked at its end, over the blocks that were built within. Decision: D-121.

    What fails raises AssertionError, which shows expected beside what happened. They nest, and they begin between two
    blocks, not within `one_block`. If the statements within raise, that is what the test ends with.

    Raises:
        TypeError, ValueError: At the line of the test, for an expectation that makes no sense: values of a wrong type,
            negative numbers, nothing to compare; and at its end if no block was built within.
    """

    def expect_revert(
        self, reason: str | int | re.Pattern[str] | None = None, *, actor: Party | None = None
    ) -> RevertExpectation:
        """Expect exactly one transaction or fire to fail, be it reverted or refused.

        Args:
            reason: A code, as ``"E1210"`` or 1210; a slug, as ``"pvm_error"``; other text that the message contains; a
                pattern to be found in it; None for any.
            actor: Only of this actor; its receipt is that of the transaction or fire, not of a nested call.

        Returns:
            An object that has the ``receipt`` afterwards. A `RevertedError` from within counts as a failure.
        """
        self._outbox.check_closed("expect a failure")
        fault = fault_of_reason(reason)
        if fault is not None:
            raise fault
        address = None if actor is None else party_address("expect_revert", actor)
        return RevertExpectation(self, FailureReason(reason), address)

    def expect_event(
        self, name: str, *, emitter: Party | None = None, data: Any = None, times: int = 1
    ) -> EventExpectation:
        """Expect an event so many times.

        Args:
            name: Its name, as ``"timer.fired"``.
            emitter: Only of this actor.
            data: Only with these fields, a dict of some of them; accounts and actors stand for their addresses. Text,
                a list or bytes are the whole data. None for any.
            times: How often, exactly; 0 for never.

        Returns:
            An object that has the ``events`` afterwards.
        """
        self._outbox.check_closed("expect an event")
        if not isinstance(name, str) or not name:
            raise TypeError(f"expect_event({name!r}): the name of an event is text")
        _check_count("expect_event", "times", times)
        if data is not None and data in ({}, []):
            raise ValueError(f"expect_event(data={data!r}) compares nothing: leave it out, or name a field")
        try:
            wanted = event_value(data)
        except TypeError as error:
            raise TypeError(f"expect_event(data=…): {error}") from None
        address = None if emitter is None else party_address("expect_event", emitter)
        return EventExpectation(self, name, address, wanted, times)

    def expect_fires(
        self,
        count: int = 1,
        *,
        actor: Party | None = None,
        timer_id: bytes | None = None,
        reverted: bool | None = False,
        within: int | None = None,
    ) -> FireExpectation:
        """Expect so many timers to fire.

        Args:
            count: How many fires, exactly; 0 for none.
            actor: Only fires that run this actor.
            timer_id: Only those of this timer.
            reverted: Whether the fires revert; None for either.
            within: Only those in the first so many blocks, at least 1; None for all. It builds no block itself.

        Returns:
            An object that has the ``receipts`` of the fires afterwards.
        """
        self._outbox.check_closed("expect fires")
        _check_count("expect_fires", "count", count)
        if within is not None:
            _check_count("expect_fires", "within", within, 1)
        if timer_id is not None and not isinstance(timer_id, bytes):
            raise TypeError(f"expect_fires(timer_id={timer_id!r}): give the 32 bytes that `timers` and events have")
        if reverted not in (True, False, None):
            raise TypeError(f"expect_fires(reverted={reverted!r}): True, False, or None for either")
        address = None if actor is None else party_address("expect_fires", actor)
        return FireExpectation(self, address, timer_id, count=count, reverted=reverted, within=within)

    def balance_changes(self, expected: Mapping[Any, int | None], *, with_fees: bool = True) -> BalanceChanges:
        """Expect balances to change by so much, and report by how much they have.

        Args:
            expected: Change in base units, with its sign, by account, actor or address; None for one that is only
                reported.
            with_fees: Whether the fees that a party pays for execution count; without them it is compared as if
                execution were free.

        Returns:
            An object that has the changes, within and afterwards, as ``changes[alice]``, and the fees of each party,
            afterwards, as ``fees[alice]``.
        """
        self._outbox.check_closed("expect changes of balances")
        if not isinstance(expected, Mapping) or not expected:
            raise TypeError(f"balance_changes({expected!r}): give a dict from accounts or actors to base units")
        wanted: dict[bytes, int | None] = {}
        for party, change in expected.items():
            address = party_address("balance_changes", party)
            if address in wanted:
                raise ValueError(f"balance_changes names {party!r} twice")
            if change is not None and type(change) is not int:
                raise TypeError(f"balance_changes: {change!r} is no integer of base units, for {party!r}")
            wanted[address] = change
        return BalanceChanges(self, wanted, with_fees=with_fees)


def _check_count(call: str, name: str, count: object, least: int = 0) -> None:
    if type(count) is not int:
        raise TypeError(f"{call}({name}={count!r}): an integer")
    if count < least:
        raise ValueError(f"{call}({name}={count}): at least {least}")
