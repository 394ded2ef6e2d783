"""Accounts and actors as people look at them, and the slots of an actor a page at a time."""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Final

from msgspec import Struct

from trailboss.chain.development import DEPLOYER, PROPOSER, account_name, development_account
from trailboss.chain.reader import ChainReader
from trailboss.execution.genesis import Genesis
from trailboss.model.configs import amount_of
from trailboss.primitives.octets import Address, Hash32
from trailboss.state.keys import ACCOUNTS, STORAGE, code_key, storage_range
from trailboss.state.slots import decode_slot
from trailboss.views.mechanism.globalbox_records import mailbox_of
from trailboss.views.mechanism.registry import views_for

LABEL_MAX: Final = 24  # characters of a label
SOURCE_SEARCHED: Final = 65_536  # bytes of a source in which a class is looked for
_CLASS: Final = re.compile(rb"^class[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
NO_ACCOUNT = "none"
PLAIN_ACCOUNT = "account"
ACTOR = "actor"


class Holder(Struct, frozen=True):
    """An account and what it holds."""

    address: Address  # its address
    name: str | None  # of a development account
    kind: str  # ``account``, ``actor``, or ``none`` if the chain has no such account
    balance: int  # base units
    nonce: int  # transactions it has sent
    timers: int  # live timers it owns


class ActorView(Struct, frozen=True, kw_only=True):
    """An actor."""

    address: Address  # its address
    code_hash: Hash32  # keccak-256 of its source
    owner: Address  # who deployed it
    balance: int  # base units
    nonce: int  # transactions it has sent: none
    timers: int  # live timers it owns
    schedules: int  # timers that it has ever scheduled
    agent: Address | None  # actor that prices its timers, its gas bidding agent; None for none
    recent_fires: int  # fires of its timers within the fairness window of the timer lane
    mailbox_count: int  # entries for it that wait in the mailbox of Globalbox


class StoragePage(Struct, frozen=True, kw_only=True):
    """Some of an actor's slots, in the order of their hashed names."""

    storage: dict[bytes, bytes]  # values by name
    next_cursor: Hash32 | None  # where the next page begins; None if there is none


def known_names(genesis: Genesis) -> dict[bytes, str]:
    """Return the names of the development accounts that a chain started with, by address."""
    if not genesis.development:
        return {}
    names = {}
    index = 0
    while (account := development_account(account_name(index))).address in genesis.accounts:
        names[bytes(account.address)] = account.name
        index += 1
    for account in map(development_account, (DEPLOYER, PROPOSER)):
        names[bytes(account.address)] = account.name
    return names


def holder_of(chain: ChainReader, address: Address, names: Mapping[bytes, str]) -> Holder:
    """Return what an account holds; one that is not there holds nothing."""
    account, name = chain.account(address), names.get(address)
    if account is None:
        return Holder(address, name, NO_ACCOUNT, 0, 0, 0)
    kind = ACTOR if account.code_hash else PLAIN_ACCOUNT
    return Holder(address, name, kind, amount_of(account.balance), account.nonce, account.timer_count)


def actor_view(chain: ChainReader, address: Address) -> ActorView | None:
    """Return an actor, or None. Complexity: under Globalbox O(entries of the mailbox), else O(1)."""
    account = chain.account(address)
    if account is None or not account.code_hash:
        return None
    return ActorView(
        address=address,
        code_hash=Hash32(account.code_hash),
        owner=Address(account.owner),
        balance=amount_of(account.balance),
        nonce=account.nonce,
        timers=account.timer_count,
        schedules=account.timer_nonce,
        agent=Address(account.agent) if account.agent else None,
        recent_fires=account.recent_fires,
        mailbox_count=len(mailbox_of(chain, address)) if views_for(chain).has_mailbox else 0,
    )


def storage_page(chain: ChainReader, address: Address, limit: int, cursor: Hash32 | None = None) -> StoragePage:
    """Return some of the slots of an actor; none if it has none, or is not there. Complexity: O(limit)."""
    lower, upper = storage_range(address)
    rows = list(islice(chain.store.iterate(STORAGE, lower + (cursor or b""), upper), limit + 1))
    following = Hash32(rows[limit][0][len(lower) :]) if len(rows) > limit else None
    return StoragePage(storage=dict(decode_slot(octets) for _, octets in rows[:limit]), next_cursor=following)


def source_of(chain: ChainReader, code_hash: bytes) -> bytes | None:
    """Return the source that has a hash, as it was deployed; None if the chain has none."""
    return chain.store.read(code_key(code_hash))


def label_of(source: bytes) -> str:
    r"""Return the name of the first class in a source, which its author chose; empty if there is none.

    >>> label_of(b"import pvm_host\n\nclass Clock:\n"), label_of(b"def tick(payload): ...")
    ('Clock', '')
    """
    found = _CLASS.search(source, 0, SOURCE_SEARCHED)
    name = "" if found is None else found[1].decode("ascii")
    return name if len(name) <= LABEL_MAX else f"{name[: LABEL_MAX - 1]}…"


def account_count(chain: ChainReader) -> int:
    """Return how many accounts and actors there are. Complexity: O(1)."""
    return chain.store.count(ACCOUNTS)
