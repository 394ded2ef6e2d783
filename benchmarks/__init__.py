"""The benchmarks: what the chain costs, beside what others cost, in one process. Run: ``python -m benchmarks``."""
