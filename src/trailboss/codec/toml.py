"""Writing TOML, which the standard library only reads."""

import json
import re
from collections.abc import Mapping
from typing import Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def table_text(heading: str, table: Mapping[str, object]) -> str:
    """Return a TOML table of text, numbers, truths and lists, which are written as in JSON.

    >>> print(table_text("[accounts]", {"name": "a", "a.b": [1, True]}), end="")
    [accounts]
    name = "a"
    "a.b" = [1, true]
    """
    lines = [f"{key if _BARE.fullmatch(key) else json.dumps(key)} = {json.dumps(table[key])}" for key in table]
    return "\n".join([*([heading] if heading else ()), *lines, ""])
