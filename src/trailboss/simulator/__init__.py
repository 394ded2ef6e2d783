"""Simulations of the mechanisms: scenarios, their agents, measures and studies."""
