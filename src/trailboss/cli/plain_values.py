"""Values of options, read to Typer's results without pydantic, whose import takes as long as all of the help."""

import os
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

from msgspec import Struct


class ValueReader(Struct):
    """What a parameter of Typer's asks to read its values."""

    usual: Callable[[], Any]  # returns what reads a value that is not plain

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of a parameter from what was typed, or from its default."""
        try:
            return _read(param.type_descriptor.annotation, param.type_descriptor.parameter_info.parser, value)
        except ValueError:
            return self.usual().coerce(value, param=param, ctx=ctx)


def read_plainly(param: Any) -> None:
    """Have a parameter read plain values without pydantic; one of another version of Typer stays as it is."""
    with suppress(AttributeError):
        reader = ValueReader(param.get_runtime_param)
        param.get_runtime_param = lambda: reader


def _read(kind: Any, parser: Callable[[Any], Any] | None, value: Any) -> Any:
    """Return a plain value. `ValueError` for any other, `typer.BadParameter` where a parser says why."""
    if get_origin(kind) is list and not isinstance(value, str):
        return () if value is None else [_read(get_args(kind)[0], parser, each) for each in value]
    if value is None or (kind is str and type(value) is str and parser is None):
        return value
    if parser is not None:
        return parser(value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    if kind is Path and (os.access(value, os.R_OK) or not os.path.lexists(value)):
        return Path(value)
    raise ValueError(value)
