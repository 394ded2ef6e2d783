"""The rooms of the mechanisms: every mechanism has one, and its cells fill its columns."""

import pytest

from trailboss.mechanisms.registry import MECHANISMS
from trailboss.primitives.octets import Address, Hash32
from trailboss.testing import LocalChain
from trailboss.views.mechanism.base import MechanismViews
from trailboss.views.mechanism.registry import MECHANISM_VIEWS, views_for
from trailboss.views.records import DecisionRow, TimerEntry
from trailboss.views.status import mechanism_view, status_facts, status_of

ROW = DecisionRow(
    rank=1,
    timer_id=Hash32(bytes(32)),
    actor=Address(bytes(20)),
    tip=3,
    weight="1.0",
    effective_priority="3",
    max_fee=9,
    fees="frozen",
    gas_limit=50_000,
    cycles_used=None,
    outcome="waits",
    reason="outranked",
    target=Address(bytes(20)),
    standing=None,
    fire_seq=None,
    deliver_seq=None,
)
ENTRY = TimerEntry(
    timer_id=Hash32(bytes(32)),
    height=9,
    state="live",
    actor=Address(bytes(20)),
    target=Address(bytes(20)),
    handler="tick",
    fee_payer=Address(bytes(20)),
    gas_limit=50_000,
    expires_at=99,
)


def test_every_mechanism_has_a_room() -> None:
    assert MECHANISM_VIEWS.keys() == MECHANISMS.keys()


@pytest.mark.parametrize("views", MECHANISM_VIEWS.values(), ids=MECHANISM_VIEWS)
def test_cells_fill_the_columns(views: MechanismViews) -> None:
    assert len(views.decision_cells(ROW)) == len(views.decision_columns)
    assert len(views.timer_cells(ENTRY)) == len(views.timer_columns)
    assert not any(state.holds(ENTRY) for state in views.timer_states.values())


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_status_and_the_page_of_a_fresh_chain(name: str) -> None:
    with LocalChain(mechanism=name, preset="minimal") as chain:
        chain.mine(2)
        views = views_for(chain.chain)
        assert views.name == chain.chain.mechanism.name
        assert status_facts(status_of(chain.chain)) == status_facts(mechanism_view(chain.chain))
        for table in views.tables(chain.chain):
            assert not table.rows
            assert table.empty
