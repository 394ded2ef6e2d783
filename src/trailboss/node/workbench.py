"""Simulations and forecasts of a node: on published views, with an engine of their own, off the chain's thread."""

from threading import Lock
from weakref import WeakKeyDictionary

from trailboss.chain.drafts import Terms
from trailboss.chain.view import ChainView
from trailboss.model.timers import Timer
from trailboss.model.transactions import Instruction
from trailboss.params import ChainParams
from trailboss.primitives.octets import Address, Hash32
from trailboss.rehearsal.forecast import NEAR_BLOCKS, Ahead, forecast_beside, look_ahead
from trailboss.rehearsal.overrides import Overrides
from trailboss.rehearsal.simulate import simulate, simulate_fire
from trailboss.sandbox.engines import new_engine
from trailboss.views import Receipt
from trailboss.views.mechanism.base import Outlook


class Workbench:
    """Runs what changes nothing, one after the other, while blocks are built.

    Any thread but those of the event loop and the chain may use it. Decision: D-107, D-116
    """

    def __init__(self, params: ChainParams, image: bytes, *, breakpoints: bool = False) -> None:
        """Take what `new_engine` takes; an image is loaded with the first frame."""
        self._engine = new_engine(params, image, breakpoints=breakpoints)
        # Forecasts by their number of blocks. They go with the view: a fork of it keeps what the chain changes later.
        self._ahead = WeakKeyDictionary[ChainView, dict[int, Ahead]]()
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
        """Return the forecast of a view's next blocks, and the view after them; both are kept as long as the view."""
        with self._turn:
            kept = self._ahead.setdefault(view, {})
            if blocks not in kept:
                kept[blocks] = look_ahead(view, blocks, engine=self._engine)
            return kept[blocks]

    def beside(self, view: ChainView, timer: Timer, told: Outlook) -> str:
        """Return what the forecast has of a live timer, if that is more than its outlook says; else empty."""
        if timer.height > view.height + NEAR_BLOCKS:
            return ""
        found = self.ahead(view, NEAR_BLOCKS).forecast.of(timer.timer_id)
        return forecast_beside(view, timer, next(iter(found), None), told)

    def close(self) -> None:
        """Release the engine, once nothing runs any more."""
        with self._turn:
            self._engine.close()
