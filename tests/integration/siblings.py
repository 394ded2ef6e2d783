"""An actor with several timers due at once, which do to one another what they have been told."""

from tests.integration.helpers import CBY
from trailboss.testing import ActorHandle, LocalChain, TestAccount

GAS_LIMIT = 150_000

SIBLINGS = """
def arm(payload):
    for label in payload.split():
        height = pvm_host.block_height() + 3
        sender = pvm_host.context()["sender"]
        timer_id = pvm_host.schedule_timer_ex(height, label, fee_payer=sender, gas_limit=150_000)
        pvm_host.set_state(label, timer_id)


def plan(payload):
    label, _, deeds = payload.partition(b"=")
    pvm_host.set_state(b"plan:" + label, deeds)


def handle_timer(label):
    pvm_host.set_state(b"ran:" + label, b"")
    for deed in (pvm_host.get_state(b"plan:" + label) or b"").split():
        carry_out(deed)


def carry_out(deed):
    verb, _, name = deed.partition(b":")
    if verb == b"cancel":
        pvm_host.cancel_timer(pvm_host.get_state(name))
    elif verb == b"extend":
        pvm_host.extend_timer(pvm_host.get_state(name), pvm_host.block_height() + 100)
    elif verb == b"cancel-foreign":
        try:
            pvm_host.cancel_timer(bytes.fromhex(name.decode()))
        except pvm_host.HostError as error:
            pvm_host.set_state(b"caught", error.name.encode())
    elif verb == b"try":
        try:
            pvm_host.call_actor(pvm_host.self_address(), "fail_after", name.replace(b"/", b":"), 60_000, 0)
        except pvm_host.HostError as error:
            pvm_host.set_state(b"caught", error.name.encode())
    elif verb == b"spin":
        while True:
            pass
    elif verb == b"raise":
        raise ValueError("as planned")


def fail_after(deed):
    carry_out(deed)
    raise ValueError("after " + deed.decode())
"""


def deploy_siblings(
    chain: LocalChain, plans: tuple[bytes, ...], labels: bytes = b"first second third", payer: TestAccount | None = None
) -> tuple[ActorHandle, dict[bytes, bytes]]:
    """Return the actor, its timers due together and paid for by ``payer``, and the timers' ids by label."""
    actor = chain.deploy(SIBLINGS, sender=chain.accounts[0], value=100 * CBY)
    for plan in plans:
        actor.call("plan", plan, sender=chain.accounts[0], check=True)
    actor.call("arm", labels, sender=payer or chain.accounts[4], check=True)
    return actor, {label: actor.storage[label] for label in labels.split()}


def ran(actor: ActorHandle) -> list[bytes]:
    """Return the labels of the timers whose fires have kept their writes, sorted."""
    return sorted(slot.removeprefix(b"ran:") for slot in actor.storage if slot.startswith(b"ran:"))
