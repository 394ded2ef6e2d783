"""The length of two trips through the source: functions, files and calls of `trailboss` that Python enters.

Run it: ``python -m benchmarks.walk``; ``--functions`` lists every function of the transfer as well.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

from msgspec import Struct

import trailboss
from trailboss.chain.drafts import draft_transaction
from trailboss.codec.wire import decode_transaction, encode_transaction
from trailboss.model.transactions import Transfer
from trailboss.testing import LocalChain

ROOT: Final = str(Path(trailboss.__file__).parent)
CBY: Final = 10**9
FIRE_AHEAD: Final = 3
ACTOR: Final = f"""
def arm(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + {FIRE_AHEAD}, b"tick", gas_limit=200_000)


def handle_timer(payload):
    pvm_host.set_state(b"last", payload)
"""
NOT_OURS: Final = ("<module>", "<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
"""Code without a name of its own is a part of the function around it."""


class Walk(Struct, frozen=True):
    """What one trip enters.

    Attributes:
        calls: Times that each function, file and name, is entered.
    """

    calls: Counter[tuple[str, str]]

    def files(self) -> set[str]:
        """Return the files that it enters."""
        return {path for path, _ in self.calls}


def walked(trip: Callable[[], object]) -> Walk:
    """Make a trip and return what it enters."""
    calls: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name not in NOT_OURS:
            calls[code.co_filename[len(ROOT) + 1 :], code.co_qualname] += 1

    sys.setprofile(note)
    try:
        trip()
    finally:
        sys.setprofile(None)
    return Walk(calls)


def transfer() -> Walk:
    """Walk with one transfer, from its bytes to its receipt."""
    with LocalChain() as chain:
        alice, bob = chain.accounts[:2]
        chain.transfer(bob, CBY, sender=alice)  # What happens once only is left out.
        signed = draft_transaction(chain.chain, Transfer(bob.address, CBY), alice.private_key)
        octets = encode_transaction(signed)
        return walked(lambda: chain.submit(decode_transaction(octets)))


def fire(mechanism: str) -> Walk:
    """Walk with the block that fires one timer."""
    with LocalChain(mechanism=mechanism) as chain:
        actor = chain.deploy(ACTOR, sender=chain.accounts[0], value=100 * CBY)
        actor.call("arm", b"", sender=chain.accounts[0], check=True)
        chain.mine(FIRE_AHEAD)  # What happens once only is left out.
        actor.call("arm", b"", sender=chain.accounts[0], check=True)
        chain.mine(FIRE_AHEAD - 1)
        found = walked(chain.mine)
        assert actor.storage[b"last"] == b"tick"
        return found


def main() -> None:
    """Print the length of the trips."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walk")
    parser.add_argument("--functions", action="store_true", help="list what the transfer enters")
    arguments = parser.parse_args()
    trips = {"transfer": transfer(), "fire, fifo": fire("fifo"), "fire, lane": fire("lane")}
    sys.stdout.write(f"{'trip':<12}{'files':>8}{'functions':>12}{'calls':>8}\n")
    for name, walk in trips.items():
        sys.stdout.write(f"{name:<12}{len(walk.files()):>8}{len(walk.calls):>12}{walk.calls.total():>8}\n")
    if arguments.functions:
        for (path, function), calls in sorted(trips["transfer"].calls.items()):
            sys.stdout.write(f"{calls:>5}  {path}  {function}\n")


if __name__ == "__main__":
    main()
