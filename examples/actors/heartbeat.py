"""Heartbeat: the smallest loop that keeps itself alive, paid from the actor's own purse.

A timer fires once. What recurs schedules itself again in every fire, so each beat is a purchase of its own. While the
actor holds the most that the next beat could cost, there is a next beat; when it does not, the chain removes the timer,
says so in an event, and the loop is over. Nobody has to stop it.
"""

import pvm_host


class HeartbeatActor:
    INTERVAL = 10  # blocks
    # What a fire reserves is this many cycles plus the flat cells of a fire. A beat uses about a fifth of them.
    GAS_LIMIT = 50_000

    def deploy(self):
        # The creation call. It can be called again, by anybody, and must not start a second loop then.
        pvm_host.set_state(b"beats", b"0")
        self._schedule_next()

    def handle_timer(self, payload):
        # Anybody can call a handler by name. Only in a fire of this actor's own timer is the sender the actor itself.
        if pvm_host.context()["sender"] != self.address:
            raise ValueError("only the actor's own timer may beat")
        beats = int(pvm_host.get_state(b"beats"))
        pvm_host.set_state(b"beats", b"%d" % (beats + 1))
        # Scheduled last, but it is a part of the fire: if the fire reverts, there is no next beat either.
        self._schedule_next()

    def _schedule_next(self):
        pvm_host.schedule_timer_ex(pvm_host.block_height() + self.INTERVAL, b"", gas_limit=self.GAS_LIMIT)
