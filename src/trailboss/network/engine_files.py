"""The settings of a node's consensus engine, written from those of its home: the engine has no settings of its own.

Source: CometBFT 0.38, whose defaults hold for all that is not stated here. Decision: D-103
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from trailboss.chain.opening import Genesis, encode_genesis
from trailboss.codec.toml import table_text
from trailboss.network.keys import PUBLIC_TYPE

if TYPE_CHECKING:
    from trailboss.network.home import Home

APPLICATION_VERSION: Final = 1
"""Of the state transition, as genesis states it and the application answers."""
FIRST_HEIGHT: Final = 1
BLOCK_BYTES_MAX: Final = 2**20  # of a block, as the engine encodes it
TRANSACTION_BYTES_MAX: Final = 2**19  # as the API takes: four times an actor's longest source
EVIDENCE_BYTES_MAX: Final = 2**16
EVIDENCE_BLOCKS: Final = 100_000  # how long a validator that votes twice can be accused
EVIDENCE_NANOSECONDS: Final = 48 * 3_600 * 10**9
NO_LIMIT: Final = -1
PEER_BYTES_MAX: Final = 50 * 2**20
"""A second, to and from each peer: by the engine's default of five million a large snapshot takes most of a minute."""
WAITING_MAX: Final = 5_000  # transactions that wait in the engine
WAITING_BYTES_MAX: Final = 2**26
COMMIT_SHARE: Final = (9, 10)  # of the time between blocks; votes and gossip take the rest
TIMEOUT_MIN_MS: Final = 200  # in which two processes of one busy machine still get their turn
PROPOSE_MIN_MS: Final = 500
DELTA_MS: Final = 200  # by which a timeout grows with each round
MS_PER_SECOND: Final = 1_000
Section = Mapping[str, object]


def configuration_text(home: "Home") -> str:
    """Return ``config.toml`` for the engine of a home."""
    sections: dict[str, Section] = {
        "": {
            "proxy_app": f"unix://{home.app_socket}",
            "moniker": home.name,
            "log_level": "main:info,statesync:info,*:error",
        },
        "rpc": {"laddr": f"tcp://{home.rpc}"},
        "p2p": {
            "laddr": f"tcp://{home.p2p}",
            "persistent_peers": ",".join(home.peers),
            "pex": False,
            "addr_book_strict": False,
            "allow_duplicate_ip": True,
            "flush_throttle_timeout": "10ms",
            "send_rate": PEER_BYTES_MAX,
            "recv_rate": PEER_BYTES_MAX,
        },
        "mempool": {
            "type": "flood",
            "size": WAITING_MAX,
            "max_tx_bytes": TRANSACTION_BYTES_MAX,
            "max_txs_bytes": WAITING_BYTES_MAX,
        },
        "statesync": _state_sync(home),
        "consensus": _timeouts(home.block_time_ms),
        "tx_index": {"indexer": "null"},
    }
    return "\n".join(table_text(f"[{name}]" if name else "", section) for name, section in sections.items())


def genesis_document(genesis: Genesis) -> str:
    """Return ``genesis.json`` for the engines of a network: the same bytes on every node."""
    began = datetime.fromtimestamp(genesis.params().governance.genesis_timestamp_ms // MS_PER_SECOND, UTC)
    part = genesis.params().governance.genesis_timestamp_ms % MS_PER_SECOND
    return json.dumps(
        {
            "genesis_time": f"{began:%Y-%m-%dT%H:%M:%S}.{part:03}Z",
            "chain_id": genesis.engine_chain_id(),
            "initial_height": str(FIRST_HEIGHT),
            "consensus_params": {
                "block": {"max_bytes": str(BLOCK_BYTES_MAX), "max_gas": str(NO_LIMIT)},
                "evidence": {
                    "max_age_num_blocks": str(EVIDENCE_BLOCKS),
                    "max_age_duration": str(EVIDENCE_NANOSECONDS),
                    "max_bytes": str(EVIDENCE_BYTES_MAX),
                },
                "validator": {"pub_key_types": ["ed25519"]},
                "version": {"app": str(APPLICATION_VERSION)},
                "abci": {"vote_extensions_enable_height": "0"},
            },
            "validators": [
                {
                    "address": validator.identity.hex().upper(),
                    "pub_key": {"type": PUBLIC_TYPE, "value": b64encode(validator.public_key).decode()},
                    "power": str(validator.power),
                    "name": "",
                }
                for validator in genesis.validators
            ],
            "app_hash": "",
            "app_state": {"genesis": f"0x{encode_genesis(genesis).hex()}"},
        },
        indent=2,
    )


def _timeouts(block_time_ms: int) -> Section:
    """Return when the engine loses patience, for a time between blocks."""
    share, whole = COMMIT_SHARE
    vote_ms = max(TIMEOUT_MIN_MS, block_time_ms // 2)
    return {
        "timeout_propose": f"{max(PROPOSE_MIN_MS, block_time_ms)}ms",
        "timeout_propose_delta": f"{DELTA_MS}ms",
        "timeout_prevote": f"{vote_ms}ms",
        "timeout_prevote_delta": f"{DELTA_MS}ms",
        "timeout_precommit": f"{vote_ms}ms",
        "timeout_precommit_delta": f"{DELTA_MS}ms",
        "timeout_commit": f"{block_time_ms * share // whole}ms",
        # Timers are due by height, so that heights go on when nobody sends anything.
        "create_empty_blocks": True,
        "create_empty_blocks_interval": "0s",
        "peer_gossip_sleep_duration": "20ms",
    }


def _state_sync(home: "Home") -> Section:
    wanted = home.state_sync
    if wanted is None:
        return {"enable": False}
    return {
        "enable": True,
        "rpc_servers": ",".join(f"http://{server}" for server in wanted.servers),
        "trust_height": wanted.trust_height,
        "trust_hash": wanted.trust_hash.removeprefix("0x").upper(),
        "trust_period": "168h0m0s",
        "discovery_time": "5s",
    }
