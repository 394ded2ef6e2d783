"""The explorer: what the chain does, what is scheduled and why something did not fire, as pages from this node."""

from trailboss.explorer.routes import explorer_routes

__all__ = ["explorer_routes"]
