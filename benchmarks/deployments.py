"""What a cycle of a deployment buys at most: sources of dense shapes, as long as the rules allow, checked and compiled.

``python -m benchmarks.deployments [shape ...]`` prints CPU time per charged cycle on both engines. Decision: D-101.
"""

import sys
import time
from contextlib import suppress
from typing import Final

from trailboss.params import deployment_price, load_params
from trailboss.primitives.errors import Rejection
from trailboss.primitives.keccak import keccak256
from trailboss.sandbox import cache
from trailboss.sandbox.engines import new_engine
from trailboss.vm.engine import Engine
from trailboss.vm.native import NativeEngine

SHAPES: Final = """x+x|x<x|-x|x[:]|x[x]|x.a|x()|f(x=x)|x,x|*x,x=x|x:x|x+=x|x[x]+=x|x.a+=x|x and x|x if x else x|(x:=x)|
    if x:x|while x:x|for x in x:x|with x:x|assert x|del x|import re|raise|[x for x in x]|{x:x for x in x}|lambda:x|
    def f():x|def f(x:x):x|class A:x|f'{x}'|f'{x}{x}{x}{x}{x}{x}'|x.format|x.pop(x)|(1,2)|not x|x = 1|#"""
SIZES: Final = (131_000, 96_000, 64_000, 48_000, 32_000, 24_000, 16_000, 12_000, 8_000, 4_000)
NANOSECONDS: Final = 1e9


def _longest(shape: str, engine: Engine) -> str:
    """Return the longest source of a shape that the rules allow."""
    source = shape
    for size in SIZES:
        source = (shape + "\n") * (size // (len(shape) + 1))
        with suppress(Rejection):
            engine.check_source(source, keccak256(source.encode()) + b"first")
            break
    return source


def main() -> None:
    """Measure and print the shapes that are named, or all."""
    params = load_params("mainnet")
    engines: dict[str, Engine] = {
        "native": NativeEngine(params),
        "sandbox": new_engine(params, cache.released_digest()),
    }
    engines["sandbox"].prepare()
    for shape in sys.argv[1:] or [each.strip() for each in SHAPES.split("|")]:
        source = _longest(shape, engines["native"])
        cycles = deployment_price(len(source), params.costs)
        columns = [f"{shape:32} {len(source):7,} bytes"]
        for name, engine in engines.items():
            begun = time.process_time()
            engine.check_source(source, keccak256(source.encode()))
            seconds = time.process_time() - begun
            columns.append(f"{name} {seconds:5.2f} s, {seconds / cycles * NANOSECONDS:4.0f} ns a cycle")
        print("   ".join(columns), flush=True)


if __name__ == "__main__":
    main()
