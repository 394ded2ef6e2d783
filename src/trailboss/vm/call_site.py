"""Where a host call comes from, and what one is."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from trailboss.params import ChainParams
from trailboss.vm.engine import Frame
from trailboss.vm.host import Host
from trailboss.vm.meter import Meter


class CallSite(Struct, frozen=True):
    """Where a host call comes from.

    Attributes:
        host: Answers of the chain.
        meter: Meter of the frame.
        params: Prices and limits.
        frame: The frame.
    """

    host: Host
    meter: Meter
    params: ChainParams
    frame: Frame


HostCall = Callable[[CallSite, Sequence[object], Mapping[str, object]], object]
