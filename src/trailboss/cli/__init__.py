"""The command line: `commands` has one module a subject; `remote` is the same commands on a node.

`main` lists the commands without importing them, so that ``trailboss --help`` starts at once. `options` defines what
several commands take, `parsing` and `targets` read it, `output` and `errors` print.
"""
