"""Signatures of the blocks of a long replay, checked in another process ahead of the blocks that are being applied.

Threads gain little there, for they ask for the interpreter between two recoveries. A process has one of its own, and no
part in a verdict: what it has not found right, in whatever way it ends, is checked by itself. Decision: D-126
"""

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Final, Self, TypeVar

from trailboss.chain.processors import usable_processors
from trailboss.codec.wire import encode_transaction
from trailboss.crypto.claims import READY, is_right
from trailboss.model.transactions import UNSIGNED, Transaction, signing_hash
from trailboss.primitives.errors import Rejection

SIGNED_MIN: Final = 1_000  # signed transactions after which it starts; some 3,000 more make up for that
SIGNED_AHEAD: Final = 2_048  # signed transactions that are read before they are applied, and the rest of their block
ITEMS_AHEAD: Final = 256  # blocks likewise, so that idle ones do not pile up
UNANSWERED_MAX: Final = 1_024  # claims that it has got, above which it gets no more; and the rest of a block

_ROOM: Final = 2**18  # bytes on the way to it while this process does something else, if the system agrees

_Item = TypeVar("_Item")

# The program has the paths of this process, not its main module, which may be a script that replays a chain. It answers
# where it is asked, for anything may be printed to standard output while a Python starts.
_PROGRAM: Final = """
import os, sys
sys.path[:] = {path!r}
from trailboss.crypto.claims import answer_claims
answer_claims(lambda length: os.read(0, length), lambda octets: os.write(0, octets))
"""


def checked_ahead(
    items: Iterable[_Item], transactions_of: Callable[[_Item], Sequence[Transaction]]
) -> Generator[tuple[_Item, bool], None, None]:
    """Yield items, each with whether all signatures of its signed transactions are right; False says nothing.

    Items are read ahead, and an error among them comes where it would come otherwise. Close it: its process ends then.
    """
    source, signed = iter(items), 0
    with ExitStack() as stack:
        worker: _Worker | None = None
        for item in source:
            yield item, False
            if signed < SIGNED_MIN:
                signed += sum(each.signature != UNSIGNED for each in transactions_of(item))
                if signed >= SIGNED_MIN and usable_processors() > 1:
                    # Where it cannot be started, nothing is read ahead, and threads go on.
                    with suppress(OSError):
                        worker = stack.enter_context(_Worker())
            elif worker is not None and worker.has_answered(len(READY)):
                worker.take(len(READY))
                yield from _asked(source, transactions_of, worker)  # all that is left


def _asked(
    source: Iterator[_Item], transactions_of: Callable[[_Item], Sequence[Transaction]], worker: "_Worker"
) -> Iterator[tuple[_Item, bool]]:
    checks = _Checks(worker)
    ahead: deque[tuple[_Item, _Claims]] = deque()
    signed, failure = 0, None
    while True:
        try:
            while len(ahead) < 2 or (signed < SIGNED_AHEAD and len(ahead) < ITEMS_AHEAD):
                item = next(source)
                claims = checks.ask(transactions_of(item))
                ahead.append((item, claims))
                signed += claims.count
        except StopIteration:
            break
        except Exception as error:  # noqa: BLE001  # whatever it is, it must not come before what was read before it
            failure = error
            break
        item, claims = ahead.popleft()
        signed -= claims.count
        yield item, checks.vouch_for(claims)
    for item, claims in ahead:
        yield item, checks.vouch_for(claims)
    if failure is not None:
        raise failure


class _Claims:
    """What the signed transactions of an item claim; nothing if one of them cannot be signed at all."""

    def __init__(self, transactions: Sequence[Transaction]) -> None:
        self.unsent: list[bytes] = []
        self.are_right = True  # as far as this process has looked
        self.is_sent = False  # whether the worker has got the others
        with suppress(Rejection):
            self.unsent = list(_claims_of(transactions))
        self.count = len(self.unsent)


def _claims_of(transactions: Sequence[Transaction]) -> Iterator[bytes]:
    for transaction in transactions:
        if transaction.signature != UNSIGNED:
            encode_transaction(transaction)  # which refuses a width that would displace the claims behind it
            digest = signing_hash(transaction)
            yield digest + transaction.signature + transaction.sender
            for address, signature in transaction.additional_signers:
                yield digest + signature + address


class _Checks:
    """The claims of items in their order: the worker gets them from the front, and this process takes from the back."""

    def __init__(self, worker: "_Worker") -> None:
        self._worker = worker
        self._unsent: deque[_Claims] = deque()

    def ask(self, transactions: Sequence[Transaction]) -> _Claims:
        """Return what transactions claim, which is looked at from now on."""
        claims = _Claims(transactions)
        if claims.count:
            self._unsent.append(claims)
            self._send()
        return claims

    def vouch_for(self, claims: _Claims) -> bool:
        """Return whether the claims of the next item are right, and there are any; without the worker's word, False."""
        if not claims.count:
            return False
        self._send()
        while not (claims.is_sent and self._worker.has_answered(len(claims.unsent))):
            own = next((each for each in reversed(self._unsent) if each.unsent), None)
            if own is not None:
                own.are_right &= is_right(own.unsent.pop())
            else:
                self._worker.wait()
            self._send()
        return self._worker.take(len(claims.unsent)) and claims.are_right

    def _send(self) -> None:
        while self._unsent and self._worker.unanswered < UNANSWERED_MAX:
            claims = self._unsent.popleft()
            claims.is_sent = True
            self._worker.ask(b"".join(claims.unsent), len(claims.unsent))


class _Worker:
    """A process that looks at claims. It ends with its context; and with this process, which ends its input."""

    def __init__(self) -> None:
        # Few commands replay so much.
        from socket import SO_SNDBUF, SOL_SOCKET, socketpair  # noqa: PLC0415
        from subprocess import DEVNULL, Popen  # noqa: PLC0415

        self.unanswered = len(READY)
        self._unsent, self._verdicts = bytearray(), bytearray()
        self._has_ended = False
        command = [sys.executable, "-I", "-c", _PROGRAM.format(path=sys.path)]
        self._channel, other_end = socketpair()
        with ExitStack() as stack, other_end:
            stack.enter_context(self._channel)
            self._channel.setsockopt(SOL_SOCKET, SO_SNDBUF, _ROOM)
            self._channel.setblocking(False)
            # In a group of its own, for an interrupt from the keyboard is this process's to handle.
            process = Popen(command, stdin=other_end.fileno(), stdout=DEVNULL, stderr=DEVNULL, process_group=0)
            stack.callback(process.wait)
            stack.callback(process.kill)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def ask(self, claims: bytes, count: int) -> None:
        """Pass claims on, or as many of them as there is room for at once."""
        self.unanswered += count
        self._unsent += claims
        self._exchange()

    def has_answered(self, count: int) -> bool:
        """Return whether the next claims need no waiting for: there are verdicts, or never will be."""
        self._exchange()
        return self._has_ended or len(self._verdicts) >= count

    def take(self, count: int) -> bool:
        """Return whether all of the next claims have been found right."""
        verdicts = bytes(self._verdicts[:count])
        del self._verdicts[:count]
        return verdicts == READY * count

    def wait(self) -> None:
        """Wait until there is something to exchange."""
        from select import POLLIN, POLLOUT, poll  # noqa: PLC0415

        waiting = poll()
        waiting.register(self._channel, POLLIN | POLLOUT if self._unsent else POLLIN)
        waiting.poll()

    def _exchange(self) -> None:
        """Send and receive what can be at once."""
        try:
            with suppress(BlockingIOError):
                while self._unsent:
                    del self._unsent[: self._channel.send(self._unsent)]
            with suppress(BlockingIOError):
                while octets := self._channel.recv(_ROOM):
                    self._verdicts += octets
                    self.unanswered -= len(octets)
                raise ConnectionResetError
        except OSError:
            # It takes whatever it gets, and answers nothing.
            self._has_ended, self.unanswered = True, 0
            self._unsent.clear()
