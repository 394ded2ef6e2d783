"""Simulations on a local chain: what a transaction or a fire would do, and what the queue has ahead."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

from trailboss.chain.drafts import Terms
from trailboss.chain.reader import ChainReader
from trailboss.model.transactions import Instruction
from trailboss.primitives.octets import Address
from trailboss.rehearsal.forecast import FORECAST_BLOCKS, QueueForecast, forecast_queue
from trailboss.rehearsal.overrides import Overrides
from trailboss.rehearsal.simulate import simulate, simulate_fire, state_after
from trailboss.testing.base_chain import BaseChain
from trailboss.testing.parties import Party, address_of_party, show_printed
from trailboss.views import Receipt


class Otherwise(TypedDict, total=False):
    """What a simulation takes to be otherwise; see `Overrides`."""

    balances: Mapping[Party, int]
    slots: Mapping[Party, Mapping[bytes, bytes | None]]
    code: Mapping[Party, str | Path]
    cycle_basefee: int
    cell_basefee: int
    lane_basefee: int


class Simulation(BaseChain):
    """Calls that run something and change nothing: no block, no nonce, no write is left of it.

    Each can take the state to be otherwise: ``balances`` by party, base units; ``slots`` by actor and name, None for no
    such slot; ``code`` by actor, a path ending in ``.py`` or source text; ``cycle_basefee``, ``cell_basefee`` and
    ``lane_basefee``, base units a unit. Each can run as after an earlier block, ``height``. It raises `Rejection` for
    what cannot be, and `TrailbossError` if a block is open.
    """

    def simulate(
        self, instruction: Instruction, *, sender: Party, height: int | None = None, **options: Any
    ) -> Receipt:
        """Return the receipt that an instruction would have in the next block, alone; anyone can be its sender.

        The options are those of `send` and those of this class. A refusal is a receipt with the status ``refused``.
        """
        terms = Terms(**{name: options.pop(name) for name in Terms.__struct_fields__ if name in options})
        overrides = self._overrides(**options)
        receipt = self._run(instruction, address_of_party(sender), terms, height, overrides)
        show_printed(receipt.printed)
        return receipt

    def simulate_fire(self, timer_id: bytes, *, height: int | None = None, **overrides: Unpack[Otherwise]) -> Receipt:
        """Return the receipt of a live timer's next fire, as it comes if nothing is sent until then.

        Blocks are built on a fork until it fires. If it ends without a fire, the status is ``refused``.
        """
        receipt = self._run_fire(timer_id, height, self._overrides(**overrides))
        show_printed(receipt.printed)
        return receipt

    def forecast(self, blocks: int = FORECAST_BLOCKS) -> QueueForecast:
        """Return what becomes of the live timers in the next blocks, if nothing is sent; see `forecast_queue`."""
        return forecast_queue(self.chain, blocks, engine=self.chain.engine)

    def _run(
        self, instruction: Instruction, sender: Address, terms: Terms, height: int | None, overrides: Overrides
    ) -> Receipt:
        past = self._past(height)
        return simulate(past, self.chain.engine, instruction, sender, terms=terms, overrides=overrides)

    def _run_fire(self, timer_id: bytes, height: int | None, overrides: Overrides) -> Receipt:
        return simulate_fire(self._past(height), self.chain.engine, timer_id, overrides=overrides)

    def _past(self, height: int | None) -> ChainReader:
        self._outbox.check_closed("simulate")
        return self.chain if height is None else state_after(self.chain, height)

    def _overrides(self, **given: Unpack[Otherwise]) -> Overrides:
        unknown = sorted(given.keys() - Otherwise.__annotations__.keys())
        if unknown:
            known = ", ".join(Otherwise.__annotations__)
            raise TypeError(f"a simulation takes no {unknown[0]}; what can be otherwise is {known}")
        return Overrides(
            balances={address_of_party(party): balance for party, balance in given.get("balances", {}).items()},
            slots={address_of_party(party): slots for party, slots in given.get("slots", {}).items()},
            code={address_of_party(party): self._read(source) for party, source in given.get("code", {}).items()},
            cycle_basefee=given.get("cycle_basefee"),
            cell_basefee=given.get("cell_basefee"),
            lane_basefee=given.get("lane_basefee"),
        )
