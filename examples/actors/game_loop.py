"""Game loop: a tug of war whose world moves in ticks, and sleeps when nobody plays.

Players pull in transactions; a pull only adds to a sum. A timer every ``TICK`` blocks moves the rope by what was pulled
since the last one. Timers run after the transactions of their block, so every pull of a block counts in that block's
tick, whatever its place in the block. A tick that finds no pull does not schedule another: the loop sleeps, costs
nothing, and the next pull wakes it.
"""

import json

import pvm_host

TICK = 2  # blocks
WIN_AT = 10
GAS_LIMIT = 40_000  # tight on purpose: it is what a fire reserves


class TugOfWar:
    def pull(self, payload):
        """Pull ``left`` or ``right``."""
        world = _load()
        if world["winner"]:
            raise ValueError("the game is over: %s has won" % world["winner"])
        if payload not in (b"left", b"right"):
            raise ValueError("pull left or right")
        world["pull"] += 1 if payload == b"right" else -1
        now = pvm_host.block_height()
        # The tick that was to come never ran if its height has passed: the actor had no money for it, or it reverted.
        if world["next_tick"] < now:
            _schedule_tick(world, now)
        _save(world)

    def handle_timer(self, payload):
        if pvm_host.context()["sender"] != self.address:
            raise ValueError("only the actor's own timer may tick")
        world = _load()
        pulled, world["pull"] = world["pull"], 0
        world["rope"] += pulled
        world["ticks"] += 1
        if abs(world["rope"]) >= WIN_AT:
            world["winner"] = "right" if world["rope"] > 0 else "left"
            pvm_host.emit_event("game.won", json.dumps({"by": world["winner"], "ticks": world["ticks"]}).encode())
        elif pulled:
            _schedule_tick(world, pvm_host.block_height())
        _save(world)


def _schedule_tick(world, now):
    world["next_tick"] = now + TICK
    pvm_host.schedule_timer_ex(world["next_tick"], b"", gas_limit=GAS_LIMIT)


# The whole world is one slot: one read and one write a tick, whatever the number of players.
def _load():
    return json.loads(pvm_host.get_state(b"world") or b'{"rope":0,"pull":0,"ticks":0,"next_tick":-1,"winner":""}')


def _save(world):
    pvm_host.set_state(b"world", json.dumps(world).encode())
