"""What development chains start from: ten funded accounts and a deployer, with keys that everybody knows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trailboss.crypto.digest import domain_digest
from trailboss.crypto.signing import address_of
from trailboss.execution.genesis import Genesis
from trailboss.primitives.octets import Address
from trailboss.primitives.units import BASE_UNITS_PER_CBY

CHAIN_ID: Final = 1
ACCOUNT_COUNT: Final = 10
ACCOUNT_BALANCE: Final = 1_000_000 * BASE_UNITS_PER_CBY
"""Base units that every account holds at genesis."""
DEPLOYER: Final = "deployer"
PROPOSER: Final = "proposer"
ACCOUNT_NAMES: Final = tuple(f"account {index}" for index in range(ACCOUNT_COUNT))


@dataclass(frozen=True, slots=True)
class DevelopmentAccount:
    """An account whose key is known to everybody: it must never hold anything of worth.

    Attributes:
        name: ``account 0`` to ``account 9``, ``deployer`` or ``proposer``.
        address: Its address.
        private_key: 32 bytes.
    """

    name: str
    address: Address
    private_key: bytes


def development_account(name: str) -> DevelopmentAccount:
    """Return the account of that name; its key is a digest of the name."""
    private_key = domain_digest(b"trailboss-test-account", name.encode())
    return DevelopmentAccount(name, address_of(private_key), private_key)


def development_genesis(
    *, preset: str = "mainnet", mechanism: str = "fifo", overrides: Mapping[str, int] | None = None
) -> Genesis:
    """Return a genesis in which the ten accounts and the deployer are funded, and the deployer may govern.

    Args:
        preset: Parameter preset.
        mechanism: Scheduling mechanism.
        overrides: Parameters that differ from the preset, by dotted path.
    """
    deployer = development_account(DEPLOYER).address
    funded = [*(development_account(name).address for name in ACCOUNT_NAMES), deployer]
    return Genesis(
        chain_id=CHAIN_ID,
        preset=preset,
        mechanism=mechanism,
        proposer=development_account(PROPOSER).address,
        system_deployers=(deployer,),
        accounts=dict.fromkeys(funded, ACCOUNT_BALANCE),
        overrides=dict(overrides or {}),
    )
