"""Simulations and forecasts of a node: on published views, with an engine of their own, off the chain's thread."""

from threading import Lock

from trailboss.chain.drafts import Terms
from trailboss.chain.view import ChainView
from trailboss.model.transactions import Instruction
from trailboss.params import ChainParams
from trailboss.primitives.octets import Address, Hash32
from trailboss.rehearsal.forecast import Ahead, look_ahead
from trailboss.rehearsal.overrides import Overrides
from trailboss.rehearsal.simulate import simulate, simulate_fire
from trailboss.sandbox.engines import new_engine
from trailboss.views import Receipt


class Workbench:
    """Runs what changes nothing, one after the other, while blocks are built.

    Any thread but those of the event loop and the chain may use it. Decision: D-107, D-116
    """

    def __init__(self, params: ChainParams, image: bytes) -> None:
        """Take a chain's parameters and the digest of its image; the image is loaded with the first frame."""
        self._engine = new_engine(params, image)
        self._ahead: Ahead | None = None
        self._asked: tuple[Hash32, int] | None = None
        self._turn = Lock()

    def simulate(
        self, view: ChainView, instruction: Instruction, sender: Address, terms: Terms, overrides: Overrides
    ) -> Receipt:
        """Return the receipt that an instruction would have; see `trailboss.rehearsal.simulate.simulate`."""
        with self._turn:
            return simulate(view, self._engine, instruction, sender, terms=terms, overrides=overrides)

    def simulate_fire(self, view: ChainView, timer_id: Hash32, overrides: Overrides) -> Receipt:
        """Return the receipt that a timer's next fire would have; see `trailboss.rehearsal.simulate.simulate_fire`."""
        with self._turn:
            return simulate_fire(view, self._engine, timer_id, overrides=overrides)

    def ahead(self, view: ChainView, blocks: int) -> Ahead:
        """Return the forecast of a view's next blocks, and its fork to read; the last one asked for is kept."""
        asked = view.head.hash, blocks
        with self._turn:
            if self._ahead is None or self._asked != asked:
                self._ahead, self._asked = look_ahead(view, blocks, engine=self._engine), asked
            return self._ahead

    def close(self) -> None:
        """Release the engine, once nothing runs any more."""
        with self._turn:
            self._engine.close()
