"""Committed state in a directory: the store, its files, its tables, and what must agree before a chain builds on them.

`store` stages blocks and seals them; `directory` is the lock, the tables and the head together; `files` asks the
operating system; `tables` is LMDB behind names; `journal` has the records, `recovery` the checks at opening.
"""
