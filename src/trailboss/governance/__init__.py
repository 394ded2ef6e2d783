"""Governed parameters: what is stored, what may be changed, and the rules in force in a block."""
