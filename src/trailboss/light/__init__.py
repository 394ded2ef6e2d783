"""Light proofs: from the signatures of a network's validators to what the chain holds, for those who run no node.

`engine_records` holds the engine's header and commit, and computes what the engine hashes and signs; its texts and its
encoding are in `engine_values` and `protobuf`. `commits` checks a commit against a set of validators, `endings` how a
timer ended, and `proof` joins them to a file. A verifier needs the genesis and a proof, and no store, chain or network.

Decision: D-104
"""
