"""The messages of ABCI 2.0, between the consensus engine and its application, as protobuf classes.

The classes are built from the table below when this module is loaded. Text that a client of the engine chooses is
declared as bytes, which look the same on the wire: the engine passes on what is not UTF-8, and a decoder that refuses
it would end the node. Source: CometBFT 0.38, whose fields have these numbers.
"""

from typing import Any, Final

from google.protobuf import duration_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PACKAGE: Final = "trailboss.abci"
WELL_KNOWN: Final = {"Timestamp": ".google.protobuf.Timestamp", "Duration": ".google.protobuf.Duration"}
REQUESTS: Final = {
    "echo": (1, 2),
    "flush": (2, 3),
    "info": (3, 4),
    "init_chain": (5, 6),
    "query": (6, 7),
    "check_tx": (8, 9),
    "commit": (11, 12),
    "list_snapshots": (12, 13),
    "offer_snapshot": (13, 14),
    "load_snapshot_chunk": (14, 15),
    "apply_snapshot_chunk": (15, 16),
    "prepare_proposal": (16, 17),
    "process_proposal": (17, 18),
    "extend_vote": (18, 19),
    "verify_vote_extension": (19, 20),
    "finalize_block": (20, 21),
}
"""Each kind of request, with the field that holds it and the field that holds its answer."""
SHARED: Final = {
    "RequestFlush": "Empty",
    "RequestCommit": "Empty",
    "RequestListSnapshots": "Empty",
    "ResponseFlush": "Empty",
    "ResponseCheckTx": "ExecTxResult",
    "ResponseProcessProposal": "ResponseStatus",
    "ResponseVerifyVoteExtension": "ResponseStatus",
}
"""Messages that look like another one."""
TABLE: Final = """
Empty:
RequestEcho: 1 message bytes
RequestInfo: 1 version string, 2 block_version uint64, 3 p2p_version uint64, 4 abci_version string
RequestInitChain: 1 time Timestamp, 2 chain_id string, 3 consensus_params ConsensusParams,
    4 validators *ValidatorUpdate, 5 app_state_bytes bytes, 6 initial_height int64
RequestQuery: 1 data bytes, 2 path bytes, 3 height int64, 4 prove bool
RequestCheckTx: 1 tx bytes, 2 type int32
RequestOfferSnapshot: 1 snapshot Snapshot, 2 app_hash bytes
RequestLoadSnapshotChunk: 1 height uint64, 2 format uint32, 3 chunk uint32
RequestApplySnapshotChunk: 1 index uint32, 2 chunk bytes, 3 sender bytes
RequestPrepareProposal: 1 max_tx_bytes int64, 2 txs *bytes, 3 local_last_commit CommitInfo, 4 misbehavior *Misbehavior,
    5 height int64, 6 time Timestamp, 7 next_validators_hash bytes, 8 proposer_address bytes
RequestProcessProposal: 1 txs *bytes, 2 proposed_last_commit CommitInfo, 3 misbehavior *Misbehavior, 4 hash bytes,
    5 height int64, 6 time Timestamp, 7 next_validators_hash bytes, 8 proposer_address bytes
RequestExtendVote: 1 hash bytes, 2 height int64
RequestVerifyVoteExtension: 1 hash bytes, 2 validator_address bytes, 3 height int64, 4 vote_extension bytes
RequestFinalizeBlock: 1 txs *bytes, 2 decided_last_commit CommitInfo, 3 misbehavior *Misbehavior, 4 hash bytes,
    5 height int64, 6 time Timestamp, 7 next_validators_hash bytes, 8 proposer_address bytes
ResponseException: 1 error string
ResponseEcho: 1 message bytes
ResponseInfo: 1 data string, 2 version string, 3 app_version uint64, 4 last_block_height int64,
    5 last_block_app_hash bytes
ResponseInitChain: 1 consensus_params ConsensusParams, 2 validators *ValidatorUpdate, 3 app_hash bytes
ResponseQuery: 1 code uint32, 3 log string, 4 info string, 5 index int64, 6 key bytes, 7 value bytes, 9 height int64,
    10 codespace string
ResponseCommit: 3 retain_height int64
ResponseListSnapshots: 1 snapshots *Snapshot
ResponseOfferSnapshot: 1 result int32
ResponseLoadSnapshotChunk: 1 chunk bytes
ResponseApplySnapshotChunk: 1 result int32, 2 refetch_chunks *uint32, 3 reject_senders *bytes
ResponsePrepareProposal: 1 txs *bytes
ResponseStatus: 1 status int32
ResponseExtendVote: 1 vote_extension bytes
ResponseFinalizeBlock: 1 events *Event, 2 tx_results *ExecTxResult, 3 validator_updates *ValidatorUpdate,
    4 consensus_param_updates ConsensusParams, 5 app_hash bytes
ExecTxResult: 1 code uint32, 2 data bytes, 3 log string, 4 info string, 5 gas_wanted int64, 6 gas_used int64,
    7 events *Event, 8 codespace string
Event: 1 type string, 2 attributes *EventAttribute
EventAttribute: 1 key string, 2 value string, 3 index bool
CommitInfo: 1 round int32, 2 votes *VoteInfo
VoteInfo: 1 validator Validator, 3 block_id_flag int32
Validator: 1 address bytes, 3 power int64
ValidatorUpdate: 1 pub_key PublicKey, 2 power int64
PublicKey: 1 ed25519 bytes, 2 secp256k1 bytes
Misbehavior: 1 type int32, 2 validator Validator, 3 height int64, 4 time Timestamp, 5 total_voting_power int64
Snapshot: 1 height uint64, 2 format uint32, 3 chunks uint32, 4 hash bytes, 5 metadata bytes
ConsensusParams: 1 block BlockParams, 4 version VersionParams
BlockParams: 1 max_bytes int64, 2 max_gas int64
VersionParams: 1 app uint64
"""


def _camel(kind: str) -> str:
    return "".join(word.capitalize() for word in kind.split("_"))


def _add_field(message: Any, number: int, name: str, kind: str, *, in_oneof: bool = False) -> None:
    label = FieldDescriptorProto.LABEL_REPEATED if kind.startswith("*") else FieldDescriptorProto.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=label)
    kind = kind.removeprefix("*")
    if kind.islower():
        field.type = getattr(FieldDescriptorProto, f"TYPE_{kind.upper()}")
    else:
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = WELL_KNOWN.get(kind, f".{PACKAGE}.{kind}")
    if in_oneof:
        field.oneof_index = 0


def _load() -> dict[str, Any]:
    """Return the classes by name."""
    file = FileDescriptorProto(name="abci.proto", package=PACKAGE, syntax="proto3")
    pool = DescriptorPool()
    for known in (timestamp_pb2, duration_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
        file.dependency.append(known.DESCRIPTOR.name)
    for line in TABLE.strip().replace(",\n   ", ",").splitlines():
        name, _, fields = line.partition(":")
        message = file.message_type.add(name=name)
        for each in filter(None, fields.split(",")):
            number, field, kind = each.split()
            _add_field(message, int(number), field, kind)
    request, response = (file.message_type.add(name=name) for name in ("Request", "Response"))
    for envelope in (request, response):
        envelope.oneof_decl.add(name="value")
    for kind, numbers in REQUESTS.items():
        for envelope, place in zip((request, response), numbers, strict=True):
            name = envelope.name + _camel(kind)
            _add_field(envelope, place, kind, SHARED.get(name, name), in_oneof=True)
    _add_field(response, 1, "exception", "ResponseException", in_oneof=True)
    pool.AddSerializedFile(file.SerializeToString())
    return {
        each.name: GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{each.name}")) for each in file.message_type
    }


MESSAGES: Final = _load()
Request: Final = MESSAGES["Request"]
Response: Final = MESSAGES["Response"]
