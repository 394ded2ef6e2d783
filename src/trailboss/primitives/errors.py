"""The whole error family.

```text
TrailbossError
├─ Rejection          somebody asked for what the rules do not allow: reason, facts, nothing changed
├─ ConfigurationError a genesis, preset or override that cannot be: raised before a chain exists
├─ StorageError       files that cannot be used: in use, missing, damaged, foreign, of another version, or not writable
├─ ProofError         a proof that proves nothing
└─ InvariantError     the chain itself is wrong: it stops, it never limps on
```

A refusal always names the value and the rule. Its reason has a stable slug and, where the public node has one, the
public code; receipts and vectors carry both.

Source: spec/cowboy-facts.md §8 (codes), §2.8 (host codes: the receipt code is 1200 + host code).
"""

from enum import Enum
from typing import Final, NamedTuple

from msgspec import Struct, field


class _Rule(NamedTuple):
    code: int
    slug: str
    why: str
    fix: str


class RejectionReason(Enum):
    """Every reason for which something is refused: public code, slug, why it is a rule, how to mend it."""

    INVALID_SIGNATURE = _Rule(
        1001,
        "invalid_signature",
        "a transaction must be signed by the key of its from address over its signing hash",
        "sign the transaction again, after its last change, with the sender's key",
    )
    NONCE_MISMATCH = _Rule(
        1002,
        "nonce_mismatch",
        "a transaction applies once, in the order of its sender's nonces",
        "use the sender's present nonce",
    )
    INSUFFICIENT_BALANCE = _Rule(
        1003, "insufficient_balance", "an account can give only what it holds", "fund the account or send less"
    )
    INSUFFICIENT_GAS_BALANCE = _Rule(
        1004,
        "insufficient_gas_balance",
        "the sender must be able to pay every limit at its fee cap before execution",
        "fund the sender, or lower the limits or the fee caps",
    )
    OUT_OF_CYCLES = _Rule(
        1005, "out_of_cycles", "execution may not use more cycles than its limit", "raise cycles_limit or do less"
    )
    OUT_OF_CELLS = _Rule(
        1006, "out_of_cells", "execution may not use more cells than its limit", "raise cells_limit or write less"
    )
    OVERFLOW = _Rule(1007, "overflow", "numbers have a fixed width", "use a value within the range")
    BASEFEE_TOO_LOW = _Rule(
        1008,
        "basefee_too_low",
        "a fee cap must cover the basefee of the block",
        "raise max_fee_per_cycle and max_fee_per_cell to the present basefees or above",
    )
    CHAIN_ID_MISMATCH = _Rule(
        1011, "chain_id_mismatch", "a transaction is signed for one chain", "sign it for this chain's id"
    )
    BLOCK_FULL = _Rule(
        1012, "block_full", "a block's cycles and cells are capped", "send it in a later block or lower its limits"
    )
    NON_DETERMINISTIC_CODE = _Rule(
        1101,
        "non_deterministic_code",
        "an actor's code must give the same result on every node",
        "remove the construct at the line and column named",
    )
    INVALID_INPUT = _Rule(
        1202, "invalid_input", "a host call checks its arguments", "pass a value that the rule allows"
    )
    NOT_FOUND = _Rule(1203, "not_found", "the thing named must exist", "check the address or the id")
    FORBIDDEN = _Rule(
        1205, "forbidden", "this frame may not do that", "do it from a frame that may: not read-only, not too deep"
    )
    MISSING_ENTITLEMENT = _Rule(
        1207,
        "missing_entitlement",
        "where entitlements are enforced, an actor may do what the manifest of its deployment declares",
        "deploy it with the entitlement: trailboss deploy --entitlement, LocalChain.deploy(entitlements=…)",
    )
    UNSUPPORTED = _Rule(
        1209,
        "unsupported",
        "a host call is there if the specifications need it and, if it is about timers, the chain's mechanism has it",
        "use a call that is there",
    )
    PVM_ERROR = _Rule(
        1210,
        "pvm_error",
        "an exception that leaves a handler reverts its frame",
        "correct the line that raises it, or handle the exception there",
    )
    UNAUTHORIZED = _Rule(
        1211,
        "unauthorized",
        "system instructions are for system_deployers, an actor's code for its owner",
        "send it from an authorized account",
    )
    UNSUPPORTED_INSTRUCTION = _Rule(
        1212,
        "unsupported_instruction",
        "this chain executes the instructions that timers need; others are refused by name",
        "use one of the supported instructions",
    )
    INVALID_DATA = _Rule(
        1213, "invalid_data", "what is given must have the form that is asked for", "give it in that form"
    )
    ACTOR_NOT_FOUND = _Rule(1220, "actor_not_found", "an instruction needs its actor to exist", "deploy it first")
    ACTOR_EXISTS = _Rule(
        1221, "actor_exists", "an address is deployed once", "use another salt, or UpgradeActor to change its code"
    )
    HANDLER_NOT_FOUND = _Rule(
        1223, "handler_not_found", "the actor's code must define the handler", "define it, or name another"
    )
    ACCOUNT_EXISTS = _Rule(1224, "account_exists", "an account is created once", "use the account that is there")
    MAILBOX_FULL = _Rule(1226, "mailbox_full", "pending messages are bounded", "send fewer messages a block")
    OUT_OF_MEMORY = _Rule(
        1227, "out_of_memory", "a frame's memory and recursion are bounded", "hold less, recurse less"
    )
    CALL_NOT_PERMITTED = _Rule(
        1230,
        "call_not_permitted",
        "init and deploy run once, when the actor is created",
        "give the handler another name",
    )
    TIMER_LIMIT = _Rule(
        1501, "timer_limit", "an actor holds a bounded number of live timers", "cancel timers or wait for them to fire"
    )
    INVALID_DEFERRED = _Rule(
        1502,
        "invalid_deferred_tx",
        "a deferred transaction runs on the gas that the execution which creates it has left",
        "raise cycles_limit, or create it before the gas is used",
    )
    UNAUTHORIZED_TIMER = _Rule(
        1503, "unauthorized_timer", "only its owner may cancel or extend a timer", "call it from the owning actor"
    )
    TIMER_BELOW_BASEFEE = _Rule(
        1504,
        "timer_rejected_below_basefee",
        "a timer's fee cap must cover the lane basefee when it is scheduled",
        "raise max_fee_per_cycle to the present lane basefee or above, or leave it out",
    )
    TIMER_ARGUMENT_DEPRECATED = _Rule(
        1505,
        "timer_arg_deprecated",
        "the lane has no bids: what a timer offers is max_fee_per_cycle and max_priority_fee_per_cycle",
        "leave the argument out",
    )
    ERR_INVALID_PARAM = _Rule(
        1511, "ERR_INVALID_PARAM", "Globalbox checks what a timer is set with", "pass a value that the rule allows"
    )
    ERR_TARGET_NOT_FOUND = _Rule(
        1512, "ERR_TARGET_NOT_FOUND", "a timer of Globalbox calls an actor that is there", "deploy the target first"
    )
    ERR_TIMER_NOT_FOUND = _Rule(
        1513,
        "ERR_TIMER_NOT_FOUND",
        "only a timer of this owner and target can be changed",
        "check target and timer_id; an ended timer is forgotten after a while",
    )
    ERR_QUOTA_EXCEEDED = _Rule(
        1514,
        "ERR_QUOTA_EXCEEDED",
        "owners and targets hold a bounded number of live timers",
        "cancel timers or wait for them to fire",
    )
    ERR_UNSUPPORTED_TIMER_TYPE = _Rule(
        1515,
        "ERR_UNSUPPORTED_TIMER_TYPE",
        "a timer fires at a block height or at a change of state; there is no clock",
        "give a height, or the keys to watch",
    )
    INVALID_PARAMETER = _Rule(
        1601,
        "invalid_parameter",
        "governed parameters have ranges and relations",
        "propose a value that satisfies them",
    )
    MEMPOOL_FULL = _Rule(
        1901,
        "mempool_full",
        "a node keeps a bounded number of transactions and bytes waiting, and so many of one sender; those that offer "
        "the lowest tips, or that cannot run yet, make room for better ones",
        "offer a higher tip, or send it again later",
    )
    REPLACEMENT_UNDERPRICED = _Rule(
        1902,
        "replacement_underpriced",
        "a transaction takes the place of a waiting one of the same nonce if it raises both tips and both fee caps by "
        "a tenth, and the tip per cycle by one base unit at least",
        "raise all four, or wait for the other transaction",
    )
    NONCE_GAP = _Rule(
        1903,
        "nonce_gap",
        "a node keeps transactions waiting only a bounded number of nonces ahead of their sender's",
        "send the transactions that come before it first",
    )
    ALREADY_KNOWN = _Rule(
        1904, "already_known", "a transaction waits once", "nothing: it is there; ask for its receipt by its hash"
    )
    EXPIRED = _Rule(
        1905,
        "expired",
        "a transaction that no block has taken does not wait for ever",
        "send it again, with the fees of the day",
    )
    REPLACED = _Rule(
        1906,
        "replaced",
        "of two transactions with the same sender and nonce one can be in the chain",
        "follow the other transaction",
    )
    WITHDRAWN = _Rule(
        1907,
        "withdrawn",
        "going back to a snapshot takes back what has been sent since",
        "send it again",
    )

    NO_RUNNER = _Rule(
        1920,
        "no_runner",
        "runner jobs are done by another part of the network, which this chain does not have: no reply would come",
        "try the continuation with cowboy_sdk.testing.SimulatedChain; here, have a transaction bring the answer",
    )

    @property
    def code(self) -> int:
        """The public error code, 1001..1900; from 1901 on those of our own, which the public node does not have."""
        return self.value.code

    @property
    def slug(self) -> str:
        """The stable name that receipts and vectors carry."""
        return self.value.slug


Fact = int | str | bool | None


class ErrorObject(Struct, frozen=True):
    """What a receipt says of a failure, in the public shape.

    Attributes:
        code: Public error code.
        slug: Stable name of the reason.
        what: What happened, with the values.
        why: The rule behind it.
        fix: What to do about it.
        context: The facts, by name.
    """

    code: int
    slug: str
    what: str
    why: str
    fix: str
    context: dict[str, Fact] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"E{self.code} {self.slug}: {self.what} ({self.why}; {self.fix})"


class TrailbossError(Exception):
    """Base of everything this package raises on purpose."""


class Rejection(TrailbossError):
    """A request that the rules do not allow; nothing has changed.

    Attributes:
        reason: Which rule.
        what: What was asked, with the offending value.
        fix: What to do about it in this case; empty for what the reason says.
        context: The facts, by name.
    """

    def __init__(self, reason: RejectionReason, what: str, fix: str = "", /, **context: Fact) -> None:
        super().__init__(reason, what)
        self.reason = reason
        self.what = what
        self.fix = fix
        self.context = context

    def __str__(self) -> str:
        return str(self.error())

    def error(self) -> ErrorObject:
        """Return the refusal as the record that receipts carry."""
        rule = self.reason.value
        return ErrorObject(rule.code, rule.slug, self.what, rule.why, self.fix or rule.fix, dict(self.context))


class ConfigurationError(TrailbossError):
    """A genesis, preset or override that cannot be; the message names path, value and rule."""


class StorageError(TrailbossError):
    """Files that cannot be used as they are. They have not been changed, or not beyond the last block acknowledged.

    Attributes:
        path: The file or directory.
        what: What is wrong with it.
        fix: What to do about it.
    """

    def __init__(self, path: object, what: str, fix: str) -> None:
        super().__init__(str(path), what, fix)
        self.path = str(path)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.path}: {self.what} ({self.fix})"


class ProofError(TrailbossError):
    """A proof that does not hold against the root, or has no proof's form; the message says which step failed."""


class ViewGoneError(TrailbossError):
    """Blocks that a view of a chain cannot show any more, because the chain has gone back; a new view has others.

    Attributes:
        height: Height of the view.
        lowest: Height that the chain has gone back to since; the view still has the blocks up to there.
    """

    def __init__(self, height: int, lowest: int) -> None:
        super().__init__(height, lowest)
        self.height = height
        self.lowest = lowest

    def __str__(self) -> str:
        return f"the chain has gone back to block {self.lowest}: the view of block {self.height} lacks those above it"


class InvariantError(TrailbossError):
    """The chain contradicts itself. It stops here; this is a bug, never a user's mistake."""


HOST_CODE_BASE: Final = 1200
"""A reason whose code is this plus 1..=8 is one of the public host's own; programs see the small number."""
