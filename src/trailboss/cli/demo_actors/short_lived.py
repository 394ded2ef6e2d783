"""Schedules reminders whose time to live ends before their height, and cancels one of three in time."""


def init(payload):
    remind()


def remind():
    now = pvm_host.block_height()
    pvm_host.schedule_timer_ex(now + 20, b"again", gas_limit=100_000)
    pvm_host.schedule_timer_ex(now + 21, b"too late", gas_limit=100_000, expires_at=now + 15)
    doomed = pvm_host.schedule_timer_ex(now + 22, b"never mind", gas_limit=100_000)
    pvm_host.cancel_timer(doomed)


def handle_timer(payload):
    remind()
