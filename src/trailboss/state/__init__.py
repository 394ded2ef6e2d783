"""The state: authenticated maps in memory, the overlay a block writes to, and one root over everything.

``keys`` builds every key; ``overlay`` collects a block's writes and reverts them to a mark; ``store`` commits them
block by block and goes back by height; ``commitment`` combines the namespaces' trees (``tree``) into the state root;
``slots`` keeps the names of actor storage in order, for prefix scans. ``disk`` is the store in a directory; ``proofs``
prove the state's contents to anyone who has only the root. What a value means is not defined here.
"""
