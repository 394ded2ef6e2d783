"""Names of accounts: any number below a thousand is one, whether the chain has funded it or not."""

import pytest

from trailboss.chain.development import development_account
from trailboss.cli.errors import Mistake
from trailboss.cli.targets import resolve_address, resolve_signer


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0", "account 0"),
        ("9", "account 9"),
        ("10", "account 10"),
        ("999", "account 999"),
        ("account 512", "account 512"),
        ("deployer", "deployer"),
        ("proposer", "proposer"),
    ],
)
def test_account_is_found_by_its_name_and_signs_with_its_key(text: str, name: str) -> None:
    """In short or in full; its address leads to the same key."""
    account = development_account(name)
    assert resolve_address(text) == account.address
    for who in (text, str(account.address)):
        signer = resolve_signer(who, None)
        assert (signer.address, signer.private_key) == (account.address, account.private_key)


@pytest.mark.parametrize("text", ["1000", "-1", "007", "1.0", "account", "ten", "", "٣"])
def test_account_is_refused_when_it_has_no_such_name(text: str) -> None:
    """The mistake says what there is."""
    with pytest.raises(Mistake) as caught:
        resolve_address(text)
    assert "0 to 999, deployer" in str(caught.value.fix)


def test_signer_is_refused_when_nobody_knows_its_key() -> None:
    """After all thousand."""
    with pytest.raises(Mistake, match="the key of 0x7777"):
        resolve_signer("0x" + "77" * 20, None)
