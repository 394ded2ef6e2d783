"""The studies: each a module with one TOML file of the same name beside it."""
