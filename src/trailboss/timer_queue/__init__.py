"""The calendar queue: which timers are due, and when the next one is.

The state has every timer once, keyed by height and id. This package keeps the near ones in memory, in a ring of
heights, and reads the others from the state, in order, as their heights come near. A timer far ahead costs no memory
here, and none changes its place in the state while it waits.
"""
