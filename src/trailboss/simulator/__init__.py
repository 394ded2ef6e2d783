"""Workloads run through every mechanism, and their measures."""
