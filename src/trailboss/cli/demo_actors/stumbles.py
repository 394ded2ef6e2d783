"""Its handler reverts in every third fire: nothing of that fire remains, and it is charged all the same."""


def init(payload):
    height = pvm_host.block_height()
    for turn in range(1, 41):
        pvm_host.schedule_timer_ex(height + 7 * turn, str(turn).encode(), gas_limit=100_000)


def handle_timer(payload):
    turn = int(payload)
    pvm_host.set_state(b"last", payload)
    if turn % 3 == 0:
        raise ValueError("every third turn stumbles, this is turn %d" % turn)
