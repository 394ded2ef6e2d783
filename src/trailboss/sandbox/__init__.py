"""The ``sandbox`` engine: CPython in WebAssembly, for code that others send. See docs/concepts/sandbox.md."""
