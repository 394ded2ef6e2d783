"""Genesis: what a chain is before its first block, from TOML or from values, to its first state.

```toml
chain_id = 1
preset = "mainnet"
proposer = "0x…"
system_deployers = ["0x…"]
development = false
image = "0x…"

[accounts]
"0x…" = 1_000_000_000_000

[params]
"timers.max_timers_per_actor" = 2_048

[[validators]]
public_key = "0x…"
power = 10
fee_account = "0x…"
```
"""

import tomllib
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from trailboss.codec.canonical import decode_canonical, encode_canonical
from trailboss.codec.toml import table_text
from trailboss.crypto.digest import domain_digest
from trailboss.governance.markets import GENESIS_RECORDS
from trailboss.governance.rules import DEPLOYERS_KEY, ECONOMY_KEY
from trailboss.mechanisms.registry import GENESIS_PARAMS, build_mechanism
from trailboss.model.actors import Account, encode_account
from trailboss.model.blocks import HEADER_VERSION, Block, Header, header_hash
from trailboss.model.configs import Economy, amount_octets, encode_record
from trailboss.model.validators import POWER_MAX, PUBLIC_KEY_BYTES, Validator
from trailboss.params import ChainParams, load_params
from trailboss.primitives.errors import ConfigurationError, Rejection
from trailboss.primitives.octets import ZERO_HASH, Address
from trailboss.primitives.units import U64_MAX, U128_MAX
from trailboss.state.keys import account_key
from trailboss.state.store import Store

Kind = TypeVar("Kind", list[Any], dict[Any, Any], str, bool, bytes)
ACTIVATION: Final = "lane.activation_height"
DEVELOPMENT: Final = "development"
IMAGE: Final = "image"
IMAGE_BYTES: Final = 32
VALIDATORS: Final = "validators"
OPTIONAL_KEYS: Final = (DEVELOPMENT, IMAGE, VALIDATORS)
SHOWN_DIGITS: Final = 12  # of the digest of a genesis in the engine's name of a chain, which has room for 50 characters
ENCODED_KEYS: Final = ("chain_id", "preset", "mechanism", "proposer", "system_deployers", "accounts", "params")
KEYS: Final = (*ENCODED_KEYS, *OPTIONAL_KEYS)
VALIDATOR_KEYS: Final = ("public_key", "power", "fee_account")


class Genesis(Struct, frozen=True, kw_only=True):
    """What a chain starts from."""

    chain_id: int  # transactions are signed for it; unsigned, 64 bits
    preset: str = "mainnet"
    mechanism: str = "fifo"
    proposer: Address  # who gets the tips
    system_deployers: tuple[Address, ...] = ()
    # Balance in base units by address; the supply is their sum.
    accounts: Mapping[Address, int] = field(default_factory=dict)
    overrides: Mapping[str, int] = field(default_factory=dict)  # parameters that differ from the preset, by dotted path
    # Whether the chain takes unsigned transactions, set balances and moved timers. Decision: D-69.
    development: bool = False
    # Digest of the sandbox's image that runs its actors, 32 bytes; empty for the native engine. Decision: D-102.
    image: bytes = b""
    # Who votes on the blocks of a network; empty for a chain that one node runs. Decision: D-103.
    validators: tuple[Validator, ...] = ()

    @property
    def allows_breakpoints(self) -> bool:
        """Whether actors may have the statement ``breakpoint()``. Decision: D-118."""
        return self.development and not self.image

    def params(self) -> ChainParams:
        """Return the chain's parameters; see `load_params` for what it refuses."""
        overrides = dict(self.overrides)
        path, value = GENESIS_PARAMS.get(self.mechanism, ("", 0))
        if path and overrides.setdefault(path, value) != value:
            raise ConfigurationError(
                f"{path} = {overrides[path]} contradicts mechanism {self.mechanism!r}, which is active from block 1; "
                f"start with another mechanism to activate the {self.mechanism} later"
            )
        return load_params(self.preset, overrides)

    def instance_id(self) -> bytes:
        """Return the digest of all of it, 32 bytes: two chains with one id still differ in this."""
        return domain_digest(b"cowboy-genesis-v1", encode_genesis(self))

    def proposer_of(self, account: bytes) -> Address:
        """Return who gets the tips of a block that states an account: that, if a validator has it, else `proposer`."""
        return next((each.fee_account for each in self.validators if each.fee_account == account), self.proposer)

    def engine_chain_id(self) -> str:
        """Return the name that a network's engine signs blocks under: it binds them to this genesis."""
        return f"trailboss-{self.chain_id}-{self.instance_id().hex()[:SHOWN_DIGITS]}"


def encode_genesis(genesis: Genesis) -> bytes:
    """Return the canonical CBOR of a genesis: a map of its fields by their TOML names.

    Only a development chain, one that runs the sandbox and a network have those fields. Decision: D-69, D-102, D-103.
    """
    table: dict[str, object] = {
        "chain_id": genesis.chain_id,
        "preset": genesis.preset,
        "mechanism": genesis.mechanism,
        "proposer": bytes(genesis.proposer),
        "system_deployers": [bytes(address) for address in genesis.system_deployers],
        "accounts": {bytes(address): balance for address, balance in genesis.accounts.items()},
        "params": dict(genesis.overrides),
    }
    if genesis.development:
        table[DEVELOPMENT] = True
    if genesis.image:
        table[IMAGE] = genesis.image
    if genesis.validators:
        table[VALIDATORS] = [[each.public_key, each.power, bytes(each.fee_account)] for each in genesis.validators]
    return encode_canonical(table)


def decode_genesis(encoded: bytes) -> Genesis:
    """Return a genesis from the bytes of `encode_genesis`; `ConfigurationError` names the value and the rule."""
    try:
        table = decode_canonical(encoded)
    except Rejection as rejection:
        raise ConfigurationError(f"genesis is not canonical: {rejection.what}") from None
    if not isinstance(table, dict) or table.keys() - set(OPTIONAL_KEYS) != set(ENCODED_KEYS):
        raise ConfigurationError(f"an encoded genesis is a map of exactly: {', '.join(ENCODED_KEYS)}")
    if table.get(DEVELOPMENT, True) is not True:
        raise ConfigurationError(
            f"an encoded genesis has {DEVELOPMENT} = true or not at all, not {table[DEVELOPMENT]!r}"
        )
    return _checked(table, is_text=False)


def parse_genesis(text: str) -> Genesis:
    """Read a genesis from TOML; `ConfigurationError` names key, value and rule."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"genesis is not TOML: {error}") from None
    unknown = sorted(table.keys() - set(KEYS))
    if unknown:
        raise ConfigurationError(f"unknown genesis keys {', '.join(unknown)}; there are: {', '.join(KEYS)}")
    for name in ("chain_id", "proposer"):
        if name not in table:
            raise ConfigurationError(f"genesis lacks {name}")
    return _checked(table, is_text=True)


def genesis_text(genesis: Genesis) -> str:
    """Return a genesis as TOML, from which `parse_genesis` reads an equal one."""
    keys: dict[str, object] = {
        "chain_id": genesis.chain_id,
        "preset": genesis.preset,
        "mechanism": genesis.mechanism,
        "proposer": str(genesis.proposer),
        "system_deployers": [str(address) for address in genesis.system_deployers],
    }
    if genesis.development:
        keys[DEVELOPMENT] = True
    if genesis.image:
        keys[IMAGE] = f"0x{genesis.image.hex()}"
    accounts = {str(address): balance for address, balance in genesis.accounts.items()}
    parts = [table_text("", keys), table_text("[accounts]", accounts), table_text("[params]", genesis.overrides)]
    for each in genesis.validators:
        values = (f"0x{each.public_key.hex()}", each.power, str(each.fee_account))
        parts.append(table_text(f"[[{VALIDATORS}]]", dict(zip(VALIDATOR_KEYS, values, strict=True))))
    return "\n".join(parts)


def check_genesis(genesis: Genesis) -> ChainParams:
    """Refuse a genesis that no chain could start from with `ConfigurationError`; return its parameters."""
    params = genesis.params()
    keeps = build_mechanism(genesis.mechanism, params).policy.keeps
    if keeps in GENESIS_RECORDS and params.lane.activation_height:
        raise ConfigurationError(
            f"{ACTIVATION} = {params.lane.activation_height} contradicts mechanism {genesis.mechanism!r}: the lane "
            "succeeds fifo alone"
        )
    if len(genesis.image) not in (0, IMAGE_BYTES):
        raise ConfigurationError(f"genesis image has {len(genesis.image)} bytes; a digest has {IMAGE_BYTES}")
    _check_validators(genesis)
    supply = sum(genesis.accounts.values())
    if supply > U128_MAX:
        raise ConfigurationError(f"the genesis accounts hold {supply} base units, more than 128 bits")
    return params


def apply_genesis(genesis: Genesis, store: Store) -> Block:
    """Write the first state and return block 0. What `check_genesis` refuses leaves the store unchanged."""
    # CHECK
    params = check_genesis(genesis)
    # RUN
    changes: dict[bytes, bytes | None] = {
        account_key(address): encode_account(Account(balance=amount_octets(balance)))
        for address, balance in genesis.accounts.items()
    }
    supply = sum(genesis.accounts.values())
    changes[ECONOMY_KEY] = encode_record(Economy(amount_octets(supply), amount_octets(0)))
    kept = GENESIS_RECORDS.get(build_mechanism(genesis.mechanism, params).policy.keeps)
    if kept is not None:
        changes[kept[0]] = encode_record(kept[1])
    if genesis.system_deployers:
        changes[DEPLOYERS_KEY] = b"".join(genesis.system_deployers)
    state_root = store.commit(0, changes)
    header = Header(
        version=HEADER_VERSION,
        chain_id=genesis.chain_id,
        height=0,
        parent=ZERO_HASH,
        timestamp_ms=params.governance.genesis_timestamp_ms,
        proposer=genesis.proposer,
        transactions_root=ZERO_HASH,
        receipts_root=ZERO_HASH,
        state_root=state_root,
        cycle_basefee=amount_octets(params.fees.genesis_cycle_basefee),
        cell_basefee=amount_octets(params.fees.genesis_cell_basefee),
        cycles_used=0,
        cells_used=0,
        timer_cycles_used=0,
    )
    return Block(header=header, hash=header_hash(header))


def _checked(table: Mapping[str, Any], *, is_text: bool) -> Genesis:
    """Return the checked genesis of a table whose addresses are text or bytes."""

    def address(name: str, value: Any) -> Address:
        try:
            return Address.parse(_of(name, value, str, "text")) if is_text else Address(value)
        except Rejection as rejection:
            raise ConfigurationError(f"genesis {name}: {rejection.what}") from None

    accounts: dict[Address, int] = {}
    for each, balance in _of("accounts", table.get("accounts", {}), dict, "a table").items():
        account = address("accounts", each)
        if account in accounts:
            raise ConfigurationError(f"genesis accounts names {account} twice")
        accounts[account] = _integer(f"accounts.{account}", balance, U128_MAX)

    def validator(at: int, value: Any) -> Validator:
        name = f"{VALIDATORS}[{at}]"
        if is_text:
            value = _of(name, value, dict, "a table")
            if value.keys() != set(VALIDATOR_KEYS):
                raise ConfigurationError(f"genesis {name} has exactly the keys {', '.join(VALIDATOR_KEYS)}")
            value = [value[key] for key in VALIDATOR_KEYS]
        elif len(_of(name, value, list, "a list")) != len(VALIDATOR_KEYS):
            raise ConfigurationError(f"genesis {name} is a list of {', '.join(VALIDATOR_KEYS)}")
        public_key, power, account = value
        if is_text:
            public_key = _octets(f"{name}.public_key", public_key)
        return Validator(
            public_key=_of(f"{name}.public_key", public_key, bytes, "bytes"),
            power=_integer(f"{name}.power", power, POWER_MAX),
            fee_account=address(f"{name}.fee_account", account),
        )

    validators = _of(VALIDATORS, table.get(VALIDATORS, []), list, "a list")
    image = table.get(IMAGE, "" if is_text else b"")
    deployers = _of("system_deployers", table.get("system_deployers", []), list, "a list")
    overrides = _of("params", table.get("params", {}), dict, "a table")
    genesis = Genesis(
        chain_id=_integer("chain_id", table["chain_id"], U64_MAX),
        preset=_of("preset", table.get("preset", "mainnet"), str, "text"),
        mechanism=_of("mechanism", table.get("mechanism", "fifo"), str, "text"),
        proposer=address("proposer", table["proposer"]),
        system_deployers=tuple(address("system_deployers", each) for each in deployers),
        accounts=accounts,
        overrides={_of("params", path, str, "text"): value for path, value in overrides.items()},
        development=_of(DEVELOPMENT, table.get(DEVELOPMENT, False), bool, "true or false"),
        image=_octets(IMAGE, image) if is_text else _of(IMAGE, image, bytes, "bytes"),
        validators=tuple(validator(at, each) for at, each in enumerate(validators)),
    )
    check_genesis(genesis)
    return genesis


def _check_validators(genesis: Genesis) -> None:
    validators = genesis.validators
    for at, validator in enumerate(validators):
        if len(validator.public_key) != PUBLIC_KEY_BYTES:
            what = f"has {len(validator.public_key)} bytes; an Ed25519 public key has {PUBLIC_KEY_BYTES}"
            raise ConfigurationError(f"genesis {VALIDATORS}[{at}].public_key {what}")
        if validator.power < 1:
            raise ConfigurationError(f"genesis {VALIDATORS}[{at}].power = {validator.power} must be 1 or more")
    if len({validator.public_key for validator in validators}) < len(validators):
        raise ConfigurationError(f"genesis {VALIDATORS} names a public key twice")
    power = sum(validator.power for validator in validators)
    if power > POWER_MAX:
        raise ConfigurationError(f"genesis {VALIDATORS} have {power} votes together, above {POWER_MAX}")
    if validators and genesis.development:
        raise ConfigurationError(
            f"genesis {DEVELOPMENT} = true contradicts {VALIDATORS}: a development chain takes unsigned transactions"
        )


def _octets(name: str, value: Any) -> bytes:
    text = _of(name, value, str, "text")
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise ConfigurationError(f"genesis {name} = {value!r} must be 0x and 64 hexadecimal digits") from None


def _of(name: str, value: Any, kind: type[Kind], wanted: str) -> Kind:
    if not isinstance(value, kind):
        raise ConfigurationError(f"genesis {name} = {value!r} must be {wanted}")
    return value


def _integer(name: str, value: Any, maximum: int) -> int:
    if type(value) is not int or not 0 <= value <= maximum:
        raise ConfigurationError(f"genesis {name} = {value!r} must be an integer within 0..={maximum}")
    return value
