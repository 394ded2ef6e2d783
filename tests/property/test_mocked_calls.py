"""Random mocks and calls against a list of rules: each call gets the answer of the first rule that is left."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from trailboss.chain.replay import verify_chain
from trailboss.testing import ANY, LocalChain

SHARE = settings.default.max_examples * 2 // 10
"""Every example builds its chain twice."""
NOBODY = bytes(19) + b"\x77"
ASKER = """
def ask(payload):
    return pvm_host.call_actor(payload[:20], "price", payload[20:], 60_000) or b"real"

def ask_and_fail(payload):
    ask(payload)
    raise ValueError
"""
REAL = "def price(payload):\n    return None\n"


@dataclass
class Rule:
    """What one mock is."""

    payload: bytes | None
    answer: bytes
    fails: bool
    left: int | None


payloads = st.sampled_from([b"", b"x"])
rules = st.builds(
    Rule, st.none() | payloads, st.sampled_from([b"1", b"2"]), st.booleans(), st.none() | st.integers(1, 3)
)
steps = st.lists(st.one_of(rules, st.tuples(payloads, st.booleans()), st.just("clear"), st.just("reorg")), max_size=25)


def answer_of(standing: list[Rule], payload: bytes) -> Rule | None:
    """Return the rule that answers a call, and count it."""
    for wanted in (payload, None):
        for rule in standing:
            if rule.payload == wanted and rule.left != 0:
                rule.left = None if rule.left is None else rule.left - 1
                return rule
    return None


@given(steps)
@settings(max_examples=SHARE)
def test_calls_are_answered_by_the_first_mock_that_is_left_and_the_chain_replays(script: list[object]) -> None:
    """Whether the caller's transaction reverts or not, and across blocks that are dropped and built again."""
    chain = LocalChain()
    chain.set_code(NOBODY, REAL)
    asker = chain.deploy(ASKER, sender=chain.accounts[0])
    standing: list[Rule] = []
    for step in script:
        if isinstance(step, Rule):
            reverts = step.answer.decode() if step.fails else None
            returns = None if step.fails else step.answer
            wanted = ANY if step.payload is None else step.payload
            chain.mock_call(NOBODY, "price", wanted, returns=returns, reverts=reverts, times=step.left)
            standing = [rule for rule in standing if rule.left is not None or rule.payload != step.payload]
            standing.append(Rule(step.payload, step.answer, step.fails, step.left))
        elif isinstance(step, tuple):
            payload, fails = step
            rule = answer_of(standing, payload)
            handler = "ask_and_fail" if fails else "ask"
            receipt = asker.call(handler, NOBODY + payload, sender=chain.accounts[0])
            assert receipt.ok == (not fails and (rule is None or not rule.fails))
            if receipt.ok:
                assert receipt.return_value == (b"real" if rule is None else rule.answer)
            elif rule is not None and rule.fails:
                assert f"{rule.answer.decode()} (mocked)" in str(receipt.error)
        elif step == "clear":
            chain.clear_mocks()
            standing = []
        else:
            last = chain.block()
            chain.reorg(1)
            chain.chain.build(last.transactions)
            assert chain.block().hash == last.hash
    assert [mock.times for mock in chain.mocks() if mock.payload is None] == [
        rule.left for rule in standing if rule.payload is None and rule.left != 0
    ]
    assert verify_chain(chain.chain).ok
