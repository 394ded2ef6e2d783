"""What each instruction of a transaction does. Every function runs within `paid_execution.run_envelope`."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from trailboss.codec.canonical import encode_canonical
from trailboss.crypto.digest import keccak256
from trailboss.execution import development, runner, timers
from trailboss.execution.checks import no_actor
from trailboss.execution.host import CREATION_HANDLERS, run_handler
from trailboss.execution.paid_execution import Run, handler_body
from trailboss.execution.session import Scope
from trailboss.execution.upgrades import checked_source, replace_code
from trailboss.governance import apply as governance
from trailboss.metering.meter import Meter
from trailboss.model import transactions
from trailboss.model.actors import Account
from trailboss.model.calls import EXTEND
from trailboss.model.events import ACTOR_DEPLOYED, EventRecord
from trailboss.params import CostParams, deployment_price
from trailboss.primitives.errors import Fact, Rejection, RejectionReason
from trailboss.primitives.octets import Address
from trailboss.primitives.units import Cells, Cycles

_OWNERS_WAY: Final[Mapping[type[transactions.Instruction], str]] = {
    kind: f": a timer is {done} by its own actor, which calls {call}, or by governance; the owner of the actor has a "
    "handler of it do so"
    for kind, done, call in (
        (transactions.CancelTimer, "cancelled", "pvm_host.cancel_timer"),
        (transactions.ExtendTimer, "extended", "pvm_host.extend_timer"),
    )
}
"""The other way that a refusal names. Decision: D-87."""


def intrinsic_costs(instruction: transactions.Instruction, costs: CostParams) -> tuple[Cycles, Cells]:
    """Return the cycles and cells an instruction uses before it runs: its kind's price, and a cell a byte it brings.

    Source: cowboy-facts §5.1 (calldata), §5.2 (transfer), §5.3 (deploy). Decision: D-45
    """
    cycles, cells = 0, 0
    match instruction:
        case transactions.Transfer() | transactions.FundActor() | transactions.SetBalance():
            cycles, cells = costs.transfer, costs.transfer_cells
        case transactions.DeployActor(code=code, init_payload=payload, manifest=manifest):
            cycles, cells = deployment_price(len(code), costs), len(code) + len(payload or b"") + len(manifest or b"")
        case (
            transactions.UpgradeActor(code=code, manifest=manifest) | transactions.SetCode(code=code, manifest=manifest)
        ):
            cycles, cells = deployment_price(len(code), costs), len(code) + len(manifest or b"")
        case transactions.ExecuteActor(handler=handler, payload=payload):
            cells = len(handler.encode()) + len(payload)
        case transactions.SetGovParam(key=key, value=value):
            cells = len(key) + len(value)
        case transactions.SetStorage(slot=slot, value=content):
            cells = len(slot) + len(content or b"")
        case transactions.SetMock(_, handler, payload, returns, reverts):
            cells = len(handler.encode()) + len(payload or b"") + len(returns) + len((reverts or "").encode())
    return Cycles(costs.transaction_base + cycles), Cells(cells)


def execute_instruction(instruction: transactions.Instruction, scope: Scope, meter: Meter) -> Run:
    """Carry out an instruction; the caller rolls its changes back if it fails."""
    match instruction:
        case transactions.Transfer():  # no fields in the pattern: a Struct lists its fields for each match
            scope.session.ledger.transfer(scope.envelope.sender, instruction.to, instruction.amount)
            return Run()
        case transactions.FundActor(actor, amount):
            _check_actor(scope, actor)
            scope.session.ledger.transfer(scope.envelope.sender, actor, amount)
            return Run()
        case transactions.CreateAccount(account):
            return _create_account(scope, account)
        case transactions.DeployActor():
            return _deploy(scope, instruction, meter)
        case transactions.UpgradeActor():
            return _upgrade(scope, instruction)
        case transactions.ReplyJob(number, reply):
            job = runner.find_job(scope.session.overlay.read, number)
            return handler_body(job.actor, job.handler, reply, job.actor)(scope, meter)
        case transactions.ExecuteActor(actor, handler, payload):
            return handler_body(actor, handler, payload, scope.envelope.sender)(scope, meter)
        case _:
            return _govern(scope, instruction)


def _govern(scope: Scope, instruction: transactions.Instruction) -> Run:
    """Carry out a system instruction. Spec: CIP-5 §5.4, CIP-5 §6.4. Decision: D-34, D-87."""
    overlay, context, rules = scope.session.overlay, scope.session.context, scope.session.context.rules
    # CHECK
    if isinstance(instruction, development.INSTRUCTIONS) and not context.is_development:
        what = f"{instruction.name} is executed by development chains only, which say so in their genesis"
        raise _unsupported(what, instruction=instruction.name)
    otherwise = _OWNERS_WAY.get(type(instruction), "")
    governance.check_deployer(rules, scope.envelope.sender, instruction.name, otherwise)
    # RUN
    if isinstance(instruction, development.INSTRUCTIONS):
        return _interfere(scope, instruction)
    match instruction:
        case transactions.CancelTimer(timer_id):
            timers.cancel_timer(scope, timer_id, None)
            return Run()
        case transactions.ExtendTimer(timer_id, new_expires_at):
            if EXTEND not in context.calls:
                why = f"under mechanism {context.mechanism}, whose timers {scope.session.hooks.no_extension}"
                raise _unsupported(f"ExtendTimer is not executed {why}", mechanism=context.mechanism)
            timers.extend_timer(scope, timer_id, new_expires_at, None)
            return Run()
        case transactions.UpdateTimerConfig():
            event = governance.update_timer_config(overlay, rules, instruction)
        case transactions.UpdateBasefeeConfig():
            event = governance.update_basefee_config(overlay, rules, instruction)
        case transactions.UpdateLaneFeeMultipliers():
            event = governance.update_lane_multipliers(overlay, rules, instruction)
        case transactions.SetGovParam():
            event = governance.set_parameter(overlay, rules, instruction)
        case _:
            raise _unsupported(f"{instruction.name} is not executed by this chain")
    return Run(events=(event,))


def _interfere(scope: Scope, instruction: transactions.Instruction) -> Run:
    """Carry out an instruction that development chains alone have. Decision: D-69, D-110, D-113."""
    match instruction:
        case transactions.MoveTimer():
            development.move_timer(scope, instruction)
            return Run()
        case transactions.SetCode(account, code):
            checked_source(scope.session.context.rules, scope.session.engine, code)
            return Run(actor=account, events=(development.set_code(scope, instruction),))
        case transactions.SetBalance():
            event = development.set_balance(scope, instruction)
        case transactions.SetStorage():
            event = development.set_storage(scope, instruction)
        case transactions.SetMock():
            event = development.set_mock(scope, instruction)
        case transactions.SetRunner(jobs_max):
            runner.set_runner(scope, jobs_max)
            return Run()
        case _:
            event = development.clear_mocks(scope)
    return Run(events=(event,))


def _unsupported(what: str, **facts: Fact) -> Rejection:
    return Rejection(RejectionReason.UNSUPPORTED_INSTRUCTION, what, **facts)


def _create_account(scope: Scope, address: bytes) -> Run:
    ledger = scope.session.ledger
    # CHECK
    if ledger.find(address) is not None:
        raise Rejection(
            RejectionReason.ACCOUNT_EXISTS, f"there is an account at {Address(address)}", account=str(Address(address))
        )
    # RUN
    ledger.put(address, Account())
    return Run()


def _deploy(scope: Scope, instruction: transactions.DeployActor, meter: Meter) -> Run:
    """Create an actor and run its creation call. Decision: D-36."""
    session, deployer = scope.session, scope.envelope.sender
    # CHECK
    source = checked_source(session.context.rules, session.engine, instruction.code)
    code_hash = keccak256(instruction.code)
    actor = transactions.derive_actor_address(Address(deployer), instruction.salt, code_hash, instruction.shard)
    account = session.ledger.account(actor)
    if account.code_hash:
        raise Rejection(RejectionReason.ACTOR_EXISTS, f"there is an actor at {actor}", actor=str(actor))
    # RUN
    session.ledger.put(actor, replace(account, code_hash=code_hash, owner=bytes(deployer)))
    session.ledger.store_code(code_hash, instruction.code)
    if instruction.manifest is not None:
        session.ledger.store_manifest(actor, instruction.manifest)
    facts = {"actor": bytes(actor), "owner": bytes(deployer), "code_hash": code_hash}
    events = (EventRecord(ACTOR_DEPLOYED, actor, encode_canonical(facts)),)
    available = session.engine.handlers(source, code_hash)
    handler = instruction.init_handler or next((name for name in CREATION_HANDLERS if name in available), None)
    if handler is None:
        return Run(actor=actor, events=events)
    payload = instruction.init_payload or b""
    outcome = run_handler(scope, actor, handler, payload, sender=deployer, meter=meter, creation=True)
    return Run(outcome.return_value, outcome.error, actor, events)


def _upgrade(scope: Scope, instruction: transactions.UpgradeActor) -> Run:
    """Replace an actor's code for governance. Spec: CIP-5 §5.4."""
    # CHECK
    governance.check_deployer(scope.session.context.rules, scope.envelope.sender, instruction.name)
    account = _check_actor(scope, instruction.actor)
    # RUN
    actor = bytes(instruction.actor)
    event = replace_code(scope, actor, account, instruction.code, instruction.manifest)
    return Run(actor=actor, events=(event,))


def _check_actor(scope: Scope, address: bytes) -> Account:
    account = scope.session.ledger.find(address)
    if account is None or not account.code_hash:
        raise no_actor(address)
    return account
