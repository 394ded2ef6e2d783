"""Accounts and actors as people see them."""

from trailboss.primitives.octets import Address, Hash32
from trailboss.testing import LocalChain
from trailboss.views.accounts import account_count, actor_view, holder_of, known_names, source_of, storage_page

SOURCE = "def fill(payload):\n    for at in range(5):\n        pvm_host.set_state(b'%d' % at, payload)\n"
NOBODY = Address(b"\x11" * 20)


def test_accounts_are_told_from_actors_and_from_nobody() -> None:
    """Names are those of the development accounts that the chain started with."""
    with LocalChain(preset="minimal") as local:
        actor = local.deploy(SOURCE, sender=local.accounts[0], value=7)
        chain, names = local.chain, known_names(local.chain.genesis)
        assert sorted(names.values())[:3] == ["account 0", "account 1", "account 2"]
        assert len(names) == len(local.accounts) + 2
        first = holder_of(chain, local.accounts[0].address, names)
        assert (first.name, first.kind, first.nonce) == ("account 0", "account", 2)
        assert holder_of(chain, actor.address, names).kind == "actor"
        assert holder_of(chain, NOBODY, names).kind == "none"
        assert account_count(chain) == sum(1 for _ in chain.accounts())
        found = actor_view(chain, actor.address)
        assert found is not None
        assert (found.owner, found.balance, found.timers) == (local.accounts[0].address, 7, 0)
        assert source_of(chain, found.code_hash) == SOURCE.encode()
        assert source_of(chain, Hash32(bytes(32))) is None
        assert actor_view(chain, local.accounts[0].address) is None
        assert actor_view(chain, NOBODY) is None


def test_slots_come_in_pages_that_follow_one_another() -> None:
    """An actor without slots, and an address without an actor, have none; neighbours' slots are theirs."""
    with LocalChain(preset="minimal") as local:
        actors = [local.deploy(SOURCE, sender=each) for each in local.accounts[:3]]
        for actor in actors:
            actor.call("fill", bytes(actor.address), sender=local.accounts[0], check=True)
        for actor in actors:
            first = storage_page(local.chain, actor.address, 2)
            assert first.next_cursor is not None
            second = storage_page(local.chain, actor.address, 3, first.next_cursor)
            assert second.next_cursor is None
            assert first.storage | second.storage == dict(actor.storage)
            assert set(second.storage.values()) == {bytes(actor.address)}
        assert storage_page(local.chain, NOBODY, 5).storage == {}
