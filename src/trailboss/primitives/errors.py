"""The whole error family.

```text
TrailbossError
├─ Rejection          a request breaks a rule: reason and facts; nothing has changed
├─ ConfigurationError a genesis, preset or override is invalid; raised before a chain exists
├─ StorageError       files are in use, missing, damaged, foreign, of another version, or not writable
├─ ProofError         a proof does not hold
├─ ViewGoneError      a view's blocks are gone because the chain went back
└─ InvariantError     the chain contradicts itself; it stops
```

A refusal names the value and the rule. Its reason has a stable slug and, where the public node has one, the public
code; receipts and vectors carry both. Source: docs/spec/sources.md §8 (codes), §2.8 (host codes: the receipt code is
1200 + host code).
"""

from enum import Enum
from typing import Final, NamedTuple

from msgspec import Struct, field


class _Rule(NamedTuple):
    code: int
    slug: str
    why: str
    fix: str


# fmt: off
class RejectionReason(Enum):
    """Every reason for a refusal: public code, slug, the rule behind it, and what to do.

    Codes from 1901 on are our own; the public node does not have them.
    """

    INVALID_SIGNATURE = _Rule(1001, "invalid_signature",
        "a transaction is signed over its signing hash with the key of its from address",
        "sign the final transaction again with the sender's key")
    NONCE_MISMATCH = _Rule(1002, "nonce_mismatch",
        "a sender's transactions apply once each, in the order of their nonces", "use the sender's current nonce")
    INSUFFICIENT_BALANCE = _Rule(1003, "insufficient_balance", "an account can spend only what it holds",
        "fund the account or send less")
    INSUFFICIENT_GAS_BALANCE = _Rule(1004, "insufficient_gas_balance",
        "before execution the sender must hold every limit times its fee cap",
        "fund the sender, or lower the limits or the fee caps")
    OUT_OF_CYCLES = _Rule(1005, "out_of_cycles", "execution cannot use more cycles than its limit",
        "raise cycles_limit or do less")
    OUT_OF_CELLS = _Rule(1006, "out_of_cells", "execution cannot use more cells than its limit",
        "raise cells_limit or write less")
    OVERFLOW = _Rule(1007, "overflow", "numbers have a fixed width", "use a value within the range")
    BASEFEE_TOO_LOW = _Rule(1008, "basefee_too_low", "a fee cap must cover the block's basefee",
        "raise max_fee_per_cycle and max_fee_per_cell to at least the current basefees")
    CHAIN_ID_MISMATCH = _Rule(1011, "chain_id_mismatch", "a transaction is signed for one chain",
        "sign it for this chain's id")
    BLOCK_FULL = _Rule(1012, "block_full", "a block has a limit of cycles and cells",
        "send it in a later block or lower its limits")
    NON_DETERMINISTIC_CODE = _Rule(1101, "non_deterministic_code",
        "an actor's code must give the same result on every node", "remove the construct at the line and column shown")
    INVALID_INPUT = _Rule(1202, "invalid_input", "a host call checks its arguments",
        "pass a value that the rule allows")
    NOT_FOUND = _Rule(1203, "not_found", "the requested item does not exist", "check the address or the id")
    FORBIDDEN = _Rule(1205, "forbidden", "this frame does not have the permission",
        "do it from a frame that can write, at a lower call depth")
    MISSING_ENTITLEMENT = _Rule(1207, "missing_entitlement",
        "where entitlements are enforced, an actor can do only what its manifest declares",
        "deploy it with the entitlement: trailboss deploy --entitlement, LocalChain.deploy(entitlements=…)")
    UNSUPPORTED = _Rule(1209, "unsupported",
        "this chain has the host calls of the specifications, and its own mechanism's timer calls",
        "use a supported call")
    PVM_ERROR = _Rule(1210, "pvm_error", "an exception that leaves a handler reverts its frame",
        "correct the line that raises it, or handle the exception there")
    UNAUTHORIZED = _Rule(1211, "unauthorized",
        "only system_deployers send system instructions; only its owner changes an actor's code",
        "send it from an authorized account")
    UNSUPPORTED_INSTRUCTION = _Rule(1212, "unsupported_instruction",
        "this chain executes only the instructions that timers need", "use one of the supported instructions")
    INVALID_DATA = _Rule(1213, "invalid_data", "the data must have the required form", "correct the data")
    ACTOR_NOT_FOUND = _Rule(1220, "actor_not_found", "the instruction needs an existing actor", "deploy it first")
    ACTOR_EXISTS = _Rule(1221, "actor_exists", "an address is deployed once",
        "use another salt, or UpgradeActor to change its code")
    HANDLER_NOT_FOUND = _Rule(1223, "handler_not_found", "the actor's code must define the handler",
        "define it, or name another")
    ACCOUNT_EXISTS = _Rule(1224, "account_exists", "an account is created once", "use the existing account")
    MAILBOX_FULL = _Rule(1226, "mailbox_full", "the number of pending messages is limited",
        "send fewer messages per block")
    OUT_OF_MEMORY = _Rule(1227, "out_of_memory", "a frame has a limit of memory and of recursion",
        "use less memory or less recursion")
    CALL_NOT_PERMITTED = _Rule(1230, "call_not_permitted", "init and deploy run once, when the actor is created",
        "give the handler another name")
    TIMER_LIMIT = _Rule(1501, "timer_limit", "the number of an actor's live timers is limited",
        "cancel timers or wait until some fire")
    INVALID_DEFERRED = _Rule(1502, "invalid_deferred_tx",
        "a deferred transaction runs on the gas that is left of the execution creating it",
        "raise cycles_limit, or create it before the gas is used")
    UNAUTHORIZED_TIMER = _Rule(1503, "unauthorized_timer", "only its owner can cancel or extend a timer",
        "call it from the owning actor")
    TIMER_BELOW_BASEFEE = _Rule(1504, "timer_rejected_below_basefee",
        "a timer's fee cap must cover the lane basefee when it is scheduled",
        "raise max_fee_per_cycle to at least the current lane basefee, or leave it out")
    TIMER_ARGUMENT_DEPRECATED = _Rule(1505, "timer_arg_deprecated",
        "the lane has no bids: a timer offers max_fee_per_cycle and max_priority_fee_per_cycle",
        "leave the argument out")
    ERR_INVALID_PARAM = _Rule(1511, "ERR_INVALID_PARAM", "Globalbox checks the arguments of its calls",
        "pass a value that the rule allows")
    ERR_TARGET_NOT_FOUND = _Rule(1512, "ERR_TARGET_NOT_FOUND", "a timer of Globalbox calls an existing actor",
        "deploy the target first")
    ERR_TIMER_NOT_FOUND = _Rule(1513, "ERR_TIMER_NOT_FOUND",
        "only a live timer of this owner and target can be changed",
        "check target and timer_id; an ended timer is forgotten after a while")
    ERR_QUOTA_EXCEEDED = _Rule(1514, "ERR_QUOTA_EXCEEDED",
        "the number of live timers of an owner, and for a target, is limited", "cancel timers or wait until some fire")
    ERR_UNSUPPORTED_TIMER_TYPE = _Rule(1515, "ERR_UNSUPPORTED_TIMER_TYPE",
        "a timer fires at a height or on a change of watched state, not by time",
        "give a block height, or the keys to watch")
    INVALID_PARAMETER = _Rule(1601, "invalid_parameter", "governed parameters have ranges and relations",
        "propose a value that satisfies them")
    MEMPOOL_FULL = _Rule(1901, "mempool_full",
        "the mempool has a limit of transactions and bytes, in total and per sender; transactions with the lowest "
        "tips, and those that cannot run yet, give way to better ones", "offer a higher tip, or send it again later")
    REPLACEMENT_UNDERPRICED = _Rule(1902, "replacement_underpriced",
        "a transaction replaces a waiting one of the same nonce if it raises both tips and both fee caps by a tenth, "
        "and the tip per cycle by at least one base unit", "raise all four, or wait for the other transaction")
    NONCE_GAP = _Rule(1903, "nonce_gap",
        "the mempool keeps transactions only a limited number of nonces ahead of their sender's",
        "send the transactions that come before it first")
    ALREADY_KNOWN = _Rule(1904, "already_known", "the mempool holds a transaction once",
        "do nothing: it is waiting; query its receipt by its hash")
    EXPIRED = _Rule(1905, "expired", "a transaction leaves the mempool if no block includes it in time",
        "send it again with current fees")
    REPLACED = _Rule(1906, "replaced", "the chain includes one transaction of a sender and nonce",
        "follow the other transaction")
    WITHDRAWN = _Rule(1907, "withdrawn", "reverting to a snapshot withdraws the transactions sent since",
        "send it again")
    NO_RUNNER = _Rule(1920, "no_runner",
        "runner jobs need another part of the network, which this chain lacks; no reply would come",
        "give a development chain a runner: LocalChain.start_runner, trailboss dev --runner, trailboss runner")
    JOB_ANSWERED = _Rule(1921, "job_answered", "a runner job has one reply",
        "reply to one that is open: LocalChain.jobs, trailboss jobs")

    def __init__(self, code: int, slug: str, why: str, fix: str) -> None:
        self.code = code
        self.slug = slug
        self.why = why
        self.fix = fix
# fmt: on


HOST_CODE_BASE: Final = 1200
"""A reason whose code is this plus 1..=8 is a public host error; programs see the small number."""

Fact = int | str | bool | None


class ErrorObject(Struct, frozen=True):
    """The description of a failure in a receipt, in the public shape."""

    code: int  # public error code
    slug: str  # stable name of the reason
    what: str  # what happened, with the values
    why: str  # the rule behind it
    fix: str  # what to do about it
    context: dict[str, Fact] = field(default_factory=dict)  # the facts, by name

    def __str__(self) -> str:
        return f"E{self.code} {self.slug}: {self.what} ({self.why}; {self.fix})"


class TrailbossError(Exception):
    """Base of everything this package raises on purpose."""


class Rejection(TrailbossError):
    """A request that the rules do not allow; nothing has changed."""

    def __init__(self, reason: RejectionReason, what: str, fix: str = "", /, **context: Fact) -> None:
        super().__init__(reason, what)
        self.reason = reason
        self.what = what  # the request, with the offending value
        self.fix = fix  # what to do in this case; empty for the reason's own advice
        self.context = context  # the facts, by name

    def __str__(self) -> str:
        return str(self.error())

    def error(self) -> ErrorObject:
        """Return the refusal as the record that receipts carry."""
        rule = self.reason
        return ErrorObject(rule.code, rule.slug, self.what, rule.why, self.fix or rule.fix, dict(self.context))


class ConfigurationError(TrailbossError):
    """An invalid genesis, preset or override; the message names path, value and rule."""


class StorageError(TrailbossError):
    """Files that cannot be used. Nothing beyond the last acknowledged block has changed."""

    def __init__(self, path: object, what: str, fix: str) -> None:
        super().__init__(str(path), what, fix)
        self.path = str(path)
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.path}: {self.what} ({self.fix})"


class ProofError(TrailbossError):
    """A proof that does not hold for the root or has no valid form; the message names the step that failed."""


class ViewGoneError(TrailbossError):
    """A view's blocks are gone because the chain went back to ``lowest``; the view still has the blocks up to there."""

    def __init__(self, height: int, lowest: int) -> None:
        super().__init__(height, lowest)
        self.height = height
        self.lowest = lowest

    def __str__(self) -> str:
        return f"the chain went back to block {self.lowest}; the view of block {self.height} has no later blocks"


class InvariantError(TrailbossError):
    """The chain contradicts itself and stops: a bug, never a user's mistake."""
