"""The calendar queue: an in-memory view, by height, over the timers that the state holds.

The state has every timer once, keyed by height and id. This package only indexes it: heights lie in three tiers, and
a move between tiers moves one height's bucket, whatever lies in it, and writes nothing.
"""
