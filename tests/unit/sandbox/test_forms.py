"""Compiled actors on disk: what is whole, private and the source's own is used, and nothing else."""

import os
import shutil

import pytest

from trailboss.params import load_params
from trailboss.primitives.keccak import keccak256
from trailboss.sandbox import forms
from trailboss.sandbox.forms import CompiledActor, CompiledForms
from trailboss.sandbox.stage import on_stage

SOURCE, OTHER = "def go(p):\n    return 1\n", "def go(p):\n    return 2\n"
CODE_HASH = keccak256(SOURCE.encode())
ACTOR = CompiledActor(b"compiled" * 100, frozenset(("go", "init")))
IMAGE = bytes(range(32))
STEP = 10**9  # nanoseconds between the times at which files of a test are used


@pytest.fixture
def kept(tmp_path):
    found = CompiledForms(tmp_path / "sandbox", IMAGE)
    found.keep(SOURCE, CODE_HASH, ACTOR)
    return found


def only_file(kept):
    (found,) = kept._directory.iterdir()
    return found


def test_form_is_found_by_another_process_of_the_same_user(kept):
    assert CompiledForms(kept._directory, IMAGE).find(SOURCE, CODE_HASH) == ACTOR
    assert only_file(kept).stat().st_mode & 0o777 == 0o600
    assert kept._directory.stat().st_mode & 0o777 == 0o700


def test_form_is_that_of_its_source_hash_and_image_alone(kept):
    assert kept.find(OTHER, CODE_HASH) is None
    assert kept.find(SOURCE, bytes(32)) is None
    assert CompiledForms(kept._directory, bytes(32)).find(SOURCE, CODE_HASH) is None


def damaged(file):
    octets = bytearray(file.read_bytes())
    octets[-1] ^= 1
    file.write_bytes(octets)


def shortened(file):
    file.write_bytes(file.read_bytes()[:40])


def emptied(file):
    file.write_bytes(b"")


def open_to_others(file):
    file.chmod(0o666)


def in_an_open_directory(file):
    file.parent.chmod(0o777)


def linked(file):
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def replaced_by_a_directory(file):
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    "spoil", [damaged, shortened, emptied, open_to_others, in_an_open_directory, linked, replaced_by_a_directory]
)
def test_form_is_not_there_when_it_cannot_be_trusted(kept, spoil):
    spoil(only_file(kept))
    assert kept.find(SOURCE, CODE_HASH) is None


def test_form_of_another_source_is_not_taken_when_it_has_the_name_of_this_one(kept):
    mine = only_file(kept)
    kept.keep(OTHER, CODE_HASH, CompiledActor(b"another", frozenset()))
    (other,) = set(kept._directory.iterdir()) - {mine}
    shutil.copy2(other, mine)
    assert kept.find(SOURCE, CODE_HASH) is None


def test_form_that_was_used_longest_ago_goes_first_when_they_take_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(forms, "FORMS_BYTES_MAX", 40_000)
    monkeypatch.setattr(forms, "_TRIMMED_BYTES", 30_000)
    kept = CompiledForms(tmp_path, IMAGE)
    sources = [f"{SOURCE}# {number}\n" for number in range(12)]
    for number, source in enumerate(sources):
        before = set(tmp_path.iterdir())
        kept.keep(source, CODE_HASH, ACTOR)
        for made in set(tmp_path.iterdir()) - before:
            os.utime(made, ns=(number * STEP, number * STEP))
        if number:
            assert kept.find(sources[0], CODE_HASH) == ACTOR  # The first one is used again and again.

    assert kept.find(sources[0], CODE_HASH) == kept.find(sources[-1], CODE_HASH) == ACTOR
    assert kept.find(sources[1], CODE_HASH) is None
    assert sum(each.stat().st_size + 4_096 for each in tmp_path.iterdir()) <= 40_000


def test_nothing_is_kept_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    nowhere = CompiledForms(tmp_path / "file" / "sandbox", IMAGE)
    nowhere.keep(SOURCE, CODE_HASH, ACTOR)
    assert nowhere.find(SOURCE, CODE_HASH) is None


def test_actor_is_not_compiled_again_after_a_restart(runtime, engine, tmp_path, monkeypatch):
    """Neither for its handlers nor for a frame; without its file it is, and to the same."""
    source = f"{SOURCE}# of a process {os.getpid()}\n"
    code_hash, params = keccak256(source.encode()), load_params("mainnet")
    monkeypatch.setattr(runtime, "_forms", CompiledForms(tmp_path, runtime.digest))
    engine.check_source(source, code_hash)
    first = on_stage(lambda: runtime.actor(source, code_hash, params))

    def restart():
        runtime._compiled.clear()
        runtime._actors.clear()

    restart()
    with monkeypatch.context() as without:
        without.setattr(runtime, "_compile", None)
        assert engine.handlers(source, code_hash) == {"go"}
        again = on_stage(lambda: runtime.actor(source, code_hash, params))
    restart()
    for file in tmp_path.iterdir():
        damaged(file)
    third = on_stage(lambda: runtime.actor(source, code_hash, params))
    restart()

    states = [
        (each.octets, each.cycles, each.fuel, each.first.content(0, runtime._memory.size))
        for each in (first, again, third)
    ]
    assert states[0] == states[1] == states[2]
