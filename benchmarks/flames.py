"""Flame graphs of a transfer that is mined by itself and of a fire of the SDK Clock: `make bench-flames` writes them.

py-spy takes the samples. The width of a box is the part of the time that a function takes, with all that it calls; what
it calls is below it. A box shows as much of its name as there is room for, and all of it under the pointer.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from html import escape
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct, field

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
WIDTH, ROW = 1_200, 16  # pixels of a picture, and of the height of a box
CHARACTER: Final = 6.0  # pixels of its width
PART_MIN: Final = 0.002  # of the time that a box must take to be drawn
COLOURS: Final = ("#f4a261", "#e9c46a", "#f2b880", "#e8b04a")
FIRES: Final = "fires"  # argument by which this program is the one that is sampled


class Box(Struct):
    """A function that was called by those above it: its samples, and what it has called, by name."""

    samples: int = 0
    calls: dict[str, "Box"] = field(default_factory=dict)


def main(folder: Path) -> None:
    """Write ``transfer.svg`` and ``fire.svg`` into a folder."""
    signed = (post("/submit_wait", encode_submission([each])) for each in islice(transfers(), SIGNED))
    requests = iter(list(signed))
    with TemporaryDirectory() as temporary:
        stacks = Path(temporary, "stacks")
        with running("dev", "--port", "0", *OPTIONS) as (port, process), closing(Client(port)) as client:
            client.ask_all(list(islice(requests, WARM)))
            with _sampler(stacks, process) as sampler:
                while sampler.poll() is None:
                    client.ask(next(requests))
        folder.joinpath("transfer.svg").write_text(draw("a transfer, mined by itself", stacks.read_text("utf-8")))
        with subprocess.Popen((sys.executable, "-m", "benchmarks.flames", FIRES), stdout=subprocess.PIPE) as fires:
            assert fires.stdout is not None
            fires.stdout.readline()
            with _sampler(stacks, fires.pid) as sampler:
                sampler.wait()
            fires.terminate()
        folder.joinpath("fire.svg").write_text(draw("a fire of the SDK's Clock", stacks.read_text("utf-8")))


def _sampler(path: Path, process: int) -> "subprocess.Popen[bytes]":
    """Sample a process, and write a line for each stack: its functions, outermost first, and how often it was seen."""
    options = ("--function", "--format", "raw", "--duration", str(SECONDS), "--rate", str(RATE), "--output", str(path))
    command = (str(SAMPLER), "record", *options, "--pid", str(process))
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def draw(title: str, stacks: str) -> str:
    """Return the picture of lines of `_sampler`."""
    root = Box()
    for line in stacks.splitlines():
        names, _, count = line.rpartition(" ")
        box = root
        box.samples += int(count)
        for name in names.split(";"):
            box = box.calls.setdefault(re.sub(r":\d+\)$", ")", name), Box())
            box.samples += int(count)
    boxes = list(_boxes(title, root, 0, 0.0, WIDTH / root.samples))
    height = ROW * (1 + max(depth for depth, _ in boxes))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace"'
    return "\n".join((f'{head} font-size="10">', *(element for _, element in boxes), "</svg>\n"))


def _boxes(name: str, box: Box, depth: int, left: float, scale: float) -> Iterator[tuple[int, str]]:
    """Yield depth and element of a box, and of those that it has called, below it."""
    width, top = box.samples * scale, ROW * depth
    room = int((width - 4) / CHARACTER)  # in characters
    colour = COLOURS[sum(name.encode()) % len(COLOURS)]
    area = f'x="{left:.1f}" y="{top}" width="{max(width - 0.5, 0.3):.1f}" height="{ROW - 1}" fill="{colour}"'
    text = f'<text x="{left + 2:.1f}" y="{top + 11}">{escape(name[:room])}</text>' if room > 0 else ""
    yield depth, f"<g><title>{escape(name)}, {width / WIDTH:.1%}</title><rect {area}/>{text}</g>"
    for called, below in sorted(box.calls.items()):
        if below.samples * scale >= PART_MIN * WIDTH:
            yield from _boxes(called, below, depth + 1, left, scale)
        left += below.samples * scale


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
