"""The public protocol's instruction numbers, so that what this chain refuses is refused by name.

The public codec knows 204 system instructions. Each number was read off its encoding of a valid record of that
instruction; only that of RouteInvocation is not known.

Source: the public codec, version 0.6.0.
"""

from typing import Final

_NAMES_FROM: Final = {
    0: (
        "CreateAccount Transfer RunnerRegister RunnerUpdateRateCard RunnerHeartbeat RunnerDeregister JobSubmit "
        "JobResultSubmit JobCancel JobResultCommit TokenCreate TokenTransfer TokenTransferFrom TokenApprove "
        "TokenMint TokenBurn TokenFreeze TokenUnfreeze TokenSetHook TokenTransferOwnership TokenTransferBatch "
        "TokenIncreaseAllowance TokenDecreaseAllowance TokenPermit TokenBurnFrom"
    ),
    30: "EntitlementGrant EntitlementRevoke EntitlementDelegate",
    40: (
        "UpdateSettlementConfig FundActor KeyDelivery UpgradeActor UpdateBasefeeConfig SubmitProposal CastVote "
        "ExecuteProposal CancelTimer UpdateTimerConfig ExtendTimer DeployCode SessionOpen SessionDeposit "
        "SessionSettle SessionClose SessionFinalize SessionSlash SessionOpenAssigned"
    ),
    60: "RegisterTeeTrustedKey RevokeTeeTrustedKey SubmitTeeAttestation RevokeTeeAttestation",
    68: (
        "SetSecret UpdateSecretPolicy DeleteSecretVersion DeleteSecret RegisterCbssProxy DeregisterCbssProxy "
        "RotateCommittee SlashCbssProxy SubmitReleaseReceipt RequestAccountDkg FinalizeSecretVersion "
        "SubmitLivenessChallenge LivenessChallengeResponse ExpireDkgPending ExpireLivenessChallenge "
        "RequestReshare ForcedDeregisterCbssProxy SubmitDrainRelayProposal SubmitAutoDrainPolicyProposal "
        "ExecutorRegistryPin ExecutorRegistryUnpin UpdateLaneFeeMultipliers UpdateRentConfig SettleActorRent "
        "SetActorQuota RestoreActor UpdateReputationConfig UpdateAggregatorConfig UpdateSlashDistribution "
        "SubmitCrashAttestation UpdateNonRevealConfig UpdateCommitteeConfig UpdateSemanticSimilarityModel Ras"
    ),
    108: (
        "CastValidatorVote CircuitBreaker CancelProposal SubmitTreasuryProposal SubmitRegistryProposal "
        "EndorseProposal SetGovParam UpgradeSystemActor RollbackSystemActor CastBallot SetCip31FeeSplit "
        "RunnerUpdateDelegationConfig RunnerDelegateStake RunnerIncreaseDelegation RunnerUndelegateStake "
        "RunnerClaimUnbonded DeprecateBinding VerifyCae UpdateCollateral GcNonces TradingPostDeclare "
        "TradingPostDeclareVersion TradingPostRetireDeclaration TradingPostRegisterStore TradingPostGrant "
        "TradingPostRevokeGrant TradingPostRegisterArtifact TradingPostRetireArtifact TradingPostHire "
        "TradingPostDeposit TradingPostWithdrawUnused TradingPostRenew TradingPostSetRenewal TradingPostPauseHire "
        "TradingPostResumeHire TradingPostRevokeHire TradingPostSettlePerCall TradingPostAttest IntentDeposit "
        "IntentWithdraw IntentSettle IntentBroadcast IntentRequestWithdraw IntentCreditDeposit "
        "RegisterTlockRelease SubmitTlockRelease OpenAuction SubmitSealedBid RevealAuction"
    ),
    158: (
        "GovRequestSystemDkg SubmitSystemDkgProposal RegisterImage DeregisterImage RegisterResourceClass "
        "DeregisterResourceClass UpdateContainerSettlementConfig DisputeContainerBilling SubmitParamProposal "
        "SubmitRentConfigProposal SubmitLaneFeeMultipliersProposal SubmitSettlementConfigProposal"
    ),
    171: (
        "SubmitReputationConfigProposal SubmitAggregatorConfigProposal SubmitSlashDistributionProposal "
        "SubmitNonRevealConfigProposal SubmitCommitteeConfigProposal SubmitContainerSettlementConfigProposal "
        "SubmitSemanticSimilarityModelProposal SubmitExecutorRegistryPinProposal "
        "SubmitExecutorRegistryUnpinProposal SubmitCip31FeeSplitProposal SubmitUpgradeSystemActorProposal "
        "SubmitRollbackSystemActorProposal RunnerUpdateCapabilities PaymentGateSetPolicy PaymentGateGetPolicy "
        "PaymentGateDepositBudget PaymentGateWithdrawBudget PaymentGateBudgetBalance PaymentGateDeductBudget "
        "PaymentGatePurchasePass PaymentGatePassBalance PaymentGatePurchaseEpoch PaymentGateEpochStatus "
        "PaymentGateVerifyPayment PaymentGateSettlePayment RegisterWorkload UpdateWorkload DeregisterWorkload "
        "ReportWorkloadStatus BankIssueCard BankDeposit BankWithdraw BankCloseCard BankSetDefaultCard "
        "BankSetPolicy BankFreeze BankUnfreeze BankPauseBank BankUnpauseBank BankMintFromFiatVoucher "
        "BankSettleProvider BankIssueCardV2 SetBankOperator SetBankFiatMintSigner BankTransferOwnership "
        "SubmitRegisterBankProposal SubmitGrantReleaseProposal Cbqs RunnerUpdateEndpoint RoomAuthority"
    ),
    222: (
        "SubmitFraudProof GrantSecretActor SetWorkloadResourcePolicy PurchaseAllowance BeginWorkloadAttempt "
        "PublishWorkloadCredentialOffer PublishWorkloadOwnerCertificate"
    ),
}
"""First number of a run of numbers without a gap, and the names in it."""

SYSTEM_NAMES: Final[dict[int, str]] = {
    first + offset: name for first, names in _NAMES_FROM.items() for offset, name in enumerate(names.split())
}
"""Name of each system instruction by its number."""

UNNUMBERED_SYSTEM_NAMES: Final = ("RouteInvocation",)
"""System instructions whose number is not known."""

DEVELOPMENT_NAMES: Final[dict[int, str]] = {240: "SetBalance", 241: "MoveTimer"}
"""System instructions of our own, under numbers that the public codec does not use. Decision: D-69."""

ACTOR_NAMES: Final[dict[int, str]] = {0: "DeployActor", 1: "ExecuteActor"}
LIBRARY_NAMES: Final[dict[int, str]] = {0: "PublishLibrary", 1: "RemoveLibrary"}

FAMILY_NAMES: Final[dict[int, str]] = {0: "System", 1: "Actor", 2: "Custom", 3: "Library"}
"""Name of each family of instructions by its tag."""

NAMES: Final[dict[str, dict[int, str]]] = {
    "System": SYSTEM_NAMES,
    "Actor": ACTOR_NAMES,
    "Custom": {},
    "Library": LIBRARY_NAMES,
}
"""Names of the instructions of each family by number. A custom instruction has a module and an action, no name."""
