"""What clients send to the members of a network in a schedule, and what hostile proposers make of it.

The calls are those of the random histories under `tests.model`, so all four mechanisms, governance, failing and
self-rescheduling timers come up; here each is signed for the state of the member that it is sent to.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from tests.model.auction_histories import auction_history
from tests.model.globalbox_histories import globalbox_history
from tests.model.histories import BALANCES, Call, Dice, History, history
from tests.model.lane_histories import lane_history
from tests.model.session import AMOUNT_MAX, BAD_SOURCE, GHOST, KEYS, PROPOSER, SALT, USER_ADDRESSES, names_of
from tests.network.nodes import VALIDATORS
from trailboss.chain.reader import ChainReader
from trailboss.codec.wire import decode_transaction, encode_transaction
from trailboss.execution.genesis import Genesis
from trailboss.mempool import Mempool
from trailboss.model import transactions as wire
from trailboss.model.timers import Timer
from trailboss.model.transactions import UNSIGNED, Transaction, sign_transaction

HISTORIES: Mapping[str, Callable[[Dice, int], History]] = MappingProxyType(
    {"fifo": history, "lane": lane_history, "auction": auction_history, "globalbox": globalbox_history}
)
GENESIS_MS = 1_000_000
IDLE_MAX = 3
SUPPLY = sum(BALANCES.values())

CLOCK = """
def later(blocks):
    pvm_host.schedule_timer_ex(pvm_host.block_height() + blocks, b"", gas_limit=30_000)

def init(payload):
    later(2)

def handle_timer(payload):
    beats = pvm_host.get_state(b"beats") or b""
    pvm_host.set_state(b"beats", beats + b"x")
    pvm_host.set_state(b"time", str(pvm_host.context()["timestamp_ms"]).encode())
    later(1 + len(beats) % 3)
    if len(beats) % 4 == 3:
        raise ValueError("every fourth beat fails, and the clock stands")

def tick(payload):
    later(9)

def crowd(payload):
    for _ in range(3):
        later(2)

def go(payload):
    later(1)
"""
LOTTERY = """
def init(payload):
    crowd(payload)

def handle_timer(payload):
    drawn = pvm_host.randomness(b"draw")
    pvm_host.set_state(b"drawn", drawn)
    pvm_host.emit_event("drawn", drawn)
    pvm_host.schedule_timer_ex(pvm_host.block_height() + 1 + drawn[0] % 4, payload, gas_limit=25_000)

def crowd(payload):
    for place in range(4):
        pvm_host.schedule_timer_ex(pvm_host.block_height() + 2 + place % 2, b"%d" % place, gas_limit=25_000)

def spend(payload):
    raise ValueError("never")
"""
PYTHON_SOURCES = (CLOCK, LOTTERY, CLOCK + "\n# another address\n")


def schedule_history(dice: Dice, blocks_max: int) -> History:
    """Throw what clients do in one schedule; some actors are Python, most are scripts."""
    found = HISTORIES[dice.pick(tuple(HISTORIES))](dice, blocks_max)
    if len(found.sources) == len(PYTHON_SOURCES) and dice.often(30):
        return found._replace(sources=PYTHON_SOURCES)
    return found


def is_python(history: History) -> bool:
    """Return whether its actors run on the native engine."""
    return history.sources == PYTHON_SOURCES


def schedule_genesis(history: History) -> Genesis:
    """Return the genesis of a network in which a history can happen."""
    return Genesis(
        chain_id=1,
        preset="minimal",
        mechanism=history.mechanism,
        proposer=PROPOSER,
        system_deployers=(USER_ADDRESSES["governor"],),
        accounts={USER_ADDRESSES[user]: balance for user, balance in BALANCES.items()},
        overrides={**history.overrides, "governance.genesis_timestamp_ms": GENESIS_MS},
        validators=VALIDATORS,
    )


def calls_by_height(history: History) -> list[tuple[Call, ...]]:
    """Return the calls of a history by height: deployments first, whatever their tips; idle stretches get shorter."""
    opening, *blocks = history.blocks
    assert isinstance(opening, tuple)
    found = [tuple(each for each in opening if (each.kind == "DeployActor") is wanted) for wanted in (True, False)]
    for block in blocks:
        found += [()] * min(block, IDLE_MAX) if isinstance(block, int) else [block]
    return found


class Clients:
    """The clients of a network."""

    def __init__(self, history: History) -> None:
        self._sources = [source.encode() for source in history.sources]
        self.names = dict(names_of(self._sources))

    def sign(self, call: Call, view: ChainReader, mempool: Mempool, *, replaces: bool = False) -> bytes:
        """Return the wire bytes of a call, for the state and the mempool of a member.

        With ``replaces`` it has the nonce of the sender's last transaction that waits, and offers more.
        """
        sender = USER_ADDRESSES[call.user]
        factor = 2 if call.cap == "double" else 1
        caps = [basefee * factor - (call.cap == "low") for basefee in view.rules().user_basefees()]
        tips = call.tips
        nonce = mempool.next_nonce(view, sender) + (call.flaw == "nonce")
        waiting = mempool.of_sender(sender)
        if replaces and waiting:
            last = waiting[-1].transaction
            nonce = last.nonce
            caps = [2 * most for most in (last.max_fee_per_cycle, last.max_fee_per_cell)]
            tips = 2 * last.max_priority_fee_per_cycle + 1, 2 * last.max_priority_fee_per_cell
        transaction = Transaction(
            chain_id=2 if call.flaw == "chain" else 1,
            nonce=nonce,
            instruction=self._instruction(call, view),
            cycles_limit=call.cycles_limit,
            cells_limit=call.cells_limit,
            max_fee_per_cycle=caps[0],
            max_fee_per_cell=caps[1],
            max_priority_fee_per_cycle=tips[0],
            max_priority_fee_per_cell=tips[1],
        )
        signed = sign_transaction(transaction, KEYS[call.user])
        if call.flaw == "signature":
            signed = forged(signed)
        return encode_transaction(signed)

    def _instruction(self, call: Call, view: ChainReader) -> wire.Instruction:
        args = tuple(self._argument(each, view) for each in call.args)
        if call.kind == "DeployActor":
            code = self._sources[args[0]] if args[0] < len(self._sources) else BAD_SOURCE
            return wire.DeployActor(code=code, salt=SALT)
        if call.kind == "ExtendTimer":
            args = (args[0], view.height + 1 + args[1])
        instruction: wire.Instruction = getattr(wire, call.kind)(*args)
        return instruction

    def _argument(self, argument: Any, view: ChainReader) -> Any:
        if isinstance(argument, str) and argument.startswith("@"):
            return self.names[argument]
        if not isinstance(argument, tuple):
            return argument
        what, number = argument
        live = list(view.timers())
        if not live:
            return {"timer": bytes(32), "payer": bytes(GHOST), "cost": 1}[what]
        return {"timer": live[number % len(live)].timer_id, "payer": live[0].fee_payer}.get(
            what, _missing(live[0], view, number)
        )


def _missing(timer: Timer, view: ChainReader, more: int) -> int:
    """Return about what the payer of a timer lacks for its fire, and so much more."""
    cycle, cell = view.rules().user_basefees()
    cost = timer.gas_limit * cycle + view.rules().params.timers.max_cells_per_fire * cell
    return min(max(1, cost - view.balance(timer.fee_payer) + more), AMOUNT_MAX)


# Hostile proposals


def forged(transaction: Transaction) -> Transaction:
    """Return a transaction that another account than its sender has signed."""
    other = next(key for user, key in KEYS.items() if USER_ADDRESSES[user] != transaction.sender)
    return replace(transaction, signature=sign_transaction(transaction, other).signature)


def _changed(raw: bytes, **fields: Any) -> bytes:
    """Return a transaction with other fields, signed again."""
    transaction = decode_transaction(raw)
    user = next(user for user, address in USER_ADDRESSES.items() if address == transaction.sender)
    return encode_transaction(sign_transaction(replace(transaction, **fields), KEYS[user]))


def _numbered(raw: bytes, count: int, **fields: Any) -> list[bytes]:
    nonce = decode_transaction(raw).nonce
    return [_changed(raw, nonce=nonce + place, **fields) for place in range(count)]


HOSTILE: Mapping[str, Callable[[bytes, Sequence[bytes]], list[bytes]]] = MappingProxyType(
    {
        "twice": lambda raw, _: [raw, raw],
        "again": lambda raw, past: [raw, past[-1]] if past else [raw, raw],
        "swapped": lambda raw, _: _numbered(raw, 2)[::-1],
        "gap": lambda raw, _: _numbered(raw, 2)[1:],
        "cut": lambda raw, _: [raw, raw[:-1]],
        "longer": lambda raw, _: [raw + b"\x00"],
        "empty": lambda raw, _: [raw, b""],
        "noise": lambda raw, _: [bytes(range(200)), raw],
        "unsigned": lambda raw, _: [encode_transaction(replace(decode_transaction(raw), signature=UNSIGNED))],
        "forged": lambda raw, _: [encode_transaction(forged(decode_transaction(raw)))],
        "foreign": lambda raw, _: [_changed(raw, chain_id=2)],
        "cheap": lambda raw, _: [_changed(raw, max_fee_per_cycle=0, max_priority_fee_per_cycle=0)],
        "tight": lambda raw, _: [_changed(raw, cycles_limit=1)],
        "greedy": lambda raw, _: [_changed(raw, cycles_limit=10**9)],
        "poor": lambda raw, _: [_changed(raw, instruction=wire.Transfer(GHOST, AMOUNT_MAX))],
        "full": lambda raw, _: _numbered(raw, 85),
    }
)
"""What hostile proposers make of a transfer that could stand alone, and of what earlier blocks hold."""
