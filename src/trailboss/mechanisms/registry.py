"""The one list of mechanisms."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from trailboss.mechanisms import fifo
from trailboss.mechanisms.base import Mechanism
from trailboss.params import ChainParams
from trailboss.primitives.errors import ConfigurationError

MECHANISMS: Final[Mapping[str, Callable[[ChainParams], Mechanism]]] = MappingProxyType({fifo.NAME: fifo.build_fifo})
"""Name to factory."""


def build_mechanism(name: str, params: ChainParams) -> Mechanism:
    """Return the mechanism of that name, with the chain's parameters.

    Raises:
        ConfigurationError: If there is none of that name.
    """
    if name not in MECHANISMS:
        raise ConfigurationError(f"unknown mechanism {name!r}; there are: {', '.join(MECHANISMS)}")
    return MECHANISMS[name](params)
