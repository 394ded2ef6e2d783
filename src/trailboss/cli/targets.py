"""What a command works on, found by what people type: the chain, accounts, actors, timers.

Each function raises `Mistake` for what it cannot read and `NotFound` for what is not there.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from msgspec import Struct

from trailboss.chain import development
from trailboss.cli.errors import Mistake, NotFound
from trailboss.cli.keys import find_key, read_key
from trailboss.crypto.signatures import address_of
from trailboss.primitives.errors import Rejection
from trailboss.primitives.octets import Address, Hash32
from trailboss.views.label_file import LABELS_NAME, read_labels
from trailboss.views.labels import LabelBook, labels_in_use, use_labels
from trailboss.views.timer_list import unknown_words

if TYPE_CHECKING:
    from trailboss.cli.directory_chain import DirectoryChain
    from trailboss.cli.remote.chain import RemoteChain

LABELS_VARIABLE: Final = "TRAILBOSS_LABELS"  # names the file of labels in place of the one in the directory
CANDIDATES_MAX: Final = 4  # candidates that a message about an ambiguous id names
LIST_ACCOUNTS: Final = "list accounts and actors with `trailboss balance`"
HEIGHT_DIGITS: Final = 20  # of a height at most
NAMES: Final = (
    development.DEPLOYER,
    development.PROPOSER,
    *map(development.account_name, range(development.ACCOUNTS_MAX)),
)
"""Names of development accounts, funded or not."""
_DIGITS: Final = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,64})")
_ADDRESS_DIGITS: Final = re.compile(r"0[xX]([0-9a-fA-F]{4,})")  # a shortened address has four digits at least
_URL: Final = re.compile(r"https?://|[A-Za-z0-9.-]+:[0-9]{1,5}/?$")
Found = TypeVar("Found", Address, Hash32)
OpenChain: TypeAlias = "DirectoryChain | RemoteChain"  # the chain of a command: both kinds have the same methods


class Signer(Struct, frozen=True):
    """The signer and payer of a transaction, with a private key of 32 bytes."""

    address: Address
    private_key: bytes


@contextmanager
def open_chain(place: str) -> Iterator[OpenChain]:
    """Open the chain of a directory, or of a node by its URL, for the length of a command."""
    if not is_url(place):
        with open_directory(place) as chain:
            yield chain
        return
    from trailboss.cli.remote.chain import RemoteChain  # noqa: PLC0415  # a command on a directory does without it

    use_labels(read_labels(label_path(place)) if LABELS_VARIABLE in os.environ else LabelBook())
    with closing(RemoteChain(node_url(place))) as remote:
        yield remote


def label_path(place: str) -> Path:
    """Return the file of the labels of a directory's chain, or of a node's if the environment names one."""
    if LABELS_VARIABLE in os.environ:
        return Path(os.environ[LABELS_VARIABLE])
    if is_url(place):
        what = f"{place} is a node: its labels are in a file of yours"
        raise Mistake(what, f"name the file in the environment, as {LABELS_VARIABLE}=labels.json")
    return Path(place) / LABELS_NAME


@contextmanager
def open_directory(place: str) -> Iterator["DirectoryChain"]:
    """Open the chain of a directory for a command that cannot work on a node."""
    if is_url(place):
        raise Mistake(f"{place} is a node: this command needs a chain's directory", "name the directory with --chain")
    if not Path(place).exists():
        raise NotFound(
            f"there is no chain at {Path(place)}",
            f"make one with `trailboss init {Path(place)}`, name another one with --chain, or a node with --url",
        )
    from trailboss.cli.directory_chain import DirectoryChain  # noqa: PLC0415  # help does without it

    with closing(DirectoryChain.open(Path(place))) as chain:
        use_labels(read_labels(label_path(place)))
        yield chain


def is_url(place: str) -> bool:
    """Return whether a place is a node's URL and not a directory.

    >>> [is_url(place) for place in ("http://localhost:4000", "localhost:4000", "chain", "./odd:1")]
    [True, True, False, False]
    """
    return _URL.match(place) is not None


def node_url(place: str) -> str:
    """Return the whole URL of a node; see `is_url`.

    >>> node_url("localhost:4000")
    'http://localhost:4000'
    """
    return place if "://" in place else f"http://{place}"


def resolve_address(text: str) -> Address:
    """Return the address of an account: in full, a label, or the name of a development account."""
    short = text.removeprefix("account ")
    name = short if short in (development.DEPLOYER, development.PROPOSER) else f"account {short}"
    labelled = labels_in_use().find(text)
    if labelled is not None and len(labelled) == Address.WIDTH:
        return Address(labelled)
    if name in NAMES:
        return development.development_account(name).address
    try:
        return Address.parse(text)
    except Rejection as rejection:
        raise Mistake(
            f"{text!r} is no account: {rejection.what}",
            "give an address, 0x and 40 hexadecimal digits, or the name of a development account: 0 to "
            f"{development.ACCOUNTS_MAX - 1}, deployer",
        ) from None


def resolve_signer(who: str | None, key: str | None) -> Signer:
    """Return the signer that ``--from`` and ``--private-key`` name.

    With neither it is the account of the project's key, else account 0.
    """
    private_key = read_key(key) if key is not None else find_key(Path.cwd()) if who is None else None
    if private_key is not None:
        try:
            owner = address_of(private_key)
        except Rejection as rejection:
            raise Mistake(f"the private key is none: {rejection.what}", "give another one") from None
        if who is None or resolve_address(who) == owner:
            return Signer(owner, private_key)
    address = resolve_address("0" if who is None else who)
    for account in map(development.development_account, NAMES):
        if account.address == address:
            return Signer(address, account.private_key)
    raise Mistake(
        f"the key of {address} is not known" + ("" if key is None else ": the private key given is another account's"),
        "give its key with --private-key, or send from a development account, "
        f"0 to {development.ACCOUNTS_MAX - 1} or deployer",
    )


def resolve_actor(chain: OpenChain, text: str) -> Address:
    """Return the address of an actor: in full, or the first digits of it if no other actor has the same."""
    match = _ADDRESS_DIGITS.fullmatch(text)
    if len(text) == 2 + 2 * Address.WIDTH or match is None:
        return resolve_address(text)
    actors = (Address(address) for address, account in chain.accounts() if account.code_hash)
    found = [address for address in actors if address.hex().startswith(match[1].lower())]
    if not found:
        raise NotFound(f"no actor's address begins with {text}", LIST_ACCOUNTS)
    return _only("actors", text, found)


def find_actor(chain: OpenChain, text: str) -> Address:
    """Return the address of an existing actor; see `resolve_actor`."""
    address = resolve_actor(chain, text)
    account = chain.account(address)
    if account is None or not account.code_hash:
        raise NotFound(f"there is no actor at {address}", LIST_ACCOUNTS)
    return address


def resolve_timer(chain: OpenChain, text: str) -> Hash32:
    """Return a timer's id: in full, or the first digits of it if no other timer of the chain has the same."""
    labelled = labels_in_use().find(text)
    if labelled is not None and len(labelled) == Hash32.WIDTH:
        return Hash32(labelled)
    match = _DIGITS.fullmatch(text)
    if match is None:
        raise Mistake(f"{text!r} is no timer id", "give the first hexadecimal digits of an id from `trailboss timers`")
    found = chain.match_timers(match[1].lower())
    if not found:
        rest = "" if len(match[1]) == 2 * Hash32.WIDTH else "…"
        raise NotFound(unknown_words(chain, f"{text}{rest}"), "look for it with `trailboss timers --state all`")
    return _only("timers", text, found)


def resolve_execution(chain: OpenChain, text: str) -> int | Hash32:
    """Return what can be traced: a block's height, or by its first digits a transaction's hash or a timer's id."""
    if text.isascii() and text.isdecimal() and len(text) <= HEIGHT_DIGITS:
        if not 1 <= int(text) <= chain.height:
            what = f"there is no block {text} to trace: the chain has blocks 1 to {chain.height} above genesis"
            raise NotFound(what, "name one of these")
        return int(text)
    match = _DIGITS.fullmatch(text)
    if match is None:
        raise Mistake(
            f"{text!r} is neither a height nor an id",
            "give a block's height, or the first hexadecimal digits of a transaction's hash or a timer's id",
        )
    digits = match[1].lower()
    found = [*chain.match_transactions(digits), *chain.match_timers(digits)]
    if not found:
        what = f"no transaction and no timer of the chain begins with {text}"
        raise NotFound(what, "see `trailboss block` for transactions, `trailboss timers --state all` for timers")
    return _only("transactions and timers", text, found)


def find_timer(chain: OpenChain, text: str) -> Hash32:
    """Return the id of a timer that is live; see `resolve_timer`."""
    timer_id = resolve_timer(chain, text)
    if chain.timer(timer_id) is None:
        raise NotFound(
            f"timer {timer_id} is not live any more", f"see what became of it with `trailboss timer explain {text}`"
        )
    return timer_id


def _only(what: str, text: str, found: Sequence[Found]) -> Found:
    """Return the one that is found; raises `Mistake` if there are more."""
    if len(found) > 1:
        shown = ", ".join(map(str, found[:CANDIDATES_MAX])) + (", …" if len(found) > CANDIDATES_MAX else "")
        raise Mistake(f"{len(found)} {what} begin with {text}: {shown}", "give more digits")
    return found[0]
