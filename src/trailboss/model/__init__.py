"""The chain's records: transactions, timers, actors, effects and events, as plain values."""
