"""Which due timers run: the seam between the chain and the mechanisms, and the mechanisms themselves.

A mechanism sees values and answers with values, so it runs without a chain. `trailboss.mechanisms.base` is the seam,
`trailboss.mechanisms.registry` the one list of what there is.
"""
