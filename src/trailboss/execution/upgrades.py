"""Replacing an actor's code: by governance, or by the actor itself. Spec: CIP-5 §5.4. Decision: D-119."""

from msgspec.structs import replace

from trailboss.codec.canonical import encode_canonical
from trailboss.crypto.digest import keccak256
from trailboss.execution.session import Scope
from trailboss.governance.rules import Rules
from trailboss.model.actors import Account
from trailboss.model.events import ACTOR_UPGRADED, EventRecord
from trailboss.primitives.errors import Rejection, RejectionReason
from trailboss.vm.engine import Engine


def checked_source(rules: Rules, engine: Engine, code: bytes) -> str:
    """Return the source that code bytes hold, compiled.

    Raises:
        Rejection: ``INVALID_DATA`` for a wrong size or bytes that are no UTF-8; else as `Engine.check_source`.
    """
    limit = rules.params.limits.source_bytes_max
    if not 1 <= len(code) <= limit:
        what = f"source has {len(code)} bytes, outside 1..={limit}"
        raise Rejection(RejectionReason.INVALID_DATA, what, size=len(code), limit=limit)
    try:
        source = code.decode()
    except UnicodeDecodeError as error:
        what = f"source is not UTF-8 at byte {error.start}"
        raise Rejection(RejectionReason.INVALID_DATA, what, offset=error.start) from None
    engine.check_source(source, keccak256(code))
    return source


def replace_code(scope: Scope, actor: bytes, account: Account, code: bytes, manifest: bytes | None) -> EventRecord:
    """Replace an actor's code, and its manifest if one is given; all else stays. Return the event of it.

    Later frames run the new code. `Rejection` as `checked_source`.
    """
    # CHECK
    checked_source(scope.session.context.rules, scope.session.engine, code)
    # RUN
    ledger, code_hash = scope.session.ledger, keccak256(code)
    ledger.put(actor, replace(account, code_hash=code_hash))
    ledger.store_code(code_hash, code)
    if manifest is not None:
        ledger.store_manifest(actor, manifest)
    return EventRecord(ACTOR_UPGRADED, actor, encode_canonical({"actor": actor, "code_hash": code_hash}))
