"""What the scenarios of Globalbox share: a puppet that has its calls, and short ways to set, read and compare."""

from typing import Any

from tests.integration.helpers import FUNDS, PUPPET, answers, perform, step
from trailboss.execution.globalbox.market import read_carried
from trailboss.execution.globalbox.records import find_ended, mailbox_entries, read_globalbox, timers_of_target
from trailboss.model.globalbox import CarriedHit, EndedTimer, GlobalboxState, MailboxEntry
from trailboss.model.terms import GlobalboxTerms
from trailboss.testing import ActorHandle, LocalChain, TestAccount

GAS = 100_000
BID = 1 << 96
"""A bid of one base unit per cycle in Q32.96."""
_CALLS = ("set_timeout", "set_state_watch", "update_timer")
BOX_PUPPET = PUPPET.replace("HOST = {", "HOST = {" + "".join(f'"{name}": pvm_host.{name}, ' for name in _CALLS))


def open_box(**params: int) -> LocalChain:
    """Return a chain with Globalbox, whose parameters are given as ``globalbox__max_fires_per_block=1``."""
    paths = {name.replace("__", "."): value for name, value in params.items()}
    return LocalChain(mechanism="globalbox", preset="minimal", params=paths)


def deploy_box(chain: LocalChain, sender: TestAccount | None = None, value: int = FUNDS) -> ActorHandle:
    """Deploy a puppet that has Globalbox's calls, from the first account unless told otherwise."""
    return chain.deploy(BOX_PUPPET, sender=sender or chain.accounts[0], value=value)


def set_timeout(owner: ActorHandle, due_height: int, payload: bytes = b"", **keywords: Any) -> bytes:
    """Set a height timer in a block of its own and return its id; its target is its owner unless told otherwise."""
    return _set(owner, "set_timeout", due_height, payload, keywords)


def watch(owner: ActorHandle, *keys: bytes, payload: bytes = b"", **keywords: Any) -> bytes:
    """Set a state watch likewise."""
    return _set(owner, "set_state_watch", list(keys), payload, keywords)


def _set(owner: ActorHandle, call: str, trigger: object, payload: bytes, keywords: dict[str, Any]) -> bytes:
    target = bytes(keywords.pop("target", owner.address))
    given = {"gas_limit": GAS} | keywords
    (timer_id,) = answers(perform(owner, step(call, target, trigger, payload, **given)))
    return timer_id


def put(actor: ActorHandle, name: bytes, value: bytes, **options: Any) -> None:
    """Have a puppet write a slot, in a block of its own."""
    answers(perform(actor, step("set_state", name, value), **options))


def key(actor: ActorHandle, name: bytes = b"") -> bytes:
    """Return the key of a puppet's slot, or the beginning of those of several, as watches know it."""
    return bytes(actor.address) + name


def terms(chain: LocalChain, timer_id: bytes) -> GlobalboxTerms:
    """Return what Globalbox keeps with a live timer."""
    timer = chain.chain.timer(timer_id)
    assert timer is not None
    assert isinstance(timer.terms, GlobalboxTerms)
    return timer.terms


def state(chain: LocalChain) -> GlobalboxState:
    """Return the running numbers."""
    return read_globalbox(chain.chain.store.read)


def mailbox(chain: LocalChain) -> list[MailboxEntry]:
    """Return the entries of the mailbox."""
    return list(mailbox_entries(chain.chain.store.read))


def carried(chain: LocalChain) -> tuple[CarriedHit, ...]:
    """Return the keys that count as modified in the next block besides."""
    return read_carried(chain.chain.store.read)


def ended(chain: LocalChain, timer_id: bytes) -> EndedTimer | None:
    """Return what is remembered of an ended timer."""
    return find_ended(chain.chain.store.read, timer_id)


def count_of(chain: LocalChain, target: ActorHandle) -> int:
    """Return how many live timers the state counts for a target."""
    return timers_of_target(chain.chain.store.read, target.address)


def crowded_box() -> LocalChain:
    """Return a chain in which several fires are queued, several in the mailbox, and several timers remembered."""
    chain = open_box(
        globalbox__max_fires_per_block=2,
        globalbox__max_fires_per_target=2,
        globalbox__hits_max=5,
        timers__max_cycles_per_fire=GAS,
        timers__lane_cycles_per_block=GAS,
    )
    actor = deploy_box(chain)
    here = bytes(actor.address)
    settings = [step("set_state_watch", here, [here + b"k"], b"", GAS)] * 9
    cancelled = answers(perform(actor, *settings))[:2]
    put(actor, b"k", b"1")
    for timer_id in cancelled:
        answers(perform(actor, step("cancel_timer", timer_id)))
    return chain
