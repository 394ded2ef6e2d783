"""The reference page of the command line, written from the commands themselves."""

from collections.abc import Iterator
from typing import Any, Final

from typer.core import TyperGroup

from trailboss.cli.lazy import LazyCommand
from trailboss.cli.main import COMMANDS

INTRO: Final = """
# The command line

`trailboss` works on a chain that lives in a directory: `--chain DIR`, else the directory that `TRAILBOSS_CHAIN` names,
else `chain` in the present one. Each command opens the chain, does one thing and closes it; one process at a time has
it open. [A chain in a directory](../tutorial/chain-directory.md) shows a session.

What is data goes to stdout, what is progress, a note or an error to stderr. `--json` prints one JSON document instead
of text: amounts in base units, with their text beside those that JavaScript would round, as `balance_text`; bytes as
`0x` and digits; errors as `{"error": {"what": …, "fix": …}}`; only an option
or an argument that has the wrong form is always printed as text. In a terminal, ids in tables are cut to the digits
that distinguish them; in a pipe and in JSON they are whole.

| exit status | meaning |
| --- | --- |
| 0 | done |
| 1 | understood, and not done: refused, reverted, not there, damaged, different, not proven |
| 2 | not understood |
| 3 | of `watch`, on a directory or with `--once`: a payer runs dry soon, or has run dry |
| 130 | stopped by Ctrl-C |

| written as | what can be typed |
| --- | --- |
| `WHO` | an address, `0x` and 40 digits; or a development account: `0` to `9`, `deployer` |
| `ACTOR` | as `WHO`, or the first digits of its address, if no other actor has the same |
| `ID` | a timer's id, or the first digits of it, if no other timer has the same |
| `AMOUNT` | base units, as `1500000000`; or CBY with the unit, as `1.5cby`: exact, at most nine decimals |
| `PAYLOAD` | text; `0x…` for bytes; `@FILE` for what a file holds; with `--cbor` that is JSON and is sent as CBOR |

Who signs: the account that `--from` names, if it is a development account or the one of the key given; else the account
of the key; else account 0, or for `govern` the deployer. A key is given with `--private-key` or, better, in
`COWBOY_PRIVATE_KEY`. A transaction is built into a block of its own at once; `mine` builds blocks without transactions.

`trailboss --install-completion` teaches the shell to complete commands, options and accounts.
"""
COMMON: Final = ("directory", "as_json", "help", "private_key")
"""Options that the introduction explains."""


def cli_page() -> str:
    """Return the page: each command with what it does, its arguments and its options."""
    parts = [INTRO.lstrip()]
    for panel in dict.fromkeys(entry.panel for entry in COMMANDS):
        parts.append(f"## {panel}\n")
        for entry in COMMANDS:
            if entry.panel == panel:
                parts.extend(_command_parts(f"trailboss {entry.name}", LazyCommand(entry).load()))
    return "\n".join(parts)


def _command_parts(name: str, command: Any) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{_plain(command.help)}\n"
    if isinstance(command, TyperGroup):
        for below, each in command.commands.items():
            yield f"#### {name} {below}\n"
            yield f"{_plain(each.help)}\n"
            yield from _parameter_parts(f"{name} {below}", each)
    else:
        yield from _parameter_parts(name, command)


def _parameter_parts(name: str, command: Any) -> Iterator[str]:
    arguments = [_argument(each) for each in command.params if each.param_type_name == "argument"]
    listed = [each for each in command.params if each.param_type_name == "argument" or each.name not in COMMON]
    yield f"`{' '.join([name, *arguments])}`\n"
    rows = [(f"`{_written(each)}`", _plain(each.help) + _default(each)) for each in listed if each.help]
    if rows:
        yield "\n".join(["| | |", "| --- | --- |", *(f"| {left} | {right} |" for left, right in rows)]) + "\n"


def _written(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return _argument(parameter)
    value = "" if parameter.is_flag else f" {_metavar(parameter)}"
    return f"{'/'.join([*parameter.opts, *parameter.secondary_opts])}{value}"


def _argument(parameter: Any) -> str:
    name = _metavar(parameter)
    return f"{name if parameter.required else f'[{name}]'}{'...' if parameter.nargs < 0 else ''}"


def _metavar(parameter: Any) -> str:
    return str(parameter.metavar or "N")


def _default(parameter: Any) -> str:
    if parameter.default in (None, False, "", ()) or not parameter.show_default:
        return ""
    return f" [default: {parameter.default}]"


def _plain(text: str | None) -> str:
    paragraphs = (text or "").strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
