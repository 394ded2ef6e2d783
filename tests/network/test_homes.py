"""Homes of nodes: what they hold, what a bad one says, and what keeps a validator from voting twice."""

import json
import os
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trailboss.chain import Chain
from trailboss.chain.opening import GenesisOptions, genesis_text, new_genesis, parse_genesis
from trailboss.crypto.digest import sha256
from trailboss.execution.genesis import decode_genesis
from trailboss.model.validators import Validator
from trailboss.network.binary import VARIABLE, find_engine
from trailboss.network.halts import Halt, NetworkHaltError
from trailboss.network.home import SOCKET_BYTES_MAX, Home, SocketAddress, StateSync
from trailboss.network.keys import new_key, read_public_key
from trailboss.network.testnet import NewHomes, Plan, add_node, create_testnet, read_testnet
from trailboss.network.votes import check_votes, last_proposed
from trailboss.primitives.errors import ConfigurationError, StorageError
from trailboss.primitives.octets import Address

NATIVE: Final = GenesisOptions(vm="native")
STATE_SYNC: Final = '[state_sync]\nservers = ["a:1"]\ntrust_height = 1\ntrust_hash = ""\n'
NOW_MS: Final = 1_700_000_123_456


def homes_in(directory: Path, **plan: Any) -> list[Home]:
    """Return the homes of a network of the native engine, made from a seed."""
    return create_testnet(directory, Plan(**{"genesis": NATIVE, "seed": "s", **plan}), NOW_MS)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return the home of the first of four validators."""
    return homes_in(tmp_path / "net")[0]


def test_home_is_read_as_it_was_written(home: Home) -> None:
    """Settings, genesis and keys; and with other peers and a state sync."""
    assert Home.read(home.directory) == home
    changed = replace(
        home,
        peers=(home.peer,),
        block_time_ms=250,
        state_sync=StateSync(("127.0.0.1:1", "127.0.0.1:2"), 7, "0x" + "ab" * 32),
    )
    changed.write()
    assert Home.read(home.directory) == changed
    assert home.key == home.public_key == home.genesis.validators[0].public_key


@given(
    st.builds(
        GenesisOptions,
        preset=st.sampled_from(["mainnet", "minimal"]),
        mechanism=st.sampled_from(["fifo", "lane", "auction", "globalbox"]),
        overrides=st.dictionaries(st.just("governance.genesis_timestamp_ms"), st.integers(1, 2**50)),
        accounts=st.integers(1, 5),
        vm=st.just("native"),
    ),
    st.binary(max_size=0) | st.binary(min_size=32, max_size=32),
    st.lists(st.binary(min_size=32, max_size=32), unique=True, max_size=3),
    st.booleans(),
)
def test_genesis_text_is_read_as_the_same_genesis(
    wanted: GenesisOptions, image: bytes, keys: list[bytes], development: bool
) -> None:
    """Whatever it states."""
    validators = tuple(Validator(key, at + 1, Address(bytes([at]) * 20)) for at, key in enumerate(keys))
    genesis = replace(
        new_genesis(wanted), image=image, validators=validators, development=development and not validators
    )
    assert parse_genesis(genesis_text(genesis)) == genesis


def test_only_the_owner_reads_a_home(home: Home) -> None:
    """Directories and files alike."""
    for path in (home.directory, *home.directory.rglob("*")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_nodes_of_one_network_state_the_same(tmp_path: Path) -> None:
    """One genesis, byte for byte, of which every validator has its key; every node knows all others, and no other."""
    homes = homes_in(tmp_path / "net")
    assert len({(home.engine_configuration / "genesis.json").read_bytes() for home in homes}) == 1
    document = json.loads((homes[0].engine_configuration / "genesis.json").read_bytes())
    genesis = homes[0].genesis
    assert document["chain_id"] == genesis.engine_chain_id()
    assert document["genesis_time"] == "2023-11-14T22:15:23.456Z"
    assert genesis.params().governance.genesis_timestamp_ms == NOW_MS
    assert decode_genesis(bytes.fromhex(document["app_state"]["genesis"][2:])) == genesis
    assert {each["address"] for each in document["validators"]} == {
        sha256(home.public_key)[:20].hex().upper() for home in homes
    }
    assert all(each["power"] == "10" for each in document["validators"])
    assert not genesis.development
    peers = {home.peer for home in homes}
    assert len(peers) == 4
    for home in homes:
        assert set(home.peers) == peers - {home.peer}
    assert len({(each.host, each.port) for home in homes for each in (home.api, home.p2p, home.rpc)}) == 12
    assert len({each.fee_account for each in genesis.validators}) == 4


def test_engine_is_set_up_as_the_home_says(home: Home) -> None:
    """The engine's settings follow from the home's, and are written again from them."""
    path = home.engine_configuration / "config.toml"
    found = tomllib.loads(path.read_text())
    assert found["proxy_app"] == f"unix://{home.app_socket}"
    assert found["p2p"]["persistent_peers"].split(",") == list(home.peers)
    assert found["consensus"]["create_empty_blocks"] is True
    assert (found["consensus"]["timeout_commit"], found["statesync"]) == ("900ms", {"enable": False})
    path.write_text("")
    replace(home, block_time_ms=200, state_sync=StateSync(("a:1", "b:2"), 5, "0x" + "ab" * 32)).write_engine_files()
    found = tomllib.loads(path.read_text())
    assert found["consensus"]["timeout_commit"] == "180ms"
    assert found["statesync"]["rpc_servers"] == "http://a:1,http://b:2"
    assert (found["statesync"]["trust_height"], found["statesync"]["trust_hash"]) == (5, "AB" * 32)


def test_keys_follow_from_a_seed(tmp_path: Path) -> None:
    """The same seed gives the same keys, another one others, none random ones."""
    networks = [homes_in(tmp_path / name, seed=seed) for name, seed in (("a", "x"), ("b", "x"), ("c", "y"))]
    networks += [homes_in(tmp_path / name, seed=None) for name in "de"]
    keys = [tuple((home.public_key, home.node_id) for home in homes) for homes in networks]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("node.toml", lambda _: None, "no node's home here"),
        ("node.toml", lambda text: text.replace('name = "node0"', 'name = "a b"'), "name 'a b' must be"),
        ("node.toml", lambda text: text + "colour = 1\n", "unknown field `colour`"),
        ("node.toml", lambda _: "name = [", r"node\.toml"),
        ("node.toml", lambda text: text.replace("127.0.0.1:4000", "127.0.0.1:0"), "api '127.0.0.1:0' must be"),
        ("node.toml", lambda text: text.replace("127.0.0.1:4000", "127.0.0.1:26600"), "must be three addresses"),
        ("node.toml", lambda text: text.replace("127.0.0.1:4000", "0.0.0.0:4000"), "states no image of the sandbox"),
        ("node.toml", lambda text: text.replace("block_time_ms = 1000", "block_time_ms = 99"), "block_time_ms = 99"),
        ("node.toml", lambda text: text.replace("@", ""), "must be ID@HOST:PORT"),
        ("node.toml", lambda text: text + STATE_SYNC, "state_sync.servers has 1"),
        ("genesis.toml", lambda _: None, r"no genesis\.toml"),
        ("genesis.toml", lambda text: text.replace("power = 10", "power = 0"), r"genesis\.toml.*power = 0 must be"),
        ("genesis.toml", lambda text: text[: text.index("[[")], "states no validators"),
        ("engine/config/priv_validator_key.json", lambda _: None, "is missing"),
        ("engine/config/priv_validator_key.json", lambda _: "{}", "holds no Ed25519 key"),
        ("engine/config/node_key.json", lambda text: text.replace("Ed25519", "Secp256k1"), "holds no Ed25519 key"),
    ],
)  # fmt: skip
def test_bad_file_names_itself_and_the_rule(
    home: Home, file: str, change: Callable[[str], str | None], words: str
) -> None:
    """A missing file, a wrong key, a wrong value."""
    path = home.directory / file
    text = change(path.read_text())
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises((ConfigurationError, StorageError), match=words):
        print(Home.read(home.directory).peer, home.key)


def test_damaged_key_is_refused(home: Home) -> None:
    """One whose halves do not belong together would sign what nobody accepts."""
    text = home.validator_key_file.read_text()
    other = json.loads(homes_in(home.directory.parent / "b", seed="t")[0].validator_key_file.read_text())
    table = json.loads(text)
    value = table["priv_key"]["value"]
    table["priv_key"]["value"] = other["priv_key"]["value"][:40] + value[40:]
    home.validator_key_file.write_text(json.dumps(table))
    with pytest.raises(ConfigurationError, match="public half"):
        read_public_key(home.validator_key_file)


def test_path_of_the_socket_has_a_limit(home: Home) -> None:
    """A longer path would be cut off by the system, and the engine would wait for nobody."""
    longest = Path("/x", "d" * (SOCKET_BYTES_MAX - len("/x//app.sock")))
    assert len(str(replace(home, directory=longest).app_socket)) == SOCKET_BYTES_MAX
    with pytest.raises(ConfigurationError, match="has 104 bytes, and the path of a socket at most 103"):
        replace(home, directory=longest.with_name(longest.name[:-1] + "é"))


def test_network_needs_room_and_reason(tmp_path: Path) -> None:
    """An occupied directory, a number of nodes, of addresses, and ports: refused, and nothing is written."""
    tmp_path.joinpath("kept").write_text("x")
    with pytest.raises(StorageError, match="something is there already"):
        homes_in(tmp_path)
    place = tmp_path / "net"
    for plan, words in (
        ({"validators": 0}, "validators = 0 must be 1 to 100"),
        ({"hosts": ("127.0.0.1", "127.0.0.2")}, "2 addresses for 4 validators"),
        ({"api_port": 65_534}, "node2 would listen on port 65536"),
        ({"hosts": ("10.0.0.1",)}, "states no image of the sandbox"),
        ({"genesis": GenesisOptions(vm="native", overrides={"timers.max_timers": 1})}, "timers.max_timers"),
    ):
        with pytest.raises(ConfigurationError, match=words):
            homes_in(place, **plan)
        assert not place.exists()


def test_node_is_added_beside_the_others(tmp_path: Path) -> None:
    """It is no validator, has addresses of its own, and knows all others; homes that have come are found once."""
    find = NewHomes(tmp_path / "net")
    homes = homes_in(tmp_path / "net")
    assert find() == homes
    wanted = StateSync(("127.0.0.1:26601", "127.0.0.1:26603"), 9, "0x" + "cd" * 32)
    added = add_node(homes, wanted)
    assert added.key is None
    assert added.state_sync == wanted
    assert set(added.peers) == {home.peer for home in homes}
    taken = {each for home in homes for each in (home.api, home.p2p, home.rpc)}
    assert not taken & {added.api, added.p2p, added.rpc}
    assert added.api == SocketAddress("127.0.0.1", 4004)
    assert read_testnet(tmp_path / "net") == [*homes, added]
    assert find() == [added]
    assert find() == []


def test_unfinished_home_is_none(tmp_path: Path) -> None:
    """A directory is a home when its last file is there."""
    homes = homes_in(tmp_path / "net")
    (homes[3].directory / "node.toml").unlink()
    assert read_testnet(tmp_path / "net") == homes[:3]
    with pytest.raises(StorageError, match="there is no testnet here"):
        read_testnet(tmp_path)


def test_validator_without_its_last_vote_does_not_start(home: Home) -> None:
    """A missing, a damaged and an old file of it; a full node has nothing to lose."""
    with Chain(home.genesis) as chain:
        check_votes(home, chain)
        for proposer in (1, 0, 2):
            chain.seal(chain.stage((), NOW_MS + 1, proposer=home.genesis.validators[proposer].fee_account))
        assert last_proposed(home, chain) == 2
        home.vote_file.write_text('{"height": "2", "round": 0, "step": 3}')
        check_votes(home, chain)
        for content in ('{"height": "1", "round": 9, "step": 3}', "", "[]", '{"height": "x"}', None):
            home.vote_file.unlink()
            if content is not None:
                home.vote_file.write_text(content)
            with pytest.raises(NetworkHaltError) as refused:
                check_votes(home, chain)
            assert refused.value.halt is Halt.VALIDATOR_STATE_LOST
            if content is None:
                with pytest.raises(NetworkHaltError, match="is missing"):
                    check_votes(home, None)
            home.vote_file.touch()
        full = add_node([home])
        full.vote_file.unlink()
        check_votes(full, chain)


def test_key_of_a_seed_is_another_for_each_purpose() -> None:
    """Else a node's own key would be that of its votes."""
    purposes = ("validator 0", "validator 1", "node 0", "node 1")
    keys = {new_key("seed", purpose).private_bytes_raw() for purpose in purposes}
    assert len(keys) == len(purposes)
    assert isinstance(new_key(None, "node 0"), Ed25519PrivateKey)


def test_engine_is_found_by_name_then_in_the_project_then_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of another release, and none, are refused with what to do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path / "bin"), os.environ["PATH"])))
    monkeypatch.delenv(VARIABLE, raising=False)

    def program(place: str, release: str) -> Path:
        path = tmp_path / place / "cometbft"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {release}\n")
        path.chmod(0o700)
        return path

    own = program(".engine", "0.38.99")
    program("bin", "0.38.1")
    assert find_engine() == own
    monkeypatch.setenv(VARIABLE, str(program("named", "0.38.7")))
    assert find_engine() == tmp_path / "named/cometbft"
    program("named", "1.0.1")
    with pytest.raises(
        ConfigurationError, match=r"is release '1\.0\.1' of the engine, and 0\.38\.x is needed.*make engine"
    ):
        find_engine()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(
        ConfigurationError, match=r"no consensus engine.*none, which TRAILBOSS_ENGINE names.*make engine"
    ):
        find_engine()


def test_each_halt_has_a_row_in_the_guide() -> None:
    """Its name, what has happened, and the next step; and no row is about a name that there is not."""
    guide = Path(__file__).parents[2].joinpath("docs/how-to/run-a-network.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in guide.splitlines() if line.startswith("| `")]
    assert [row[1].strip(" `") for row in rows] == [halt.slug for halt in Halt]
    assert all(cell.strip() for row in rows for cell in row[1:4])
