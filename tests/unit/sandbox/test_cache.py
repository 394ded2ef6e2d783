"""The image and its machine code on disk: only what is whole and private is used."""

import hashlib
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from trailboss.primitives.errors import ConfigurationError, StorageError
from trailboss.sandbox import cache
from trailboss.sandbox.engines import EngineName, check_engine, default_engine
from trailboss.sandbox.image.image import Image
from trailboss.sandbox.stage import WASM_STACK_BYTES
from trailboss.sandbox.wasmtime_library import Compiler, WasmtimeError

pytest.importorskip("wasmtime", reason="the sandbox's parts are not installed: run make sandbox")
MODULE = bytes.fromhex("0061736d01000000010401600000030201000a040102000b")


@pytest.fixture
def image(tmp_path, monkeypatch):
    """A small image that this version runs, in a cache of its own."""
    found = Image(MODULE, bytes(65_536))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "released_digest", found.digest)
    cache.load_runtime.cache_clear()
    yield found
    cache.load_runtime.cache_clear()


@pytest.fixture
def compiler():
    return Compiler(WASM_STACK_BYTES)


def code_file(tmp_path):
    (found,) = (tmp_path / "trailboss" / "sandbox").glob("*.code")
    return found


def with_digest(code):
    return code + hashlib.sha256(code).digest()


def test_code_is_compiled_once_and_kept_privately(image, compiler, tmp_path, monkeypatch):
    assert cache.load_module(image, image.digest(), compiler)
    file = code_file(tmp_path)

    assert file.read_bytes() == with_digest(compiler.compile(MODULE))
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(Compiler, "compile", None)
    assert cache.load_module(image, image.digest(), compiler)


def damaged(file):
    file.write_bytes(file.read_bytes()[:-1] + b"\x7f")


def shortened(file):
    file.write_bytes(b"")


def foreign(file):
    file.write_bytes(with_digest(b"another program"))


def open_to_others(file):
    file.write_bytes(with_digest(b"x"))
    file.chmod(0o666)


def in_an_open_directory(file):
    file.write_bytes(with_digest(b"x"))
    file.parent.chmod(0o777)


def linked(file):
    target = file.with_name("elsewhere")
    target.write_bytes(with_digest(b"x"))
    file.unlink()
    file.symlink_to(target)


@pytest.mark.parametrize("spoil", [damaged, shortened, foreign, open_to_others, in_an_open_directory, linked])
def test_code_is_compiled_again_when_it_cannot_be_trusted(image, compiler, tmp_path, spoil):
    cache.load_module(image, image.digest(), compiler)
    whole = code_file(tmp_path).read_bytes()
    spoil(code_file(tmp_path))

    assert cache.load_module(image, image.digest(), compiler)
    assert code_file(tmp_path).read_bytes() == whole
    assert not code_file(tmp_path).is_symlink()


def test_code_is_read_where_files_cannot_run(image, compiler, tmp_path, monkeypatch):
    """A home whose file system is mounted without execution keeps code all the same."""
    cache.load_module(image, image.digest(), compiler)
    monkeypatch.setattr(Compiler, "compile", None)
    monkeypatch.setattr(Compiler, "load_file", refuse)

    assert cache.load_module(image, image.digest(), compiler)


def refuse(_compiler, path):
    raise WasmtimeError(f"{path} cannot be mapped to run")


def test_image_is_removed_when_it_is_damaged(image, tmp_path):
    cache.keep(image)
    (file,) = (tmp_path / "trailboss" / "sandbox").glob("*.image")
    octets = bytearray(file.read_bytes())
    octets[-1] ^= 1
    file.write_bytes(octets)

    with pytest.raises(ConfigurationError, match="is damaged and has been removed"):
        cache.load_runtime(image.digest())
    with pytest.raises(ConfigurationError, match="is not built on this machine: run: trailboss sandbox build"):
        cache.load_runtime(image.digest())


def test_image_crosses_to_another_machine_in_a_file(image, tmp_path, monkeypatch):
    cache.keep(image)
    cache.export_image(tmp_path / "image.xz")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert not cache.is_built()

    assert cache.import_image(tmp_path / "image.xz") == image.digest()
    assert cache.is_built()

    # It is compiled, not built: the other machine may lack what a build needs.
    assert not cache.status().has_code
    assert cache.build() == image.digest()
    assert cache.status().has_code


def test_image_is_refused_when_it_is_of_another_version(image, tmp_path, monkeypatch):
    cache.keep(image)
    cache.export_image(tmp_path / "image.xz")
    monkeypatch.setattr(cache, "released_digest", lambda: bytes(32))
    with pytest.raises(ConfigurationError, match="this version of Trailboss runs 0000"):
        cache.import_image(tmp_path / "image.xz")


@pytest.mark.parametrize("content", [b"", b"no image", os.urandom(100)], ids=["empty", "text", "noise"])
def test_file_is_refused_when_it_is_no_image(image, tmp_path, content):
    Path(tmp_path / "file").write_bytes(content)
    with pytest.raises(StorageError):
        cache.import_image(tmp_path / "file")


def unfinished(image, process):
    return cache.cache_directory() / f"{image.digest().hex()}.{process}"


def ended_process():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_leftovers_are_removed_when_no_process_uses_them(image, compiler):
    """What a killed writer left, what was made for a missing image or with other settings; never an image."""
    cache.keep(image)
    other = Image(MODULE, bytes(2 * 65_536))
    cache.keep(other)
    cache.load_module(image, image.digest(), compiler)
    (cache.cache_directory() / f"{other.digest().hex()}.{'1' * 64}.form").write_bytes(b"of an image that is here")
    kept = set(cache.cache_directory().iterdir()) | {unfinished(image, os.getpid())}
    unfinished(image, os.getpid()).write_bytes(b"growing")
    for left in (
        unfinished(image, ended_process()),
        cache.cache_directory() / f"{image.digest().hex()}.0123456789abcdef.code",
        cache.cache_directory() / f"{'0' * 64}.0123456789abcdef.code",
        cache.cache_directory() / f"{'f' * 64}.code",
        cache.cache_directory() / f"{'f' * 64}.{'1' * 64}.form",
        cache.cache_directory() / f"{image.digest().hex()}.{'1' * 64}.{ended_process()}",
    ):
        left.write_bytes(b"left")

    assert cache.remove_leftovers() == 6 * len(b"left")
    assert set(cache.cache_directory().iterdir()) == kept


def test_image_is_removed_with_its_code_and_no_other(image, compiler):
    other = Image(MODULE, bytes(2 * 65_536))
    cache.keep(other)
    cache.keep(image)
    cache.load_module(image, image.digest(), compiler)
    (cache.cache_directory() / f"{image.digest().hex()}.{'1' * 64}.form").write_bytes(b"compiled actor")
    first, second = cache.kept_images()

    assert (first.digest, first.is_released) == (image.digest().hex(), True)
    assert first.bytes == 24 + len(MODULE) + 65_536 + len(with_digest(compiler.compile(MODULE))) + len(
        b"compiled actor"
    )
    assert (second.digest, second.is_released) == (other.digest().hex(), False)
    assert cache.remove_image(first.digest) == first.bytes
    assert cache.kept_images() == (second,)


def test_image_does_not_run_when_it_is_of_another_version(image):
    """Even if it is here: what serves its requests belongs to its own version."""
    other = Image(MODULE, bytes(2 * 65_536))
    cache.keep(other)
    for refused in (cache.check_image, cache.load_runtime):
        with pytest.raises(ConfigurationError, match="use the version that the chain started with"):
            refused(other.digest())


def test_sandbox_counts_as_missing_when_wasmtime_is_not_installed(image, monkeypatch):
    """The image can come from another environment of this machine; a new chain then takes the native engine."""

    def find(name):
        raise PackageNotFoundError(name)

    cache.keep(image)
    assert cache.is_built()
    monkeypatch.setattr("importlib.metadata.distribution", find)

    assert not cache.is_built()
    assert default_engine() == EngineName.NATIVE
    with pytest.raises(ConfigurationError, match="wasmtime, which is not installed"):
        check_engine(image.digest())
