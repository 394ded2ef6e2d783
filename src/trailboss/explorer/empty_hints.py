"""What to type where there is nothing to see yet."""

from ipaddress import ip_address
from typing import Final

from trailboss.explorer.page_context import Reading
from trailboss.node.options import HOST

AHEAD: Final = 60
"""Blocks ahead for which a timer is suggested: time enough to type the command."""


def node_url(reading: Reading) -> str:
    """Return the address by which this machine reaches the node."""
    options = reading.node.options
    if not options.port:
        return "URL"
    host = options.host
    try:
        found = ip_address(host)
    except ValueError:
        return f"http://{host}:{options.port}"
    if found.is_unspecified:
        host = HOST
    return f"http://[{host}]:{options.port}" if found.version != 4 else f"http://{host}:{options.port}"


def schedule_command(reading: Reading) -> str:
    """Return the command that schedules a timer without an actor of one's own, under any mechanism."""
    return f"trailboss schedule --height {reading.height + AHEAD} --payload hello --url {node_url(reading)}"


def faucet_command(reading: Reading, address: object) -> str:
    """Return the command that funds an account."""
    return f"trailboss faucet {address} --url {node_url(reading)}"
