"""An overlay against plain dictionaries: nested marks, reverts, scans."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trailboss.model.actors import Account, decode_account, encode_account
from trailboss.state import keys
from trailboss.state.overlay import Overlay
from trailboss.state.slots import SCANNED_NAME_MAX, encode_slot
from trailboss.state.store import MemoryStore

ACTORS = (b"\x01" * 20, b"\x02" * 20)
NAMES = st.sampled_from([b"", b"a", b"ab", b"abc", b"b", b"ba", b"\xff", b"a" * 64, b"a" * 65, b"ab\x00", b"ab\xff"])
SLOTS = st.tuples(st.sampled_from(ACTORS), NAMES)
VALUES = st.binary(max_size=2)
PLAIN_KEYS = st.sampled_from(
    [
        keys.config_key(b"one"),
        keys.account_key(ACTORS[0]),
        keys.account_key(ACTORS[1]),
    ]
)


class OverlayMachine(RuleBasedStateMachine):
    """Plays an overlay beside a copied dictionary for each mark."""

    @initialize(committed=st.dictionaries(SLOTS, VALUES), plain=st.booleans())
    def start(self, committed, plain) -> None:
        self.store = MemoryStore()
        contents = {keys.storage_key(*slot): encode_slot(slot[1], value) for slot, value in committed.items()}
        if plain:
            contents[keys.config_key(b"one")] = b"first"
        self.store.commit(0, contents)
        self.names = dict.fromkeys(committed)
        self.contents = contents
        self.committed = dict(contents)
        self.marks: list[tuple[int, dict[bytes, bytes]]] = []
        self.overlay = Overlay(self.store)

    @rule(key=PLAIN_KEYS, value=VALUES)
    def write(self, key, value) -> None:
        self.overlay.write(key, value)
        self.contents[key] = value

    @rule(nonce=st.integers(0, 2))
    def write_record(self, nonce) -> None:
        """A record and its packed bytes are the same value, whichever of the two is read or compared."""
        key, account = keys.account_key(ACTORS[1]), Account(nonce=nonce)
        self.overlay.write(key, account)
        self.contents[key] = encode_account(account)
        assert self.overlay.read_record(key, decode_account) == account

    @rule(slot=SLOTS, value=VALUES)
    def write_slot(self, slot, value) -> None:
        self.names[slot] = None
        self.write(keys.storage_key(*slot), encode_slot(slot[1], value))

    @rule(key=PLAIN_KEYS | SLOTS.map(lambda slot: keys.storage_key(*slot)))
    def delete(self, key) -> None:
        self.overlay.delete(key)
        self.contents.pop(key, None)

    @rule()
    def mark(self) -> None:
        self.marks.append((self.overlay.mark(), dict(self.contents)))

    @precondition(lambda self: self.marks)
    @rule(choice=st.integers(0, 100))
    def revert(self, choice) -> None:
        del self.marks[choice % len(self.marks) + 1 :]
        mark, self.contents = self.marks.pop()
        self.overlay.revert(mark)

    @rule(actor=st.sampled_from(ACTORS), prefix=NAMES, limit=st.integers(0, 5))
    def scan(self, actor, prefix, limit) -> None:
        there = [
            (name, self.contents[keys.storage_key(actor, name)])
            for address, name in sorted(self.names)
            if address == actor and name.startswith(prefix) and len(name) <= SCANNED_NAME_MAX
            if keys.storage_key(actor, name) in self.contents
        ]
        rows = self.overlay.scan(actor, prefix, limit)
        assert [(name, encode_slot(name, value)) for name, value in rows] == there[:limit]

    @invariant()
    def changed_slots_are_those_that_differ(self) -> None:
        for mark, before in [(0, self.committed), *self.marks]:
            differing = [
                (actor, name)
                for actor, name in sorted(self.names)
                if self.contents.get(keys.storage_key(actor, name)) != before.get(keys.storage_key(actor, name))
            ]
            assert self.overlay.changed_slots(mark) == differing

    @invariant()
    def reads_and_changes_agree(self) -> None:
        touched = self.contents.keys() | self.committed.keys()
        assert all(self.overlay.read(key) == self.contents.get(key) for key in touched)
        expected = {key: self.contents.get(key) for key in touched if self.contents.get(key) != self.committed.get(key)}
        assert self.overlay.changes() == expected


OverlayMachine.TestCase.settings = settings(stateful_step_count=40)
TestOverlay = OverlayMachine.TestCase
