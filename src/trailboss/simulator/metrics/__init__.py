"""Measures of a simulation: streams of blocks to a few numbers, and the statistics below them."""
