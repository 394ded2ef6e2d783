"""The explorer: what the chain does, what is scheduled and why something did not fire, in a browser, from this node."""

from trailboss.explorer.mount import is_explorer_path, mount_explorer

__all__ = ["is_explorer_path", "mount_explorer"]
