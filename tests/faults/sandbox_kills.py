"""Kill a process while it compiles the sandbox ahead of time, and while its chain runs frames in the sandbox.

``python -m tests.faults.sandbox_kills --kills 100 --seed 1`` kills so many of each kind, and prints a line for each.

A builder keeps the image and its machine code in a cache of its own, which it often finds without one of them: whatever
a kill leaves there, the next process has to run a frame with it. A writer runs a chain on disk whose transactions are
frames of a small actor that fills memory, so that about half its time is frames and restores; it states each block that
it has sealed. Afterwards the chain must open at that block or the next, and its state must be that of its blocks.
"""

import argparse
import mmap
import os
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.faults.children import forked, killed
from trailboss.chain.replay import verify_chain
from trailboss.sandbox import cache
from trailboss.sandbox.engine import FrameRun
from trailboss.sandbox.image.image import Image
from trailboss.sandbox.pages import Restorer
from trailboss.sandbox.stage import WASM_STACK_BYTES
from trailboss.sandbox.wasmtime_library import Compiler
from trailboss.testing import LocalChain

LONGEST_BUILD: Final = 9.0
"""Seconds: a little more than keeping an image and compiling it takes on a machine that has nothing else to do."""
LONGEST_LIFE: Final = 0.6
PATIENCE: Final = 5.0  # seconds for which a killer waits for its moment
FRESH: Final = 10  # kills of a chain before another one begins
MOMENTS: Final = ("block", "frame", "restore")  # what a writer does, by the number that it shows
CALLS: Final = 20  # frames of a block
ACTOR: Final = """
def fill(payload):
    kept = [bytes(3_000) for _ in range(300)]
    count = int.from_bytes(pvm_host.get_state(b"count") or b"", "big") + 1
    pvm_host.set_state(b"count", count.to_bytes(8, "big"))
    return len(kept)
"""


def read_image() -> Image:
    """Return the image of this version, which must be built."""
    found = cache._decoded(cache._image_path(cache.released_digest()).read_bytes())
    assert found is not None
    return found


def _succeeded(child: int) -> None:
    _, status = os.waitpid(child, 0)
    assert status == 0, f"what a kill has left cannot be used: status {status}"


# The ahead-of-time build


def _build(image: Image, base: Path) -> None:
    os.environ["XDG_CACHE_HOME"] = str(base)
    cache.keep(image)
    cache.load_module(image, image.digest(), Compiler(WASM_STACK_BYTES, cache.OPTIMIZATION))


def _use(image: Image, base: Path) -> None:
    """Run a frame with what is in the cache; only an image that is missing is kept again."""
    os.environ["XDG_CACHE_HOME"] = str(base)
    if not cache.is_built():
        cache.keep(image)
    chain = LocalChain(vm="sandbox")
    sender = chain.accounts[0]
    receipt = chain.deploy(ACTOR, sender=sender).call("fill", b"", sender=sender)
    assert receipt.status == "ok", receipt
    directory = cache.cache_directory()
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {each.suffix for each in directory.iterdir()} >= {".image", ".code"}


def kill_builds(kills: int, seed: int, base: Path) -> str:
    """Kill builders; return what happened, in words.

    Raises:
        AssertionError: If the next process cannot use what a kill has left.
    """
    dice = random.Random(seed)
    image = read_image()
    amid = without_code = 0
    for _ in range(kills):
        if dice.random() < 0.5:
            shutil.rmtree(base, ignore_errors=True)
        else:
            for code in base.rglob("*.code"):
                code.unlink()
        base.mkdir(exist_ok=True)
        # Squared, so that many fall into the first moments, when the files are written.
        amid += killed(forked(lambda: _build(image, base)), LONGEST_BUILD * dice.random() ** 2)
        without_code += not list(base.rglob("*.code"))
        _succeeded(forked(lambda: _use(image, base)))
    return f"{kills} builders, {amid} killed at work, {without_code} before there was code: every next one ran a frame"


# The chain


def _write(directory: Path, log: Path, moment: mmap.mmap) -> None:
    """Build blocks of frames until killed; state each block, and show what is being done."""

    def shown(kind: type, name: str, number: int) -> None:
        run = getattr(kind, name)

        def during(self: object) -> object:
            moment[0] = number
            try:
                return run(self)
            finally:
                moment[0] = 0

        setattr(kind, name, during)

    shown(FrameRun, "outcome", MOMENTS.index("frame"))
    shown(Restorer, "restore", MOMENTS.index("restore"))
    chain = LocalChain(vm="sandbox", data_dir=directory)
    sender = chain.accounts[0]
    actor = chain.actor(bytes.fromhex(address)) if (address := _actor(log)) else chain.deploy(ACTOR, sender=sender)
    with log.open("a") as file:
        while True:
            with chain.one_block():
                for _ in range(CALLS):
                    actor.call("fill", b"", sender=sender)
            file.write(f"{actor.address.hex()} {chain.chain.height} {chain.chain.head.hash.hex()}\n")
            file.flush()
            os.fsync(file.fileno())


def _lines(log: Path) -> list[str]:
    """Return what a writer has stated, without a line that a kill has torn."""
    return log.read_text().split("\n")[:-1]


def _actor(log: Path) -> str:
    lines = _lines(log)
    return lines[-1].split()[0] if lines else ""


def _check(directory: Path, log: Path) -> None:
    """Open what a kill has left, and run all its blocks again."""
    if not (directory / "chain.mdb").exists():
        return
    with LocalChain(vm="sandbox", data_dir=directory) as chain:
        for line in _lines(log):
            _, height, block_hash = line.split()
            assert chain.chain.blocks[int(height)].hash.hex() == block_hash, f"block {height} was stated and is gone"
        assert verify_chain(chain.chain).ok
        chain.check_invariants()


def kill_writers(kills: int, seed: int, base: Path) -> str:
    """Kill writers, most of them within a frame or a restore; return what happened, in words.

    Raises:
        AssertionError: If a chain does not open, has lost a block, or does not verify.
    """
    dice = random.Random(seed)
    met = dict.fromkeys(MOMENTS, 0)
    directory, log = base / "chain", base / "log"
    with mmap.mmap(-1, 1) as moment:
        for number in range(kills):
            if number % FRESH == 0:
                shutil.rmtree(directory, ignore_errors=True)
                log.write_text("")
            moment[0] = 0
            child = forked(lambda: _write(directory, log, moment))
            time.sleep(LONGEST_LIFE * dice.random())
            aim, end = dice.randrange(len(MOMENTS)), time.monotonic() + PATIENCE
            while moment[0] != aim and time.monotonic() < end:
                pass
            assert killed(child, 0), "the writer stopped by itself"
            met[MOMENTS[moment[0]]] += 1
            _succeeded(forked(lambda: _check(directory, log)))
    heights = len(_lines(log))
    moments = ", ".join(f"{count} during a {name}" for name, count in met.items())
    return f"{kills} writers killed, {moments}; the last chain has {heights} blocks: every one opened and verified"


def main() -> None:
    """Read the command line and kill."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="of builders, and of writers (default 100)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if not cache.is_built():
        print("the sandbox is not built: run make sandbox")
        return
    with tempfile.TemporaryDirectory() as base:
        print(kill_writers(options.kills, options.seed, Path(base)))
        print(kill_builds(options.kills, options.seed, Path(base, "cache")))


if __name__ == "__main__":
    main()
