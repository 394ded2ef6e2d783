"""Genesis: TOML in, one checked record and a first state out; every mistake is named."""

import pytest

from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.execution.genesis import (
    Genesis,
    apply_genesis,
    check_genesis,
    decode_genesis,
    encode_genesis,
    parse_genesis,
)
from trailboss.governance.rules import read_rules
from trailboss.model.configs import MarketKind
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.octets import ZERO_HASH, Address
from trailboss.state.store import MemoryStore

ONE, TWO, PROPOSER = (Address(bytes([number]) * 20) for number in (1, 2, 9))
HEAD = f'chain_id = 7\nproposer = "{PROPOSER}"\n'


def test_genesis_is_read_when_everything_is_given() -> None:
    """All seven keys."""
    genesis = parse_genesis(
        f"""
        chain_id = 7
        preset = "minimal"
        mechanism = "fifo"
        proposer = "{PROPOSER}"
        system_deployers = ["{ONE}", "{TWO}"]

        [accounts]
        "{ONE}" = 1_000
        "{TWO}" = 0

        [params]
        "timers.max_timers_per_actor" = 2_048
        """
    )
    assert genesis == Genesis(
        chain_id=7,
        preset="minimal",
        mechanism="fifo",
        proposer=PROPOSER,
        system_deployers=(ONE, TWO),
        accounts={ONE: 1_000, TWO: 0},
        overrides={"timers.max_timers_per_actor": 2_048},
    )
    assert genesis.params().timers.max_timers_per_actor == 2_048
    assert genesis.params().calendar.ring_size == 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("chain_id = = 7", "genesis is not TOML"),
        (f'proposer = "{PROPOSER}"', "genesis lacks chain_id"),
        ("chain_id = 7", "genesis lacks proposer"),
        (HEAD + "colour = 3\nage = 4\n", "unknown genesis keys age, colour; there are: chain_id, "),
        (HEAD.replace("7", "-1", 1), "genesis chain_id = -1 must be an integer within 0..=18446744073709551615"),
        (HEAD.replace("7", "18446744073709551616", 1), "genesis chain_id = 18446744073709551616 must be an integer"),
        (HEAD.replace("7", "true", 1), "genesis chain_id = True must be an integer"),
        (HEAD.replace("7", "7.0", 1), "genesis chain_id = 7.0 must be an integer"),
        ("chain_id = 7\nproposer = 3\n", "genesis proposer = 3 must be text"),
        ('chain_id = 7\nproposer = "0x12"\n', "genesis proposer: Address must be 40 hexadecimal digits"),
        (HEAD + "preset = 1\n", "genesis preset = 1 must be text"),
        (HEAD + 'preset = "huge"\n', "unknown preset 'huge'; there are: mainnet, minimal"),
        (HEAD + 'mechanism = "lottery"\n', "unknown mechanism 'lottery'; there are: fifo, lane"),
        (
            HEAD + 'mechanism = "lane"\n[params]\n"lane.activation_height" = 5\n',
            "lane.activation_height = 5 contradicts mechanism 'lane', which is active from block 1",
        ),
        (
            HEAD + 'mechanism = "lane"\n[params]\n"lane.activation_height" = 0\n',
            "lane.activation_height = 0 contradicts mechanism 'lane'",
        ),
        (HEAD + '[params]\n"lane.clamps_gas_limit" = 2\n', "lane.clamps_gas_limit = 2 must be at most 1"),
        (HEAD + "system_deployers = 5\n", "genesis system_deployers = 5 must be a list"),
        (HEAD + f'system_deployers = "{ONE}"\n', "must be a list"),
        (HEAD + "system_deployers = [5]\n", "genesis system_deployers = 5 must be text"),
        (HEAD + 'system_deployers = ["0xzz"]\n', "genesis system_deployers: Address must be 40 hexadecimal digits"),
        (HEAD + "accounts = 5\n", "genesis accounts = 5 must be a table"),
        (HEAD + "params = [1]\n", "genesis params = [1] must be a table"),
        (HEAD + f'[accounts]\n"{ONE}" = -1\n', f"genesis accounts.{ONE} = -1 must be an integer within 0..="),
        (HEAD + f'[accounts]\n"{ONE}" = 1.5\n', f"genesis accounts.{ONE} = 1.5 must be an integer within 0..="),
        (HEAD + f'[accounts]\n"{ONE}" = {2**128}\n', f"genesis accounts.{ONE} = {2**128} must be an integer"),
        (HEAD + "[accounts]\nalice = 1\n", "genesis accounts: Address must be 40 hexadecimal digits, got 'alice'"),
        (
            HEAD + f'[accounts]\n"{ONE}" = 1\n"{ONE.hex()}" = 2\n',
            f"genesis accounts names {ONE} twice",
        ),
        (
            HEAD + f'[accounts]\n"{ONE}" = {2**128 - 1}\n"{TWO}" = 1\n',
            f"the genesis accounts hold {2**128} base units, more than 128 bits",
        ),
        (HEAD + '[params]\n"timers.colour" = 1\n', "unknown parameter 'timers.colour'"),
        (
            HEAD + '[params]\n"timers.max_ttl_blocks" = 0\n',
            "timers.max_ttl_blocks = 0 must be an integer of at least 1",
        ),
        (HEAD + '[params]\n"timers.max_ttl_blocks" = "x"\n', "timers.max_ttl_blocks = 'x' must be an integer"),
        (HEAD + '[params]\n"calendar.ring_size" = 3600\n', "calendar.ring_size = 3600 is too small"),
        (HEAD + "[params.timers]\nmax_ttl_blocks = 5\n", "unknown parameter 'timers'"),
    ],
)
def test_genesis_is_refused_when_it_cannot_be(text: str, words: str) -> None:
    """Each mistake names its key, its value and the rule."""
    with pytest.raises(ConfigurationError) as caught:
        parse_genesis(text)
    assert words in str(caught.value)


@pytest.mark.spec("Q-06")
def test_genesis_is_refused_when_its_ring_is_too_short() -> None:
    """A ring must hold an epoch and the block before it."""
    genesis = Genesis(chain_id=1, proposer=PROPOSER, overrides={"calendar.ring_size": 3_600})
    with pytest.raises(ConfigurationError, match=r"calendar\.epoch_length \+ 1 = 3601"):
        check_genesis(genesis)


def test_store_is_untouched_when_the_genesis_is_refused() -> None:
    """It is checked before anything is written."""
    store = MemoryStore()
    root = store.state_root
    with pytest.raises(ConfigurationError):
        apply_genesis(Genesis(chain_id=1, proposer=PROPOSER, mechanism="lottery"), store)
    assert store.state_root == root


def test_first_state_holds_accounts_supply_and_deployers_when_applied() -> None:
    """Block 0 commits to it and has no parent."""
    store = MemoryStore()
    genesis = Genesis(chain_id=3, proposer=PROPOSER, system_deployers=(TWO,), accounts={ONE: 5, TWO: 7})
    block = apply_genesis(genesis, store)
    assert (block.header.height, block.header.parent, block.header.chain_id) == (0, ZERO_HASH, 3)
    assert block.header.state_root == store.state_root
    assert read_rules(genesis.params(), store.read, 1).deployers == {TWO}


@pytest.mark.spec("L-30")
@pytest.mark.parametrize("overrides", [{}, {"lane.activation_height": 1}])
def test_lane_is_active_from_block_1_when_the_chain_starts_with_it(overrides: dict[str, int]) -> None:
    """Whether the height is said besides or not; the genesis itself stays as it was written."""
    genesis = Genesis(chain_id=3, proposer=PROPOSER, mechanism="lane", overrides=overrides)
    assert check_genesis(genesis).lane.activation_height == 1
    assert genesis.overrides == overrides
    assert decode_genesis(encode_genesis(genesis)) == genesis
    store = MemoryStore()
    apply_genesis(genesis, store)
    assert read_rules(genesis.params(), store.read, 1).market.kind is MarketKind.LANE


@pytest.mark.spec("L-30")
@pytest.mark.parametrize("height", [1, 2, 2**64 - 1])
def test_lane_follows_at_a_height_when_the_chain_starts_with_another_mechanism(height: int) -> None:
    """The height is a parameter like any other then; without one the lane never comes."""
    genesis = Genesis(chain_id=3, proposer=PROPOSER, overrides={"lane.activation_height": height})
    assert check_genesis(genesis).lane.activation_height == height
    assert check_genesis(Genesis(chain_id=3, proposer=PROPOSER)).lane.activation_height == 0


def test_instance_id_differs_when_anything_about_the_genesis_differs() -> None:
    """Two chains with one chain id are still told apart."""
    base = {"chain_id": 1, "proposer": PROPOSER, "accounts": {ONE: 1}, "system_deployers": (ONE,)}
    changes = (
        {},
        {"chain_id": 2},
        {"preset": "minimal"},
        {"proposer": ONE},
        {"system_deployers": (TWO,)},
        {"accounts": {ONE: 2}},
        {"overrides": {"timers.max_ttl_blocks": 5}},
        {"mechanism": "lane"},
        {"overrides": {"lane.activation_height": 1}},
    )
    ids = [Genesis(**{**base, **change}).instance_id() for change in changes]
    assert len(set(ids)) == len(ids)
    assert Genesis(**base).instance_id() == ids[0]


WHOLE = Genesis(
    chain_id=2**64 - 1,
    preset="minimal",
    proposer=PROPOSER,
    system_deployers=(TWO, ONE),
    accounts={TWO: 2**128 - 2, ONE: 1},
    overrides={"timers.max_timers_per_actor": 2_048, "fees.max_basefee": 2**100},
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"chain_id": True}, "genesis chain_id = True must be an integer"),
        ({"preset": "lunar"}, "unknown preset 'lunar'"),
        ({"mechanism": 5}, "genesis mechanism = 5 must be text"),
        ({"mechanism": "lottery"}, "unknown mechanism 'lottery'"),
        ({"proposer": b"\x01"}, "genesis proposer: Address must be 20 bytes, got 1 bytes"),
        ({"system_deployers": {}}, "genesis system_deployers = {} must be a list"),
        ({"system_deployers": [5]}, "genesis system_deployers: Address must be 20 bytes, got 5"),
        ({"accounts": []}, "genesis accounts = [] must be a table"),
        (
            {"accounts": {b"\x01" * 20: -1}},
            "genesis accounts.0x0101010101010101010101010101010101010101 = -1 must be an integer",
        ),
        ({"accounts": {"text": 1}}, "genesis accounts: Address must be 20 bytes"),
        ({"params": {1: 1}}, "genesis params = 1 must be text"),
        ({"params": {"timers.colour": 1}}, "unknown parameter 'timers.colour'"),
        (
            {"params": {"timers.max_timers_per_actor": "many"}},
            "timers.max_timers_per_actor = 'many' must be an integer",
        ),
        ({"more": 1}, "an encoded genesis is a map of exactly: chain_id, preset"),
    ],
)
def test_encoded_genesis_is_refused_when_a_field_is_wrong(changes: dict[str, object], words: str) -> None:
    """The same rules as for one that a person wrote."""
    table = decode_canonical(encode_genesis(WHOLE))
    assert isinstance(table, dict)
    with pytest.raises(ConfigurationError) as caught:
        decode_genesis(encode_canonical(table | changes))
    assert words in str(caught.value)


@pytest.mark.parametrize(("encoded", "words"), [(b"", "genesis is not canonical: "), (b"\x01", "map of exactly")])
def test_bytes_are_refused_when_they_are_no_genesis(encoded: bytes, words: str) -> None:
    """Not CBOR, or not a map."""
    with pytest.raises(ConfigurationError, match=words):
        decode_genesis(encoded)
