"""Deploying actors: the creation call, what source may say, and what a handler may return."""

import pytest

from tests.integration.helpers import BASEFEE, answers, assert_refused_call, deploy_puppet, perform, step
from trailboss.crypto.digest import keccak256
from trailboss.model.transactions import DeployActor, UpgradeActor, derive_actor_address
from trailboss.testing import LocalChain
from trailboss.views.records import Receipt

DEPLOY_CYCLES = 105_000  # of a source without a byte
BYTE_CYCLES = 80


def deploy(chain: LocalChain, source: bytes | str, cycles_limit: int = 12_000_000, **fields: object) -> Receipt:
    """Send a deployment and return its receipt, whatever came of it."""
    code = source.encode() if isinstance(source, str) else source
    instruction = DeployActor(**{"code": code, "salt": b"salt", **fields})
    return chain.send(instruction, sender=chain.accounts[0], cycles_limit=cycles_limit)


BOTH = """
def init(payload):
    pvm_host.set_state(b"ran", b"init:" + payload)


def deploy(payload=b""):
    pvm_host.set_state(b"ran", b"deploy")


def other(payload):
    pvm_host.set_state(b"ran", b"other:" + payload)
"""


@pytest.mark.parametrize(
    ("source", "fields", "ran"),
    [
        (BOTH, {"init_payload": b"hi"}, b"init:hi"),
        (BOTH, {}, b"init:"),
        (BOTH, {"init_handler": "other", "init_payload": b"yo"}, b"other:yo"),
        (BOTH.replace("def init", "def later"), {}, b"deploy"),
        ("class A:\n    def deploy(self):\n        pvm_host.set_state(b'ran', self.deployer)\n", {}, None),
        ("x = 1\n", {}, b""),
    ],
)
def test_creation_call_runs_what_the_source_has(
    chain: LocalChain, source: str, fields: dict[str, object], ran: bytes | None
) -> None:
    """``init``, else ``deploy``, else nothing; or what the transaction names."""
    receipt = deploy(chain, source, **fields)
    assert receipt.ok, receipt.error
    assert receipt.actor is not None
    expected = bytes(chain.accounts[0].address) if ran is None else ran
    assert chain.chain.storage(receipt.actor).get(b"ran", b"") == expected
    event = receipt.events[-1]
    assert (event.name, event.emitter) == ("actor.deployed", receipt.actor)
    assert event.data == {
        "actor": bytes(receipt.actor),
        "owner": bytes(chain.accounts[0].address),
        "code_hash": keccak256(source.encode()),
    }
    assert receipt.actor == derive_actor_address(chain.accounts[0].address, b"salt", keccak256(source.encode()))


@pytest.mark.spec("F-33")
def test_actor_is_not_there_when_its_creation_call_reverts(chain: LocalChain) -> None:
    """Neither code nor timers nor slots remain, and the same deployment can be sent again."""
    source = "def init(payload):\n    pvm_host.schedule_timer(100, b'')\n    raise ValueError('no')\n"
    for _ in range(2):
        receipt = deploy(chain, source)
        assert_refused_call(receipt, 1210, "pvm_error")
        address = derive_actor_address(chain.accounts[0].address, b"salt", keccak256(source.encode()))
        assert chain.chain.account(address) is None
        assert chain.timers() == []


def test_deployment_reverts_when_it_names_a_handler_that_is_not_there(chain: LocalChain) -> None:
    """A named init handler is not optional."""
    assert_refused_call(deploy(chain, "x = 1\n", init_handler="start"), 1223, "handler_not_found", "start")


def test_deployment_reverts_when_the_address_is_taken(chain: LocalChain) -> None:
    """The same code with the same salt by the same deployer; another salt is another actor."""
    assert deploy(chain, "x = 1\n").ok
    assert_refused_call(deploy(chain, "x = 1\n"), 1221, "actor_exists")
    assert deploy(chain, "x = 1\n", salt=b"other").ok


@pytest.mark.spec("E-01")
def test_code_is_charged_as_cells_when_deployed(chain: LocalChain) -> None:
    """A cell a byte of code and of the creation call's payload, and the price of a deployment in cycles. D-101."""
    source = "x = 1\n" + "#" * 994
    receipt = deploy(chain, source, init_payload=b"12345")
    cycles = DEPLOY_CYCLES + BYTE_CYCLES * 1_000
    assert (receipt.cycles_used, receipt.cells_used) == (cycles, 1_005)
    assert receipt.fee_paid == (cycles + 1_005) * BASEFEE


def test_source_is_not_read_when_the_limit_does_not_cover_its_length(chain: LocalChain) -> None:
    """The price of a thousand bytes comes before their syntax error."""
    receipt = deploy(chain, "(" * 1_000, cycles_limit=DEPLOY_CYCLES + BYTE_CYCLES * 999)
    assert (receipt.status, receipt.error and receipt.error.slug) == ("refused", "out_of_cycles")


def test_source_is_refused_when_only_its_instrumented_form_has_too_many_blocks(chain: LocalChain) -> None:
    """The meter adds blocks; a source that CPython alone accepts must not stop the chain."""
    managers = "".join(f"{' ' * level}with x:\n" for level in range(1, 12))
    receipt = deploy(chain, f"def f(x):\n{managers}{' ' * 12}pass\n")
    assert_refused_call(receipt, 1213, "invalid_data", "too many statically nested blocks")


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ("import os\n", 1, 1),
        ("x = 1\n\n\nclass A:\n    def b(self):\n        return open('x')\n", 6, 16),
    ],
)
def test_deployment_is_refused_with_line_and_column_when_the_source_breaks_a_rule(
    chain: LocalChain, source: str, line: int, column: int
) -> None:
    """E1101 points at the construct; the deployment is charged and leaves no actor."""
    receipt = deploy(chain, source)
    assert_refused_call(receipt, 1101, "non_deterministic_code", f"line {line}, column {column}")
    assert receipt.error is not None
    assert (receipt.error.context["line"], receipt.error.context["column"]) == (line, column)
    assert receipt.fee_paid == (DEPLOY_CYCLES + (BYTE_CYCLES + 1) * len(source)) * BASEFEE
    address = derive_actor_address(chain.accounts[0].address, b"salt", keccak256(source.encode()))
    assert chain.chain.account(address) is None


def test_upgrade_is_refused_when_the_source_breaks_a_rule(chain: LocalChain) -> None:
    """The old code stays."""
    actor = deploy_puppet(chain)
    receipt = chain.system(UpgradeActor(actor.address, b"import os\n"))
    assert_refused_call(receipt, 1101, "non_deterministic_code", "line 1, column 1")
    answers(perform(actor, step("set_state", b"k", b"v")))


@pytest.mark.parametrize(
    ("code", "words"),
    [(b"", "source has 0 bytes, outside 1..=131072"), (b"x = 1  # \xff\n", "source is not UTF-8 at byte 9")],
)
def test_deployment_is_refused_when_the_code_is_no_text(chain: LocalChain, code: bytes, words: str) -> None:
    """Empty code and broken UTF-8."""
    assert_refused_call(deploy(chain, code), 1213, "invalid_data", words)


@pytest.mark.parametrize(("size", "status"), [(131_072, "ok"), (131_073, "reverted")])
def test_source_may_have_128_kib_and_not_a_byte_more(chain: LocalChain, size: int, status: str) -> None:
    """The limit of a source, exactly."""
    receipt = deploy(chain, b"x = 1\n" + b"#" * (size - 6))
    assert receipt.status == status
    if status == "reverted":
        assert_refused_call(receipt, 1213, "invalid_data", "source has 131073 bytes, outside 1..=131072")
