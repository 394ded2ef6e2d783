"""The state: authenticated maps in memory, the overlay a block writes to, and one root over everything.

``keys`` builds every key; ``overlay`` gathers a block's writes and takes them back to a mark; ``store`` commits them
a block at a time and goes back by height; ``commitment`` turns the namespaces' trees (``tree``) into the state root;
``slots`` keeps the names of actor storage in order, for prefix scans. ``disk`` is the store in a directory, ``proofs``
shows to somebody who has only the root what the state holds. What a value means is the business of others.
"""
