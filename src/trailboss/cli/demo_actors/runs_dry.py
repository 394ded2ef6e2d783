"""Pays for itself until it cannot: its last timer is removed without running."""


def init(payload):
    pvm_host.schedule_timer(pvm_host.block_height() + 8, b"tick")


def handle_timer(payload):
    # Storing a kilobyte a fire is what empties the purse.
    pvm_host.set_state(b"log", bytes(1024))
    pvm_host.schedule_timer(pvm_host.block_height() + 8, b"tick")
