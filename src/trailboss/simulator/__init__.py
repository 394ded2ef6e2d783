"""Workloads that are run through every mechanism, and what is measured of them."""
