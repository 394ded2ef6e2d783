"""Flame graphs of a transfer that is mined by itself and of a fire of the SDK Clock: `make bench-flames` writes them.

The width of a box is the part of the time that a function takes, with all that it calls. py-spy takes the samples.
"""

import subprocess
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Final

from benchmarks.frames import CLOCK, fire_sample
from benchmarks.load import post, running
from benchmarks.node import transfers
from benchmarks.peers import OPTIONS, Client
from trailboss.codec.wire import encode_submission

SAMPLER: Final = Path(sys.executable).parent / "py-spy"
SECONDS: Final = 10  # that are sampled
RATE: Final = 500  # samples a second
WARM: Final = 2_000  # transfers before them
SIGNED: Final = 40_000  # transfers: more than a node takes until the sampler ends
FIRES: Final = "fires"  # argument by which this program is the one that is sampled


def main(folder: Path) -> None:
    """Write ``transfer.svg`` and ``fire.svg`` into a folder."""
    signed = (post("/submit_wait", encode_submission([each])) for each in islice(transfers(), SIGNED))
    requests = iter(list(signed))
    with running("dev", "--port", "0", *OPTIONS) as (port, process), closing(Client(port)) as client:
        client.ask_all(list(islice(requests, WARM)))
        with _sampler(folder / "transfer.svg", process) as sampler:
            while sampler.poll() is None:
                client.ask(next(requests))
    with subprocess.Popen((sys.executable, "-m", "benchmarks.flames", FIRES), stdout=subprocess.PIPE) as fires:
        assert fires.stdout is not None
        fires.stdout.readline()
        with _sampler(folder / "fire.svg", fires.pid) as sampler:
            sampler.wait()
        fires.terminate()


def _sampler(path: Path, process: int) -> "subprocess.Popen[bytes]":
    """Sample a process, by function."""
    options = ("--function", "--duration", str(SECONDS), "--rate", str(RATE), "--output", str(path))
    return subprocess.Popen((str(SAMPLER), "record", *options, "--pid", str(process)), stderr=subprocess.DEVNULL)


def _fire_without_end() -> None:
    """Fire timers until this process is ended; a line says that all is warm."""
    sample = fire_sample(CLOCK)
    sample()
    print("warm", flush=True)
    while True:
        sample()


if __name__ == "__main__":
    if sys.argv[1:] == [FIRES]:
        _fire_without_end()
    main(Path(*sys.argv[1:]))
