"""What the peers of a node understand: Ethereum's transactions and JSON-RPC, as much of them as a transfer needs."""

import json
from collections.abc import Sequence
from typing import Any, Final

from trailboss.crypto.digest import keccak256
from trailboss.crypto.signatures import sign

CHAIN_ID: Final = 31_337  # of Anvil's and Hardhat's development chains
GAS: Final = 21_000
GAS_PRICE: Final = 10**10
KEY: Final = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
"""Of the first account that both fund; its mnemonic is printed in their documentation."""
PROTECTED: Final = 35  # what a protected signature's v begins with. Source: EIP-155
_STRING, _LIST = 0x80, 0xC0
_SHORT_MAX: Final = 55  # bytes whose number stands in the first one

Item = int | bytes | Sequence["Item"]


def rlp(item: Item) -> bytes:
    """Return a number, bytes or a list of them in Ethereum's encoding."""
    if isinstance(item, int):
        item = item.to_bytes((item.bit_length() + 7) // 8, "big")
    if isinstance(item, bytes):
        return item if len(item) == 1 and item[0] < _STRING else _headed(_STRING, item)
    return _headed(_LIST, b"".join(map(rlp, item)))


def _headed(kind: int, content: bytes) -> bytes:
    if len(content) <= _SHORT_MAX:
        return bytes([kind + len(content)]) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([kind + _SHORT_MAX + len(length)]) + length + content


def transfer(nonce: int, to: bytes) -> str:
    """Return a signed transfer of one wei, as JSON-RPC takes it."""
    fields: list[Item] = [nonce, GAS_PRICE, GAS, to, 1, b""]
    signature = sign(keccak256(rlp([*fields, CHAIN_ID, 0, 0])), KEY)
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    return "0x" + rlp([*fields, 2 * CHAIN_ID + PROTECTED + signature[64], r, s]).hex()


def call(method: str, *parameters: Any) -> bytes:
    """Return the body of a JSON-RPC call."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).encode()
