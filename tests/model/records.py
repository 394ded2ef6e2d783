"""A chain's records in the terms of its slow model, and the comparison of what its mechanism keeps."""

from collections import Counter
from itertools import zip_longest
from typing import Any

import cbor2
from msgspec.structs import asdict

from tests.model.auction import AuctionBlocks
from tests.model.auction_scripts import AuctionTerms
from tests.model.auction_weights import Actor, Sums
from tests.model.blocks import Examined
from tests.model.globalbox import Entry, GlobalboxBlocks
from tests.model.globalbox_scripts import Ended, GlobalboxTerms, QueuedFire
from tests.model.lane import Lane, Model
from tests.model.world import ASK, Event, Receipt, Timer
from trailboss.chain.chain import Chain
from trailboss.model import auction, globalbox, terms
from trailboss.model.blocks import Block, ReceiptRecord
from trailboss.model.configs import (
    BlockFires,
    FairnessTotals,
    JoiningGap,
    LaneState,
    MarketKind,
    amount_of,
    decode_record,
)
from trailboss.model.events import EventRecord
from trailboss.model.timers import ASK_AGENT, NO_FEES
from trailboss.state.keys import config_key, ended_key, fire_key

OWN_EVENTS = ("note", "delivery")
RANKED = ("lane", "auction")
"""Mechanisms whose decisions have ranks that the models know."""
NUMBER_WIDTH = 8
COUNT_WIDTH = 4


def check(what: str, found: Any, expected: Any) -> None:
    """Fail with the first thing in which the chain and the model differ."""
    if found == expected:
        return
    if isinstance(found, dict):
        found, expected = sorted(found.items()), sorted(expected.items())
    if isinstance(found, list):
        pairs = zip_longest(found, expected, fillvalue="nothing")
        found, expected = next(pair for pair in pairs if pair[0] != pair[1])
    raise AssertionError(f"{what} differ:\nchain {found}\nmodel {expected}")


# Records


def receipt_of(receipt: ReceiptRecord) -> Receipt:
    """Return a receipt as the model has it."""
    return Receipt(
        receipt.origin.value,
        bytes(receipt.sender),
        bytes(receipt.payer),
        receipt.status.value,
        None if receipt.error is None else receipt.error.code,
        receipt.cycles_used,
        receipt.cells_used,
        receipt.reserved,
        receipt.fee_burned,
        receipt.tip,
        receipt.refund,
        receipt.return_value,
        tuple(event_of(event) for event in receipt.events),
        bytes(receipt.timer_id),
    )


def event_of(event: EventRecord) -> Event:
    """Return an event as the model has it."""
    fields = event.data if event.name in OWN_EVENTS else cbor2.loads(event.data)
    return Event(event.name, bytes(event.emitter), fields, bytes(event.timer_id))


def timer_of(timer: Any) -> Timer:
    """Return a timer as the model has it."""
    facts = {name: getattr(timer, name) for name in Timer._fields}
    fees, cells = timer.frozen_fees(), timer.cell_fees()
    if fees is not None:
        facts["fees"] = (*fees, *(cells or ()))
    elif timer.fees[len(ASK_AGENT) :]:
        facts["fees"] = timer.fees[len(ASK_AGENT) :]
    else:
        facts["fees"] = {NO_FEES: (), ASK_AGENT: ASK}[timer.fees]
    facts["terms"] = _terms(timer.terms)
    return Timer(**facts)


def _terms(found: Any) -> Any:
    if isinstance(found, terms.AuctionTerms):
        return AuctionTerms(found.agent, found.asked_at, found.is_late)
    if not isinstance(found, terms.GlobalboxTerms):
        return None
    facts = {name: getattr(found, name) for name in GlobalboxTerms._fields}
    facts |= {"kind": found.kind.value, "bid": globalbox.bid_of(found.bid)}
    fire = found.fire
    if fire is not None:
        placed = {name: getattr(fire, name) for name in QueuedFire._fields}
        placed |= {"standing": globalbox.standing_of(fire.standing), "bid": globalbox.bid_of(fire.bid)}
        facts["fire"] = QueuedFire(**placed)
    return GlobalboxTerms(**facts)


def ranked_of(block: Block) -> list[Examined]:
    """Return what the block's record says of the timers that it ranked."""
    record = block.decisions
    if record is None or record.mechanism not in RANKED:
        return []
    examined = record.examined if record.mechanism == "lane" else record.examined[: record.examined_count]
    return [Examined(*(getattr(timer, name) for name in Examined._fields)) for timer in examined if timer.rank]


# The lane


def compare_lane(chain: Chain, model: Model) -> None:
    """Compare what the lane keeps."""
    lane_terms, found = model.next_terms(), chain.rules().market
    if chain.height == model.height:  # A run of idle blocks is built at once, and may end before the activation.
        check("activity of the lane", found.kind is MarketKind.LANE, lane_terms.active)
    if found.kind is MarketKind.LANE and lane_terms.active:
        lane = (found.basefee, found.previous_tip, found.max_cycles_per_fire)
        check("lane", lane, (lane_terms.basefee, lane_terms.previous_tip, lane_terms.cap))
    octets = chain.store.read(config_key(b"system:lane"))
    check("record of the lane", octets is not None, model.lane is not None)
    if octets is not None:
        state = decode_record(octets, LaneState)
        money = (amount_of(state.basefee), amount_of(state.previous_tip), amount_of(state.burned))
        check("record of the lane", Lane(*money), model.lane)
        _compare_joined(chain, model)
        assert model.lane.burned <= model.world.burned
    fires = model.recent_fires()
    accounts = [(bytes(address), account) for address, account in chain.accounts()]
    check("fires", {address: count.recent_fires for address, count in accounts if count.recent_fires}, fires)
    agents = {address: account.agent for address, account in model.world.accounts.items() if account.agent}
    check("agents", {address: account.agent for address, account in accounts if account.agent}, agents)
    octets = chain.store.read(config_key(b"system:lane:fairness"))
    totals = FairnessTotals() if octets is None else decode_record(octets, FairnessTotals)
    check("fires of all", totals.counts, tuple(sorted(Counter(fires.values()).items())))
    check("blocks of the window", totals.next - totals.first, len(model.window))
    for number, height in enumerate(sorted(model.window), start=totals.first):
        octets = chain.store.read(config_key(b"system:lane:fires:" + _number(number)))
        expected = BlockFires(height, tuple(sorted(model.window[height].items())))
        check("fires of a block", decode_record(octets or b"", BlockFires), expected)


def _number(number: int) -> bytes:
    return number.to_bytes(NUMBER_WIDTH, "big")


def _compare_joined(chain: Chain, model: Any) -> None:
    due = [timer for timer in model.world.timers if timer.height <= model.height <= timer.expires_at]
    gaps, barred = chain.rules().gaps or (), chain.rules().barred
    outside = [
        timer
        for timer in due
        if any(_is_within(timer, gap) for gap in gaps)
        or any(each.holds(timer.fee_payer, (timer.height, timer.sequence)) for each in barred)
    ]
    check("not joined", outside, [timer for timer in due if timer.timer_id not in model.joined])


def _compare_parameters(chain: Chain, model: Any) -> None:
    if chain.height == model.height:  # A run of idle blocks is built at once, and may end in another epoch.
        found = asdict(getattr(chain.rules().params, model.mechanism))
        check("parameters", found, model.next_rules()[model.mechanism])


def _is_within(timer: Timer, gap: JoiningGap) -> bool:
    first = (gap.first_height, gap.first_sequence)
    return (timer.height, timer.sequence) >= first and timer.height <= gap.last_height


# The auction


def compare_auction(chain: Chain, model: AuctionBlocks) -> None:
    """Compare weights and statistics; the chain counts what has happened since its records were written only later."""
    _compare_joined(chain, model)
    _compare_parameters(chain, model)
    for address in model.world.accounts:
        octets = chain.store.read(config_key(b"system:auction:actor:" + address))
        found = None if octets is None else decode_record(octets, auction.AuctionActor)
        expected = model.actors.get(address)
        check("actors with a weight", found is not None, expected is not None)
        if found is not None and expected is not None:
            check("waiting timers", found.waiting, model.waiting(address))
            check(f"weight of {address.hex()}", _actor(found, model), expected)
    members = Counter(state.epoch for state in model.actors.values())
    for epoch in range(model.height + 1):
        octets = chain.store.read(config_key(b"system:auction:epoch:" + _number(epoch)))
        check(f"record of epoch {epoch}", octets is not None, members[epoch] > 0)
        if octets is not None:
            record = decode_record(octets, auction.AuctionEpoch)
            check(f"actors of epoch {epoch}", record.actors, members[epoch])
            sums = Sums(amount_of(record.highest_tip), record.cycles_used)
            check(f"sums of epoch {epoch}", sums, model.sums.get(epoch, Sums()))


def _actor(found: auction.AuctionActor, model: AuctionBlocks) -> Actor:
    since = max(0, model.height - found.counted_at)
    waits = model.height - found.quiet_since if found.waiting else 0
    return Actor(
        weight=found.weight,
        rescaled=found.rescaled,
        epoch=found.epoch,
        fires=found.fires,
        deferrals=found.deferrals + found.waiting * since,
        quiet_since=found.quiet_since,
        longest_wait=max(found.longest_wait, waits),
        highest_tip=amount_of(found.highest_tip),
        cycles_used=found.cycles_used,
        takes_part=found.took_part or found.waiting > 0,
    )


# Globalbox


def compare_globalbox(chain: Chain, model: GlobalboxBlocks) -> None:
    """Compare queue, mailbox, ended timers, carried keys and counts."""
    _compare_joined(chain, model)
    _compare_parameters(chain, model)
    read = chain.store.read
    state = decode_record(read(config_key(b"system:globalbox")) or b"", globalbox.GlobalboxState)
    age_weight = int.from_bytes(state.age_weight, "big")
    clock = globalbox.standing_of(state.clock) + age_weight * (model.height - state.clock_height)
    check("age clock", clock, model.clock)
    check("queued fires", state.queued, len(model.queue()))
    entries = model.world.entries
    first = entries[0].deliver_seq if entries else model.next_seq
    check("range of the mailbox", (state.first, state.next), (first, model.next_seq))
    found = [globalbox.decode_entry(read(fire_key(number)) or b"") for number in range(state.first, state.next)]
    check("mailbox", [_entry(entry) for entry in found], [_plain(entry) for entry in entries])
    remembered = (model.first_ended, model.first_ended + len(model.world.ended))
    check("range of the ended", (state.first_ended, state.next_ended), remembered)
    for number, ended in enumerate(model.world.ended, start=state.first_ended):
        record = decode_record(read(ended_key(number)) or b"", globalbox.EndedTimer)
        facts = {name: getattr(record, name) for name in Ended._fields}
        facts |= {"kind": record.kind.value, "status": record.status.value}
        check("ended timer", Ended(**facts), ended)
        pointer = read(config_key(b"globalbox:ended:" + ended.timer_id))
        check("pointer to an ended timer", pointer, _number(number))
    octets = read(config_key(b"system:globalbox:carried_hits"))
    hits = () if octets is None else decode_record(octets, globalbox.CarriedHits).hits
    check("carried hits", [tuple(hit) for hit in hits], [tuple(model.carried[key]) for key in sorted(model.carried)])
    aimed = Counter(timer.terms.target for timer in model.world.timers)
    for address in model.world.accounts:
        octets = read(config_key(b"globalbox:target:" + address))
        expected = aimed[address].to_bytes(COUNT_WIDTH, "big") if aimed[address] else None
        check("timers of a target", octets, expected)


def _entry(entry: globalbox.MailboxEntry) -> tuple[Any, ...]:
    amounts = {name: amount_of(getattr(entry, name)) for name in ("reserved", "cycle_basefee", "cell_basefee")}
    return _plain(entry)._replace(timer=_snapshot(timer_of(entry.timer)), **amounts)


def _plain(entry: Any) -> Entry:
    found = Entry(*(getattr(entry, name) for name in Entry._fields))
    return found if not isinstance(found.timer, Timer) else found._replace(timer=_snapshot(found.timer))


def _snapshot(timer: Timer) -> Timer:
    """Return a timer without what its record counts."""
    return timer._replace(terms=timer.terms._replace(fire_seq=0, last_fire_height=0, in_mailbox=0))
