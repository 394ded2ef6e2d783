"""Proofs of what the state of one root holds, made from the state and verified from the root alone.

`subjects` defines what a proof can be about, `proof` the record, its verification and its JSON, `nodes` folds the shown
part of a tree, `statements` describes what is proved. Only `prover`, which makes proofs, sees trees.
"""
