"""A chain in process: it builds, stores, replays and reopens. `trailboss.views` is where a chain is looked at."""

from trailboss.chain.chain import Chain, Snapshot
from trailboss.chain.reader import ChainReader
from trailboss.chain.view import ChainView
from trailboss.execution.block import Applied

__all__ = ["Applied", "Chain", "ChainReader", "ChainView", "Snapshot"]
