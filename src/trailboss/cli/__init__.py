"""The command line: one command a module, or a few that belong together.

`main` lists the commands without importing them, so that ``trailboss --help`` starts at once. `parsing` reads what
people type, `opening` opens the chain and finds the accounts, `output` prints, `failures` tells what went wrong.
"""
