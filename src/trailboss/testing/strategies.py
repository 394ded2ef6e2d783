"""Hypothesis strategies for what actors take: payloads, money, heights, limits, accounts, handlers.

What a strategy gives is made of numbers, bytes and text, so that a step can be written down as code.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from trailboss.codec.canonical import encode_canonical
from trailboss.params import load_params
from trailboss.primitives.errors import ConfigurationError
from trailboss.primitives.units import BASE_UNITS_PER_CBY, U64_MAX
from trailboss.testing import NEEDS_HYPOTHESIS
from trailboss.testing.handlers import callable_handlers

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(NEEDS_HYPOTHESIS, name=error.name) from None

PAYLOAD_OCTETS: Final = 64  # bytes of a payload without a form
TEXT_CHARACTERS: Final = 12
LEAVES: Final = 6  # values in one made-up document
BLOCKS: Final = 12  # blocks that pass at once
AMOUNT_MAX: Final = 1_000 * BASE_UNITS_PER_CBY
USUAL_GAS_LIMIT: Final = 50_000  # cycles
TIP_MAX: Final = 100_000  # base units a cycle
CALLERS: Final = 3  # accounts that call: the owner and two others


def amounts(most: int = AMOUNT_MAX) -> SearchStrategy[int]:
    """Amounts in base units, 0 to ``most``; often nothing, one unit, one CBY, or all of it."""
    edges = sorted({0, 1, min(BASE_UNITS_PER_CBY, most), most})
    return st.one_of(st.sampled_from(edges), st.integers(0, most))


def blocks(most: int = BLOCKS) -> SearchStrategy[int]:
    """Numbers of blocks, 1 to ``most``: how long to wait, or how far ahead to schedule."""
    return st.integers(1, most)


def heights(now: int, *, before: int = 2, after: int = 40) -> SearchStrategy[int]:
    """Heights around the present one: the next ones first, then past and present ones, which a schedule refuses."""
    return st.one_of(st.integers(now + 1, now + after), st.integers(max(0, now - before), now))


def gas_limits(most: int | None = None) -> SearchStrategy[int]:
    """Gas limits of timers in cycles, 1 to ``most``, by default all that ``mainnet`` allows; often the edges."""
    limit = load_params().timers.max_cycles_per_fire if most is None else most
    return st.one_of(st.sampled_from(sorted({1, min(USUAL_GAS_LIMIT, limit), limit})), st.integers(1, limit))


def tips(most: int = TIP_MAX) -> SearchStrategy[int]:
    """Tips in base units a cycle, 0 to ``most``; often none."""
    return st.one_of(st.just(0), st.integers(0, most))


def accounts(count: int = CALLERS) -> SearchStrategy[int]:
    """Numbers of funded accounts, 0 to ``count`` - 1: ``self.chain.accounts[number]``. Number 0 deploys the actor."""
    return st.integers(0, count - 1)


def values() -> SearchStrategy[Any]:
    """Values that JSON and CBOR both have: None, bools, integers of 64 bits, text, lists, maps with text keys."""
    text = st.text(max_size=TEXT_CHARACTERS)
    leaves = st.one_of(st.none(), st.booleans(), st.integers(-1, 300), st.integers(-U64_MAX, U64_MAX), text)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(text, inner, max_size=3)),
        max_leaves=LEAVES,
    )


def json_payloads(content: SearchStrategy[Any] | None = None) -> SearchStrategy[bytes]:
    """JSON in UTF-8, as ``json.loads(payload)`` reads it; of `values`, or of what a strategy gives."""
    return (values() if content is None else content).map(_as_json)


def cbor_payloads(content: SearchStrategy[Any] | None = None) -> SearchStrategy[bytes]:
    """Canonical CBOR, as ``codec.decode(payload)`` and decorated handlers read it; of `values`, or of a strategy's.

    The strategy's values are None, bools, integers, finite floats, bytes, text, lists or maps of such.
    """
    return (values() if content is None else content).map(encode_canonical)


def payloads(most: int = PAYLOAD_OCTETS) -> SearchStrategy[bytes]:
    """Payloads for a handler of which nothing is known: empty, any bytes up to ``most``, a number, CBOR, JSON."""
    numbers = st.integers(0, 20).map(lambda number: b"%d" % number)
    return st.one_of(st.just(b""), numbers, st.binary(max_size=most), cbor_payloads(), json_payloads())


def handlers(source: str | Path) -> SearchStrategy[str]:
    """Names of the handlers of a source, a path ending in ``.py`` or text, but ``init`` and ``deploy``.

    Raises:
        ConfigurationError: If it cannot be read, is refused, or has no handler.
    """
    return st.sampled_from(callable_handlers(source))


def calls(
    source: str | Path, arguments: Mapping[str, SearchStrategy[bytes]] | None = None
) -> SearchStrategy[tuple[str, bytes]]:
    """Handlers of a source with a payload each: from ``arguments`` by name, else `payloads`.

    Raises:
        ConfigurationError: As `handlers`, and for arguments of a handler that the source does not have.
    """
    known, given = callable_handlers(source), arguments or {}
    check_names("arguments", given, known)
    return st.one_of(*(st.tuples(st.just(name), given.get(name, payloads())) for name in known))


def check_names(what: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raise ConfigurationError for a name that is not known."""
    for name in given:
        if name not in known:
            raise ConfigurationError(f"{what} names {name!r}; there are: {', '.join(known)}")


def _as_json(value: object) -> bytes:
    return json.dumps(value).encode()
