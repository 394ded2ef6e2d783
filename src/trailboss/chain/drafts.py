"""Transactions for people: drafted with sensible limits and fee caps, signed, and built into a block of their own."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from trailboss.chain.reader import ChainReader
from trailboss.crypto.digest import keccak256
from trailboss.crypto.signatures import address_of
from trailboss.governance.rules import Rules
from trailboss.model.actors import encode_manifest
from trailboss.model.transactions import DeployActor, Instruction, Transaction, derive_actor_address, sign_transaction
from trailboss.primitives.octets import Address

CYCLES_LIMIT: Final = 5_000_000
CELLS_LIMIT: Final = 250_000


class Terms(Struct, frozen=True, kw_only=True):
    """What a transaction may use, and what it offers for it. Prices are base units a unit."""

    cycles_limit: int = CYCLES_LIMIT  # most cycles it may use
    cells_limit: int = CELLS_LIMIT  # most cells it may use
    max_fee_per_cycle: int | None = None  # most a cycle may cost; None for twice the basefee plus the tip
    max_fee_per_cell: int | None = None  # most a cell may cost; None for twice the basefee plus the tip
    max_priority_fee_per_cycle: int = 0  # tip a cycle
    max_priority_fee_per_cell: int = 0  # tip a cell


DEFAULT_TERMS: Final = Terms()


def draft_transaction(
    chain: ChainReader, instruction: Instruction, private_key: bytes, *, terms: Terms = DEFAULT_TERMS, waiting: int = 0
) -> Transaction:
    """Return an instruction as a signed transaction that the chain's next block can hold.

    The private key has 32 bytes; ``waiting`` counts the sender's transactions before it that no block holds yet.

    Raises:
        Rejection: ``OVERFLOW`` or ``INVALID_DATA`` for what has no encoding, such as an amount of more than 64 bits.
    """
    unsigned = draft_unsigned(chain, instruction, address_of(private_key), terms=terms, waiting=waiting)
    return sign_transaction(unsigned, private_key)


def draft_unsigned(
    chain: ChainReader, instruction: Instruction, sender: Address, *, terms: Terms = DEFAULT_TERMS, waiting: int = 0
) -> Transaction:
    """Return an instruction as an unsigned transaction, which only a development chain takes; as `draft_transaction`.

    Decision: D-69
    """
    terms = capped(terms, chain.rules())
    account = chain.account(sender)
    return Transaction(
        sender=sender,
        chain_id=chain.genesis.chain_id,
        nonce=(0 if account is None else account.nonce) + waiting,
        instruction=instruction,
        cycles_limit=terms.cycles_limit,
        cells_limit=terms.cells_limit,
        max_fee_per_cycle=terms.max_fee_per_cycle or 0,
        max_fee_per_cell=terms.max_fee_per_cell or 0,
        max_priority_fee_per_cycle=terms.max_priority_fee_per_cycle,
        max_priority_fee_per_cell=terms.max_priority_fee_per_cell,
    )


def capped(terms: Terms, rules: Rules) -> Terms:
    """Return terms with both fee caps: by default twice the basefee plus the tip."""
    cycle_basefee, cell_basefee = rules.user_basefees()
    return replace(
        terms,
        max_fee_per_cycle=_cap(terms.max_fee_per_cycle, cycle_basefee, terms.max_priority_fee_per_cycle),
        max_fee_per_cell=_cap(terms.max_fee_per_cell, cell_basefee, terms.max_priority_fee_per_cell),
    )


def draft_deployment(
    deployer: Address,
    code: bytes,
    salt: bytes,
    *,
    init_handler: str | None = None,
    init_payload: bytes = b"",
    entitlements: Iterable[str] = (),
) -> tuple[DeployActor, Address]:
    """Return the instruction that deploys an actor, and the address that the actor will have.

    Args:
        deployer: Who deploys and owns it.
        code: Source, UTF-8.
        salt: At most 32 bytes; the same code with another salt is another actor.
        init_handler: What the creation call runs; None for ``init``, else ``deploy``, whichever the source has.
        init_payload: Argument of the creation call.
        entitlements: What its manifest declares.
    """
    manifest = encode_manifest(entitlements)
    instruction = DeployActor(
        code=code, salt=salt, init_handler=init_handler, init_payload=init_payload, manifest=manifest
    )
    return instruction, derive_actor_address(deployer, salt, keccak256(code))


def _cap(given: int | None, basefee: int, tip: int) -> int:
    return 2 * basefee + tip if given is None else given
