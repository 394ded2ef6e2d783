"""Rules about a timer's expiry and gas limit, and about who may set one."""

import ast
from collections.abc import Iterator

from trailboss.lint.actor_source import ActorSource, called
from trailboss.lint.catalogue import ENTITLEMENT, GAS_LIMIT, NO_TTL
from trailboss.lint.expressions import constant, leaves
from trailboss.lint.places import finding_at
from trailboss.lint.records import LintFinding, Severity
from trailboss.lint.timer_sites import AGENT, GAS, SDK_PLACES, TARGET, TimerSite
from trailboss.params import ChainParams
from trailboss.vm.rules import SDK


def endless_timers(source: ActorSource, sites: list[TimerSite], params: ChainParams) -> Iterator[LintFinding]:
    """Yield the timers that have no expiry of their own, where the call takes one or another call does."""
    most = params.timers.max_ttl_blocks
    for site in sites:
        given = site.arguments.get(site.form.ttl)
        is_given = given is not None and not (isinstance(given, ast.Constant) and given.value is None)
        if not site.form.ttl or is_given or not site.is_whole:
            continue
        where = " of schedule_timer_ex" if called(source, site.node) == f"{SDK}.schedule_timer" else ""
        what = f"the timer may fire as late as {most:,} blocks from now; if a late fire does harm, say until when "
        what += f"with {site.form.ttl}{where}"
        yield finding_at(NO_TTL, site.node, source.lines, what)


def odd_gas_limits(source: ActorSource, sites: list[TimerSite], params: ChainParams) -> Iterator[LintFinding]:
    """Yield the timers whose gas limit is known and is refused, or too high for the timer lane."""
    most, in_lane, base = params.timers.max_cycles_per_fire, params.lane.max_cycles_per_fire, params.costs.frame_base
    for site in sites:
        given = site.arguments.get(GAS)
        if given is None:
            continue
        for leaf in leaves(source, given, site.routine)[0]:
            cycles = constant(source, leaf)
            if type(cycles) is not int or (cycles == 0 and len(site.node.args) == SDK_PLACES):
                continue  # in the public SDK's form a 0 is the default: D-03
            if cycles > most:
                what = f"gas limit {cycles:,} is refused: a fire uses {most:,} cycles at most. Give less"
                yield finding_at(GAS_LIMIT, given, source.lines, what, Severity.ERROR)
            elif cycles < base:
                what = f"gas limit {cycles:,} is below the {base:,} cycles that every fire costs. Give more"
                yield finding_at(GAS_LIMIT, given, source.lines, what, Severity.ERROR)
            elif cycles > in_lane and not {TARGET, AGENT} & {*site.form.parameters}:
                what = f"gas limit {cycles:,} is above the {in_lane:,} cycles of a fire in the timer lane: a timer "
                what += f"that waits when the lane is activated never fires. Give {in_lane:,} or less"
                yield finding_at(GAS_LIMIT, given, source.lines, what)


def needed_entitlements(source: ActorSource, sites: list[TimerSite], params: ChainParams) -> Iterator[LintFinding]:
    """Yield that the deployment must declare an entitlement, if the preset enforces it and the actor sets timers."""
    if params.timers.schedule_needs_entitlement and sites:
        what = "the preset lets no actor set a timer without the entitlement timer.schedule: deploy with "
        what += "--entitlement timer.schedule"
        yield finding_at(ENTITLEMENT, sites[0].node, source.lines, what)
