"""Development accounts on the command line: how many there are, and what they are called."""

from tests.e2e.conftest import Ask, Run


def test_chain_has_as_many_accounts_as_asked_for_and_lists_them_in_order(run: Run, ask: Ask) -> None:
    """By number, then the deployer; those that it has not funded are not there."""
    assert "0 to 11 and deployer, 1,000,000 CBY each" in run("init", "--accounts", 12).stdout
    names = [f"account {index}" for index in range(12)]
    assert [holder["name"] for holder in ask("balance")] == [*names, "deployer"]
    sent = ask("send", 7, "500cby", "--from", 11)
    assert sent["status"] == "ok"
    assert "paid by account 11" in run("send", "0", "1cby", "--from", "11").stdout
    assert ask("balance", 12)[0]["kind"] == "none"


def test_account_beyond_those_funded_is_one_without_money(run: Run, ask: Ask) -> None:
    """Its name is known, and it has a key: money sent there is not lost."""
    run("init")
    assert "insufficient" in run("send", "0", "1cby", "--from", "640", status=1).output
    ask("send", 640, "500cby")
    assert ask("balance", 640)[0]["balance"] == 500 * 10**9
    assert ask("send", 0, "1cby", "--from", "640")["status"] == "ok"


def test_init_is_refused_when_a_genesis_file_would_have_other_accounts(run: Run) -> None:
    """Or when there are too many."""
    words = "a genesis file has a preset, a mechanism, parameters and accounts of its own"
    assert words in " ".join(run("init", "--genesis", "genesis.toml", "--accounts", 3, status=2).output.split())
    run("init", "--accounts", 1_001, status=2)
    run("init", "--accounts", 0, status=2)
