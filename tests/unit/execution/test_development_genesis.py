"""A genesis says whether its chain is a development chain, and one that is not has the bytes it always had."""

import pytest
from msgspec.structs import replace

from trailboss.chain.chain import Chain
from trailboss.chain.development import (
    ACCOUNT_BALANCE,
    ACCOUNT_COUNT,
    ACCOUNTS_MAX,
    DEPLOYER,
    account_name,
    development_account,
    development_genesis,
)
from trailboss.chain.replay import compare_chains
from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.execution.genesis import Genesis, decode_genesis, encode_genesis, parse_genesis
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.octets import Address

PROPOSER = Address(b"\x09" * 20)
ORDINARY = Genesis(chain_id=7, proposer=PROPOSER)
PINNED = (
    "a766706172616d73a066707265736574676d61696e6e6574686163636f756e7473a068636861696e5f6964076870726f706f736572540909"
    "090909090909090909090909090909090909696d656368616e69736d646669666f7073797374656d5f6465706c6f7965727380"
)
PINNED_ID = "aa7469b7d54d44db8cef6ba8725b810398d7b82c3e28b34d69feb4be85c65fa8"
HEAD = f'chain_id = 7\nproposer = "{PROPOSER}"\n'


def test_genesis_of_an_ordinary_chain_has_its_pinned_bytes() -> None:
    """The key is not there, so the identity of every chain there is stays what it was."""
    assert encode_genesis(ORDINARY).hex() == PINNED
    assert ORDINARY.instance_id().hex() == PINNED_ID


def test_genesis_of_a_development_chain_says_so_and_is_another_chain() -> None:
    """One key more, and nothing else."""
    development = replace(ORDINARY, development=True)
    table, before = (decode_canonical(encode_genesis(genesis)) for genesis in (development, ORDINARY))
    assert isinstance(before, dict)
    assert table == before | {"development": True}
    assert decode_genesis(encode_genesis(development)) == development
    assert development.instance_id() != ORDINARY.instance_id()


@pytest.mark.parametrize(
    ("line", "development"), [("", False), ("development = false", False), ("development = true", True)]
)
def test_genesis_is_read_with_and_without_the_key(line: str, development: bool) -> None:
    """In TOML it may be said that it is none."""
    assert parse_genesis(HEAD + line) == replace(ORDINARY, development=development)


@pytest.mark.parametrize("value", ["1", "0", '"yes"', "[true]"])
def test_genesis_is_refused_when_the_key_is_neither_true_nor_false(value: str) -> None:
    """Naming key and value."""
    with pytest.raises(ConfigurationError, match=r"genesis development = .* must be true or false"):
        parse_genesis(f"{HEAD}development = {value}")


@pytest.mark.parametrize("value", [False, 1, 0, None, "true"])
def test_encoded_genesis_is_refused_when_the_key_is_anything_but_true(value: object) -> None:
    """There is one encoding of each genesis."""
    table = decode_canonical(encode_genesis(ORDINARY))
    assert isinstance(table, dict)
    with pytest.raises(ConfigurationError, match=f"has development = true or not at all, not {value!r}"):
        decode_genesis(encode_canonical(table | {"development": value}))


def test_chains_part_when_only_one_is_a_development_chain() -> None:
    """Though their blocks are the same so far."""
    parting = compare_chains(Chain(ORDINARY), Chain(replace(ORDINARY, development=True)))
    assert parting is not None
    difference = parting.first("genesis")
    assert difference is not None
    assert (difference.what, difference.left, difference.right) == ("genesis development", "False", "True")


def test_development_genesis_funds_ten_accounts_and_the_deployer_unless_told_otherwise() -> None:
    """Account 0 to account 9, as they ever were."""
    genesis = development_genesis()
    assert genesis.development
    numbered = [account_name(index) for index in range(ACCOUNT_COUNT)]
    names = (*numbered, DEPLOYER)
    assert genesis.accounts == {development_account(name).address: ACCOUNT_BALANCE for name in names}
    assert numbered == [f"account {index}" for index in range(10)]


@pytest.mark.parametrize("count", [1, 25, ACCOUNTS_MAX])
def test_development_genesis_funds_as_many_accounts_as_one_asks_for(count: int) -> None:
    """The first ones are the same however many they are."""
    accounts = development_genesis(accounts=count).accounts
    assert len(accounts) == count + 1
    assert development_account(account_name(count - 1)).address in accounts
    assert development_account(account_name(count)).address not in accounts


@pytest.mark.parametrize("count", [0, -1, ACCOUNTS_MAX + 1, True, "ten"])
def test_development_genesis_is_refused_when_it_has_no_or_too_many_accounts(count: int) -> None:
    """One at least, a thousand at most."""
    with pytest.raises(ConfigurationError, match=rf"accounts = {count!r} must be an integer within 1\.\.=1000"):
        development_genesis(accounts=count)
