"""The keys of a node of a network, in the files of its engine: a validator's, which signs votes, and the node's own.

Both are Ed25519. Decision: D-103
"""

import json
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from trailboss.crypto.digest import domain_digest
from trailboss.model.validators import PUBLIC_KEY_BYTES, identity_of
from trailboss.primitives.errors import ConfigurationError

PUBLIC_TYPE: Final = "tendermint/PubKeyEd25519"
PRIVATE_TYPE: Final = "tendermint/PrivKeyEd25519"


def new_key(seed: str | None, purpose: str) -> Ed25519PrivateKey:
    """Return a key: a random one, or for a seed always the same one for a purpose, known to all who know the seed."""
    if seed is None:
        return Ed25519PrivateKey.generate()
    return Ed25519PrivateKey.from_private_bytes(domain_digest(b"trailboss-network-key", f"{seed}\0{purpose}".encode()))


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    """Return the public key, 32 bytes."""
    return key.public_key().public_bytes_raw()


def validator_key_text(key: Ed25519PrivateKey) -> str:
    """Return the file of a validator's key, ``priv_validator_key.json``."""
    public = public_bytes(key)
    return json.dumps(
        {
            "address": identity_of(public).hex().upper(),
            "pub_key": {"type": PUBLIC_TYPE, "value": b64encode(public).decode()},
            "priv_key": _private(key),
        },
        indent=2,
    )


def node_key_text(key: Ed25519PrivateKey) -> str:
    """Return the file of a node's own key, ``node_key.json``."""
    return json.dumps({"priv_key": _private(key)}, indent=2)


def read_public_key(path: Path) -> bytes:
    """Return the public key of a key's file, 32 bytes: of either kind.

    Raises:
        ConfigurationError: If the file is missing, or holds no such key.
    """
    try:
        table: Any = json.loads(path.read_text())
        private = table["priv_key"]
        octets = b64decode(private["value"], validate=True)
        if private["type"] != PRIVATE_TYPE or len(octets) != 2 * PUBLIC_KEY_BYTES:
            raise ValueError(private["type"])
        seed, stated = octets[:PUBLIC_KEY_BYTES], octets[PUBLIC_KEY_BYTES:]
    except FileNotFoundError:
        raise ConfigurationError(f"{path} is missing: a node has two keys, and keeps them") from None
    except (OSError, ValueError, KeyError, TypeError, Base64Error) as error:
        raise ConfigurationError(f"{path} holds no Ed25519 key of the engine's form: {error}") from None
    if public_bytes(Ed25519PrivateKey.from_private_bytes(seed)) != stated:
        raise ConfigurationError(f"{path}: the public half of the key is not that of the private half")
    return stated


def _private(key: Ed25519PrivateKey) -> dict[str, str]:
    return {"type": PRIVATE_TYPE, "value": b64encode(key.private_bytes_raw() + public_bytes(key)).decode()}
