"""Cycles: what the constructs, sizes and names of a program cost, and the code that charges them as it runs."""
