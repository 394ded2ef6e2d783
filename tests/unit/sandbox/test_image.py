"""The image: what it consists of, and that everybody who builds it gets the same one."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.golden.world import World
from trailboss.params import load_params
from trailboss.primitives.errors import ConfigurationError
from trailboss.sandbox import cache
from trailboss.sandbox.image.builder import build_image, link_guest
from trailboss.sandbox.image.parts import read_parts
from trailboss.sandbox.image.wasm import BinaryReader, address, read_library, signed, unsigned
from trailboss.sandbox.stage import on_stage
from trailboss.vm.native import NativeEngine
from trailboss.vm.rules import ACTOR_MODULES

ROOT = Path(__file__).resolve().parents[3]
pytest.importorskip("componentize_py", reason="the sandbox's parts are not installed: run make sandbox")


@pytest.fixture(scope="module")
def linked():
    return link_guest(read_parts())


def test_module_has_one_import_and_one_mutable_global(linked):
    """Nothing but the host call leaves the sandbox, and nothing but memory and the stack pointer can change."""
    assert [(module, name) for module, name, _ in linked.imports] == [("host", "call")]
    assert [each.is_mutable for each in linked.globals].count(True) == 1


def test_symbol_is_missing_when_it_belongs_to_an_operating_system_alone(linked):
    """What the libraries need and the glue does not define traps; no data and no function of CPython is among it."""
    assert {each for each in linked.missing if not each.startswith("wasi:")} == {"env.__main_argc_argv"}


def test_image_is_the_one_whose_digest_is_committed():
    """Built from this tree, here and now, at another optimization than the one that runs it."""
    assert on_stage(build_image).digest() == cache.released_digest()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_image_is_the_same_when_another_python_builds_it(version):
    """Each version builds in an environment of its own, under another hash seed; ``make versions`` makes them."""
    python = ROOT / f".venv-{version}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{python} is not there; make versions builds it")
    program = (
        "from trailboss.sandbox.image.builder import build_image\n"
        "from trailboss.sandbox.stage import on_stage\n"
        "print(on_stage(build_image).digest().hex())"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "4242"}

    printed = subprocess.run(
        [python, "-c", program], env=environment, check=True, capture_output=True, text=True
    ).stdout

    assert printed.strip() == cache.released_digest().hex()


@pytest.mark.parametrize("number", [0, 1, 63, 64, 127, 128, 2**31 - 1, 2**31, 2**32 - 1])
def test_number_is_read_as_it_was_written(number):
    assert BinaryReader(unsigned(number)).unsigned() == number
    for each in (number, -number):
        assert BinaryReader(signed(each)).signed() == each
    assert BinaryReader(address(number)).signed() % 2**32 == number


@pytest.mark.parametrize("octets", [b"", b"\0asm", b"\0asm\1\0\0\0\x04\x01\x00"], ids=bytes.hex)
def test_library_is_refused_when_it_is_none(octets):
    with pytest.raises(ConfigurationError):
        read_library("other", octets)


@pytest.mark.parametrize("module", ACTOR_MODULES)
def test_every_name_that_actors_may_import_is_the_same_in_the_guest(world, module):
    """Each is touched once; what the standard library imports late would be missing."""
    names = ACTOR_MODULES[module]
    imports = "\n".join(f"    from {module} import {name} as name_{index}" for index, name in enumerate(names))
    texts = ", ".join(f"str(name_{index})" for index in range(len(names)))
    kinds = ", ".join(f"callable(name_{index})" for index in range(len(names)))
    source = f"def go(p):\n{imports}\n    texts = [{texts}]\n    return [{kinds}] if all(texts) else None\n"
    outcome, meter = world.call(source, "go")
    native = World(engine=NativeEngine(load_params("mainnet")))
    native_outcome, native_meter = native.call(source, "go")

    assert outcome.error is None, outcome.error
    assert outcome == native_outcome
    assert meter.cycles_used == native_meter.cycles_used
