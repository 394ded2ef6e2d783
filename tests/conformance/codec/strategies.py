"""Random transactions of every kind, within the widths of the wire."""

from hypothesis import strategies as st

from trailboss.model.transactions import (
    CancelTimer,
    ClearMocks,
    CreateAccount,
    DeployActor,
    ExecuteActor,
    ExtendTimer,
    FundActor,
    MoveTimer,
    OwnerDraw,
    ReplyJob,
    RouteInstall,
    SetBalance,
    SetCode,
    SetGovParam,
    SetMock,
    SetRunner,
    SetStorage,
    Transaction,
    Transfer,
    UpdateBasefeeConfig,
    UpdateLaneFeeMultipliers,
    UpdateTimerConfig,
    UpgradeActor,
)
from trailboss.primitives.octets import Address, Hash32


def below(bits: int) -> st.SearchStrategy[int]:
    """Return unsigned integers of ``bits`` bits, both ends and both sides of each byte's edge often."""
    edges = [0, 2**bits - 1, *(2**k + d for k in range(7, bits, 7) for d in (-1, 0))]
    return st.one_of(st.integers(0, 2**bits - 1), st.sampled_from(edges))


addresses = st.binary(min_size=20, max_size=20).map(Address)
hashes = st.binary(min_size=32, max_size=32).map(Hash32)
signatures = st.binary(min_size=65, max_size=65)
octets = st.one_of(st.binary(max_size=8), st.binary(min_size=126, max_size=130))
texts = st.text(max_size=12)
routes = st.builds(RouteInstall, table=octets, sponsorship=st.none() | octets)

KINDS = {
    "CreateAccount": st.builds(CreateAccount, addresses),
    "Transfer": st.builds(Transfer, addresses, below(64)),
    "FundActor": st.builds(FundActor, addresses, below(64)),
    "DeployActor": st.builds(
        DeployActor,
        code=octets,
        salt=st.binary(max_size=32),
        init_handler=st.none() | texts,
        init_payload=st.none() | octets,
        manifest=st.none() | octets,
        shard=st.none() | below(16),
        routes=st.none() | routes,
        owner_draw=st.sampled_from(OwnerDraw) | below(64),
    ),
    "ExecuteActor": st.builds(ExecuteActor, addresses, texts, octets),
    "UpgradeActor": st.builds(UpgradeActor, addresses, octets, st.none() | octets, st.none() | routes),
    "UpdateBasefeeConfig": st.builds(UpdateBasefeeConfig, *[below(128)] * 4, *[below(64)] * 4),
    "CancelTimer": st.builds(CancelTimer, octets),
    "UpdateTimerConfig": st.builds(UpdateTimerConfig, below(64), below(64), below(64), below(32), below(64)),
    "ExtendTimer": st.builds(ExtendTimer, octets, below(64)),
    "UpdateLaneFeeMultipliers": st.builds(UpdateLaneFeeMultipliers, *[below(32)] * 4),
    "SetGovParam": st.builds(SetGovParam, octets, octets),
}
DEVELOPMENT_KINDS = {
    "SetBalance": st.builds(SetBalance, addresses, below(128)),
    "MoveTimer": st.builds(MoveTimer, octets, below(64)),
    "SetRunner": st.builds(SetRunner, below(32)),
    "ReplyJob": st.builds(ReplyJob, below(64), octets),
    "SetStorage": st.builds(SetStorage, addresses, octets, st.none() | octets),
    "SetCode": st.builds(SetCode, addresses, octets, st.none() | octets),
    "SetMock": st.builds(
        SetMock, addresses, texts, st.none() | octets, octets, st.none() | texts, st.none() | below(32)
    ),
    "ClearMocks": st.just(ClearMocks()),
}


def transactions(kind: str) -> st.SearchStrategy[Transaction]:
    """Return transactions that carry an instruction of one kind."""
    return st.builds(
        Transaction,
        chain_id=below(64),
        nonce=below(64),
        instruction=(KINDS | DEVELOPMENT_KINDS)[kind],
        cycles_limit=below(64),
        cells_limit=below(64),
        max_fee_per_cycle=below(64),
        max_fee_per_cell=below(64),
        access_limit=below(64),
        max_fee_per_access=below(128),
        max_priority_fee_per_cycle=below(64),
        max_priority_fee_per_cell=below(64),
        max_priority_fee_per_access=below(128),
        sender=addresses,
        access_list=st.none()
        | st.lists(st.tuples(addresses, st.lists(hashes, max_size=2).map(tuple)), max_size=2).map(tuple),
        metadata=octets,
        origin_tx_hash=st.none() | hashes,
        origin_remaining_cycles=st.none() | below(64),
        origin_remaining_cells=st.none() | below(64),
        origin_remaining_access=st.none() | below(64),
        signature=signatures,
        additional_signers=st.lists(st.tuples(addresses, signatures), max_size=2).map(tuple),
    )


any_transaction = st.sampled_from(sorted(KINDS)).flatmap(transactions)
