"""The project's own tools: house lint, clause report, lock. Not part of the package."""
