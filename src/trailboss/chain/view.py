"""`ChainView`: a chain as one block left it, for any thread, while the chain goes on."""

from trailboss.chain.history import PublishedBlocks
from trailboss.chain.reader import ChainReader
from trailboss.mechanisms.registry import Succession
from trailboss.state.view import StoreView


class ChainView(ChainReader):
    """A chain as one block left it: what `Chain.publish` returns.

    Any thread may read it, several at once, and all that it returns is of one height, while the chain goes on. If the
    chain goes back below that height, a view still has the state, its head and the blocks that the chain keeps; for
    other blocks it raises `ViewGoneError`. Decision: D-74.
    """

    store: StoreView
    blocks: PublishedBlocks

    def __init__(self, chain: ChainReader, mechanisms: Succession, store: StoreView, blocks: PublishedBlocks) -> None:
        """Look at a chain; `Chain.publish` is the way. The mechanisms are its own, and have never selected anything."""
        self.genesis = chain.genesis
        self.params = chain.params
        self.store = store
        self.blocks = blocks
        self._mechanisms = mechanisms
        self.instance_id = chain.instance_id
        if store.height == chain.store.height:
            self._rules = chain.rules(), store.state_root, {}
