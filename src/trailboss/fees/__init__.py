"""Fees: the next base fee of a market, and what a paid execution costs whom."""
