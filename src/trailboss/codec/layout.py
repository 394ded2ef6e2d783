"""The fields of a transaction and of its instructions, with their kinds, in wire order: one table for both codecs.

Source: docs/spec/sources.md §7, §8; bytes pinned against the public codec, version 0.6.0.
"""

from typing import Any, Final

from msgspec import Struct

from trailboss.codec import instructions as records
from trailboss.codec import kinds
from trailboss.codec.kinds import ADDRESS, DECIMAL, HASH, OCTETS, SIGNATURE, TEXT, U16, U32, U64, U128, VARINT, Kind
from trailboss.primitives.errors import Rejection, RejectionReason

_NAMES_FROM: Final = {
    0: """CreateAccount Transfer RunnerRegister RunnerUpdateRateCard RunnerHeartbeat RunnerDeregister JobSubmit
        JobResultSubmit JobCancel JobResultCommit TokenCreate TokenTransfer TokenTransferFrom TokenApprove TokenMint
        TokenBurn TokenFreeze TokenUnfreeze TokenSetHook TokenTransferOwnership TokenTransferBatch
        TokenIncreaseAllowance TokenDecreaseAllowance TokenPermit TokenBurnFrom""",
    30: "EntitlementGrant EntitlementRevoke EntitlementDelegate",
    40: """UpdateSettlementConfig FundActor KeyDelivery UpgradeActor UpdateBasefeeConfig SubmitProposal CastVote
        ExecuteProposal CancelTimer UpdateTimerConfig ExtendTimer DeployCode SessionOpen SessionDeposit SessionSettle
        SessionClose SessionFinalize SessionSlash SessionOpenAssigned""",
    60: "RegisterTeeTrustedKey RevokeTeeTrustedKey SubmitTeeAttestation RevokeTeeAttestation",
    68: """SetSecret UpdateSecretPolicy DeleteSecretVersion DeleteSecret RegisterCbssProxy DeregisterCbssProxy
        RotateCommittee SlashCbssProxy SubmitReleaseReceipt RequestAccountDkg FinalizeSecretVersion
        SubmitLivenessChallenge LivenessChallengeResponse ExpireDkgPending ExpireLivenessChallenge RequestReshare
        ForcedDeregisterCbssProxy SubmitDrainRelayProposal SubmitAutoDrainPolicyProposal ExecutorRegistryPin
        ExecutorRegistryUnpin UpdateLaneFeeMultipliers UpdateRentConfig SettleActorRent SetActorQuota RestoreActor
        UpdateReputationConfig UpdateAggregatorConfig UpdateSlashDistribution SubmitCrashAttestation
        UpdateNonRevealConfig UpdateCommitteeConfig UpdateSemanticSimilarityModel Ras""",
    108: """CastValidatorVote CircuitBreaker CancelProposal SubmitTreasuryProposal SubmitRegistryProposal
        EndorseProposal SetGovParam UpgradeSystemActor RollbackSystemActor CastBallot SetCip31FeeSplit
        RunnerUpdateDelegationConfig RunnerDelegateStake RunnerIncreaseDelegation RunnerUndelegateStake
        RunnerClaimUnbonded DeprecateBinding VerifyCae UpdateCollateral GcNonces TradingPostDeclare
        TradingPostDeclareVersion TradingPostRetireDeclaration TradingPostRegisterStore TradingPostGrant
        TradingPostRevokeGrant TradingPostRegisterArtifact TradingPostRetireArtifact TradingPostHire TradingPostDeposit
        TradingPostWithdrawUnused TradingPostRenew TradingPostSetRenewal TradingPostPauseHire TradingPostResumeHire
        TradingPostRevokeHire TradingPostSettlePerCall TradingPostAttest IntentDeposit IntentWithdraw IntentSettle
        IntentBroadcast IntentRequestWithdraw IntentCreditDeposit RegisterTlockRelease SubmitTlockRelease OpenAuction
        SubmitSealedBid RevealAuction""",
    158: """GovRequestSystemDkg SubmitSystemDkgProposal RegisterImage DeregisterImage RegisterResourceClass
        DeregisterResourceClass UpdateContainerSettlementConfig DisputeContainerBilling SubmitParamProposal
        SubmitRentConfigProposal SubmitLaneFeeMultipliersProposal SubmitSettlementConfigProposal""",
    171: """SubmitReputationConfigProposal SubmitAggregatorConfigProposal SubmitSlashDistributionProposal
        SubmitNonRevealConfigProposal SubmitCommitteeConfigProposal SubmitContainerSettlementConfigProposal
        SubmitSemanticSimilarityModelProposal SubmitExecutorRegistryPinProposal SubmitExecutorRegistryUnpinProposal
        SubmitCip31FeeSplitProposal SubmitUpgradeSystemActorProposal SubmitRollbackSystemActorProposal
        RunnerUpdateCapabilities PaymentGateSetPolicy PaymentGateGetPolicy PaymentGateDepositBudget
        PaymentGateWithdrawBudget PaymentGateBudgetBalance PaymentGateDeductBudget PaymentGatePurchasePass
        PaymentGatePassBalance PaymentGatePurchaseEpoch PaymentGateEpochStatus PaymentGateVerifyPayment
        PaymentGateSettlePayment RegisterWorkload UpdateWorkload DeregisterWorkload ReportWorkloadStatus BankIssueCard
        BankDeposit BankWithdraw BankCloseCard BankSetDefaultCard BankSetPolicy BankFreeze BankUnfreeze BankPauseBank
        BankUnpauseBank BankMintFromFiatVoucher BankSettleProvider BankIssueCardV2 SetBankOperator SetBankFiatMintSigner
        BankTransferOwnership SubmitRegisterBankProposal SubmitGrantReleaseProposal Cbqs RunnerUpdateEndpoint
        RoomAuthority""",
    222: """SubmitFraudProof GrantSecretActor SetWorkloadResourcePolicy PurchaseAllowance BeginWorkloadAttempt
        PublishWorkloadCredentialOffer PublishWorkloadOwnerCertificate""",
}
"""First number of a gapless run of instruction numbers, and its names, so that a refusal can name the instruction.

Each number is read off the public codec's encoding of a valid record; only RouteInvocation's is unknown.
"""

SYSTEM_NAMES: Final[dict[int, str]] = {  # name of each system instruction by its number
    first + offset: name for first, names in _NAMES_FROM.items() for offset, name in enumerate(names.split())
}

UNNUMBERED_SYSTEM_NAMES: Final = ("RouteInvocation",)  # system instructions whose number is unknown

DEVELOPMENT_NAMES: Final[dict[int, str]] = {
    240: "SetBalance", 241: "MoveTimer", 242: "SetStorage", 243: "SetCode", 244: "SetMock", 245: "ClearMocks",
    248: "SetRunner", 249: "ReplyJob",
}  # fmt: skip
"""Our own system instructions, under numbers that the public codec does not use. Decision: D-69, D-110, D-113."""

ACTOR_NAMES: Final[dict[int, str]] = {0: "DeployActor", 1: "ExecuteActor"}
LIBRARY_NAMES: Final[dict[int, str]] = {0: "PublishLibrary", 1: "RemoveLibrary"}

FAMILY_NAMES: Final[dict[int, str]] = {0: "System", 1: "Actor", 2: "Custom", 3: "Library"}
"""Name of each family of instructions by its tag."""

NAMES: Final[dict[str, dict[int, str]]] = {
    "System": SYSTEM_NAMES, "Actor": ACTOR_NAMES, "Custom": {}, "Library": LIBRARY_NAMES,
}  # fmt: skip
"""Names of the instructions of each family by number. A custom instruction has a module and an action, no name."""


SALT_MAX: Final = 32  # most bytes of a salt
_CAPPED: Final = 2


class Form(Struct, frozen=True):
    """How a record is carried: fields in wire order. JSON leaves out those that have the class's default."""

    record: type[Any]
    fields: tuple[tuple[str, Kind], ...]

    def write(self, out: bytearray, value: Any, name: str) -> None:
        """Append the fields of ``value`` in order."""
        for field, kind in self.fields:
            kind.write(out, getattr(value, field), f"{name}.{field}")

    def read(self, source: bytes, offset: int) -> tuple[Any, int]:
        """Read a record at an offset; return it and the offset behind it."""
        values = []
        for _, kind in self.fields:
            value, offset = kind.read(source, offset)
            values.append(value)
        return self.record(*values), offset

    def show(self, value: Any) -> dict[str, Any]:
        """Return a record as JSON."""
        defaults = self._defaults()
        shown = {}
        for field, kind in self.fields:
            member = getattr(value, field)
            if field not in defaults or member != defaults[field]:
                shown[field] = kind.show(member)
        return shown

    def parse(self, value: Any, path: str) -> Any:
        """Return the record that a JSON value describes."""
        optional = tuple(self._defaults())
        kinds.check_members(value, path, tuple(field for field, _ in self.fields if field not in optional), optional)
        return self.record(
            **{field: kind.parse(value[field], f"{path}.{field}") for field, kind in self.fields if field in value}
        )

    def _defaults(self) -> dict[str, object]:
        defaults = self.record.__struct_defaults__
        return dict(zip(self.record.__struct_fields__[-len(defaults) :], defaults, strict=True)) if defaults else {}


def _nested(form: Form) -> Kind:
    def write(out: bytearray, value: Any, name: str) -> None:
        if not isinstance(value, form.record):
            raise kinds.mistyped(name, f"a {form.record.__name__}", value)
        form.write(out, value, name)

    return Kind(write, form.read, form.show, form.parse)


def _write_owner_draw(out: bytearray, value: Any, name: str) -> None:
    if isinstance(value, records.OwnerDraw):
        out.append(value.value)
    else:
        out.append(_CAPPED)
        U64.write(out, value, name)


def _read_owner_draw(source: bytes, offset: int) -> tuple[records.OwnerDraw | int, int]:
    tag = kinds.read_tag(source, offset)
    if tag == _CAPPED:
        return U64.read(source, offset + 1)
    if tag > _CAPPED:
        raise kinds.malformed(offset, f"owner_draw starts with 0, 1 or 2, not {tag}")
    return records.OwnerDraw(tag), offset + 1


def _show_owner_draw(value: records.OwnerDraw | int) -> Any:
    return value.name.capitalize() if isinstance(value, records.OwnerDraw) else {"Capped": value}


def _parse_owner_draw(value: Any, path: str) -> records.OwnerDraw | int:
    if isinstance(value, dict):
        kinds.check_members(value, path, ("Capped",))
        cap: int = U64.parse(value["Capped"], f"{path}.Capped")
        return cap
    for rule in records.OwnerDraw:
        if value == rule.name.capitalize():
            return rule
    raise kinds.mistyped(path, '"Default", "Off" or {"Capped": cap}', value)


_OWNER_DRAW: Final = Kind(_write_owner_draw, _read_owner_draw, _show_owner_draw, _parse_owner_draw)


def _form(record: type[Struct], *carried: Kind) -> Form:
    return Form(record, tuple(zip(record.__struct_fields__, carried, strict=True)))


_BYTES: Final = kinds.option(OCTETS)
_ROUTES: Final = kinds.option(_nested(_form(records.RouteInstall, OCTETS, kinds.option(OCTETS))))

SYSTEM: Final[dict[int, Form]] = {
    0: _form(records.CreateAccount, ADDRESS),
    1: _form(records.Transfer, ADDRESS, U64),
    41: _form(records.FundActor, ADDRESS, U64),
    43: _form(records.UpgradeActor, ADDRESS, OCTETS, kinds.option(OCTETS), _ROUTES),
    44: _form(records.UpdateBasefeeConfig, U128, U128, U128, U128, U64, U64, U64, U64),
    48: _form(records.CancelTimer, OCTETS),
    49: _form(records.UpdateTimerConfig, U64, U64, U64, U32, U64),
    50: _form(records.ExtendTimer, OCTETS, U64),
    89: _form(records.UpdateLaneFeeMultipliers, U32, U32, U32, U32),
    114: _form(records.SetGovParam, OCTETS, OCTETS),
    240: _form(records.SetBalance, ADDRESS, U128),
    241: _form(records.MoveTimer, OCTETS, U64),
    242: _form(records.SetStorage, ADDRESS, OCTETS, _BYTES),
    243: _form(records.SetCode, ADDRESS, OCTETS, _BYTES),
    244: _form(records.SetMock, ADDRESS, TEXT, _BYTES, OCTETS, kinds.option(TEXT), kinds.option(U32)),
    245: _form(records.ClearMocks),
    248: _form(records.SetRunner, U32),
    249: _form(records.ReplyJob, U64, OCTETS),
}
"""The system instructions that this chain executes, by opcode; the last eight on development chains alone."""

_DEPLOYMENT: Final = (
    *(OCTETS, kinds.octets(SALT_MAX), kinds.option(TEXT), _BYTES, _BYTES, kinds.option(U16)),
    *(_ROUTES, _OWNER_DRAW),
)
ACTOR: Final[dict[int, Form]] = {  # the actor instructions, by opcode
    0: _form(records.DeployActor, *_DEPLOYMENT),
    1: _form(records.ExecuteActor, ADDRESS, TEXT, OCTETS),
}

_SUPPORTED: Final[dict[str, dict[int, Form]]] = {"System": SYSTEM, "Actor": ACTOR, "Custom": {}, "Library": {}}
_PLACES: Final[dict[type[Any], tuple[int, int, Form]]] = {  # family tag, opcode and form of each instruction record
    form.record: (tag, opcode, form)
    for tag, family in FAMILY_NAMES.items()
    for opcode, form in _SUPPORTED[family].items()
}
_FORMS_BY_NAME: Final[dict[tuple[str, str], Form]] = {
    (FAMILY_NAMES[tag], form.record.__name__): form for tag, _, form in _PLACES.values()
}
_OPCODES_BY_NAME: Final[dict[tuple[str, str], int]] = {
    (family, name): opcode for family, names in NAMES.items() for opcode, name in names.items()
}


def _unsupported(what: str) -> Rejection:
    supported = ", ".join(form.record.__name__ for _, _, form in _PLACES.values())
    return Rejection(RejectionReason.UNSUPPORTED_INSTRUCTION, f"{what}; supported are {supported}")


def _write_instruction(out: bytearray, value: Any, name: str) -> None:
    place = _PLACES.get(type(value))
    if place is None:
        raise kinds.mistyped(name, "an instruction", value)
    tag, opcode, form = place
    out.append(tag)
    out.append(opcode)
    form.write(out, value, form.record.__name__)


def _read_instruction(source: bytes, offset: int) -> tuple[Any, int]:
    tag = kinds.read_tag(source, offset)
    family = FAMILY_NAMES.get(tag)
    if family is None:
        raise _unsupported(f"instruction family {tag} is not one of the public protocol's")
    opcode = kinds.read_tag(source, offset + 1)
    form = _SUPPORTED[family].get(opcode)
    if form is None:
        name = NAMES[family].get(opcode)
        if name is None:
            raise _unsupported(f"instruction {family} {opcode} is not supported")
        raise _unsupported(f"instruction {family}.{name} ({opcode}) is not supported")
    return form.read(source, offset + 2)


def _show_instruction(value: Any) -> dict[str, Any]:
    tag, _, form = _PLACES[type(value)]
    return {FAMILY_NAMES[tag]: {form.record.__name__: form.show(value)}}


def _only_member(value: Any, path: str) -> tuple[str, Any]:
    if not isinstance(value, dict) or len(value) != 1:
        raise kinds.mistyped(path, "an object of one member", value)
    return next(iter(value.items()))


def _parse_instruction(value: Any, path: str) -> Any:
    family, body = _only_member(value, path)
    if family not in NAMES:
        raise _unsupported(f"instruction family {family!s:.80} is not one of the public protocol's")
    if family == "Custom":
        raise _unsupported("instruction Custom is not supported")
    name, fields = _only_member(body, f"{path}.{family}")
    form = _FORMS_BY_NAME.get((family, name))
    if form is not None:
        return form.parse(fields, f"{path}.{family}.{name}")
    opcode = _OPCODES_BY_NAME.get((family, name))
    if opcode is not None:
        raise _unsupported(f"instruction {family}.{name} ({opcode}) is not supported")
    if family == "System" and name in UNNUMBERED_SYSTEM_NAMES:
        raise _unsupported(f"instruction {family}.{name} is not supported")
    raise _unsupported(f"instruction {family}.{name!s:.80} is not one of the public protocol's")


INSTRUCTION: Final = Kind(_write_instruction, _read_instruction, _show_instruction, _parse_instruction, 2)

_OPTIONAL_U64: Final = kinds.option(U64)
_VARINTS: Final = "cycles_limit cells_limit access_limit max_fee_per_cycle max_fee_per_cell"
ENVELOPE: Final[tuple[tuple[str, Kind], ...]] = (
    ("chain_id", VARINT), ("nonce", VARINT), ("instruction", INSTRUCTION),
    *((name, VARINT) for name in _VARINTS.split()), ("max_fee_per_access", DECIMAL),
    ("max_priority_fee_per_cycle", VARINT), ("max_priority_fee_per_cell", VARINT),
    ("max_priority_fee_per_access", DECIMAL), ("sender", ADDRESS),
    ("access_list", kinds.option(kinds.sequence(kinds.pair(ADDRESS, kinds.sequence(HASH))))), ("metadata", OCTETS),
    ("origin_tx_hash", kinds.option(HASH)), ("origin_remaining_cycles", _OPTIONAL_U64),
    ("origin_remaining_cells", _OPTIONAL_U64), ("origin_remaining_access", _OPTIONAL_U64),
    ("signature", SIGNATURE), ("additional_signers", kinds.sequence(kinds.pair(ADDRESS, SIGNATURE))),
)  # fmt: skip
"""The fields of a transaction in wire order. Those up to ``signature`` are signed as they are."""
