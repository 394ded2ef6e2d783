"""Which bound ended a frame: the receipt and the explanation name it, with the actor's own line, on both engines."""

import pytest

from trailboss.sandbox.cache import is_built
from trailboss.sandbox.engines import EngineName
from trailboss.testing import LocalChain

SOURCE = """
import json
import re

def cycles(p):
    while True:
        n = 1

def cells(p):
    while True:
        pvm_host.set_state(p, bytes(90_000))

def results(p):
    kept = []
    while True:
        kept.append(bytes(4_000_000))

def depth(p):
    return depth(p)

def stack(p):
    return json.loads("[" * 200_000)

def fuel(p):
    return re.match("(a|aa)+$", "a" * 400 + "b")

HANDLERS = {each.__name__: each for each in (cycles, cells, results, depth, stack, fuel)}

def plant(p):
    pvm_host.schedule_timer(pvm_host.block_height() + 1, p, gas_limit=500_000)

def handle_timer(p):
    return HANDLERS[p.decode()](p)
"""
BOUNDS = {  # handler: slug, words of the text, the line that ran last
    "cycles": ("out_of_cycles", "its limit of 500000 cycles, all of which are used", "in cycles: "),
    "cells": ("out_of_cells", "cells, all of which are used", "in cells: pvm_host.set_state(p, bytes(90_000))"),
    "results": ("out_of_memory", "memory is used up", "in results: kept.append(bytes(4_000_000))"),
    "depth": ("out_of_memory", "more than 256 calls within one another", "in depth: return depth(p)"),
    "stack": ("out_of_memory", "while decoding a JSON array", 'in stack: return json.loads("[" * 200_000)'),
    "fuel": ("out_of_cycles", "used the fuel that its limit of 500000 cycles buys", "in fuel: return re.match("),
}


@pytest.mark.parametrize("vm", EngineName)
def test_bound_is_named_with_the_line_when_it_ends_a_frame(vm):
    if vm == EngineName.SANDBOX and not is_built():
        pytest.skip("the sandbox is not built: run make sandbox")
    with LocalChain(vm=vm) as chain:
        sender = chain.accounts[0]
        actor = chain.deploy(SOURCE, sender=sender, value=10**14, entitlements=["timer.schedule"])
        for handler, (slug, words, line) in BOUNDS.items():
            if handler == "fuel" and vm == EngineName.NATIVE:
                continue  # it would not end
            error = actor.call(handler, b"x", sender=sender, cycles_limit=500_000).error
            assert error.slug == slug
            assert words in error.what
            assert line in error.context["traceback"].splitlines()[-1]

            actor.call("plant", handler.encode(), sender=sender, check=True)
            (timer,) = chain.timers()
            ahead = str(chain.explain(timer.timer_id))
            chain.mine(2)
            for told in (ahead, str(chain.explain(timer.timer_id))):
                assert f"{slug}: " in told
                assert words in told
                assert f"in {handler}" in told
