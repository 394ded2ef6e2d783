"""Proofs of what the state of one root holds, made by whoever has the state and verified by whoever has the root.

`subjects` says what a proof can be about, `proof` is the record and its verification, `nodes` folds the part of a tree
that it shows, `statements` tells what it proves, `text` is its JSON. Only `proving`, which makes proofs, sees trees.
"""
