"""Options are read as Typer reads them, but for the import of pydantic."""

from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperGroup

from trailboss.cli.errors import Mistake
from trailboss.cli.lazy import LazyCommand
from trailboss.cli.main import COMMANDS
from trailboss.cli.plain_values import ValueReader


def parameters(command) -> Iterator:
    yield from command.params
    for each in command.commands.values() if isinstance(command, TyperGroup) else ():
        yield from parameters(each)


def outcome(reader, param, value):
    """Return the type and the value that a reader makes, or its refusal."""
    try:
        found = reader.coerce(value, param=param, ctx=typer.Context(typer.core.TyperCommand("any")))
    except typer.BadParameter as refusal:
        return refusal.message
    except Mistake as mistake:
        return str(mistake)
    return type(found), found


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_options_are_read_as_typer_reads_them(entry, tmp_path):
    """Every option and argument of every command gives the same value, or the same words of refusal."""
    (tmp_path / "file").write_text("text")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    texts = ("", "0", "7", "-1", "0x", "auto", "INTERVAL", "json", "1cby", "a=b", "no such", str(tmp_path / "file"))
    texts += (str(tmp_path), str(tmp_path / "missing"), str(tmp_path / "dangling"))
    for param in parameters(LazyCommand(entry).load()):
        reader = param.get_runtime_param()
        assert isinstance(reader, ValueReader)
        many = param.multiple or param.nargs == -1
        values = [(), ("a",), ("1", "0x2")] if many else texts
        for value in (None, param.default, *values):
            assert outcome(reader, param, value) == outcome(reader.usual(), param, value), (param.name, value)


def test_path_is_refused_when_it_cannot_be_read(tmp_path, monkeypatch):
    """A path is checked before its command runs, in Typer's words."""
    monkeypatch.setattr("os.access", lambda *_: False)
    command = LazyCommand(next(entry for entry in COMMANDS if entry.name == "dev")).load()
    param = next(each for each in command.params if each.name == "chain")
    assert outcome(param.get_runtime_param(), param, str(tmp_path)) == f"path '{tmp_path}' is not readable."
