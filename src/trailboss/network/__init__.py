"""The chain on CometBFT: several validators agree on every block. Decision: D-103."""
