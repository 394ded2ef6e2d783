"""Runner jobs under random histories: counted right, answered once, and replayed to the same roots."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.test_runner import RAW, raw_job
from trailboss.chain.jobs import runner_of
from trailboss.chain.replay import verify_chain
from trailboss.primitives.errors import Rejection
from trailboss.testing import LocalChain

STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["ask", "ask_and_fail", "stop", "start", "mine", "snapshot", "revert"])),
        st.tuples(st.sampled_from(["reply", "refuse", "give_up"]), st.integers(0, 6)),
        st.tuples(st.just("reorg"), st.integers(1, 3)),
    ),
    max_size=25,
)
SOURCE = RAW + "\n\ndef fail(payload):\n    go(payload)\n    raise ValueError\n"


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_jobs_are_counted_and_answered_once(steps: list[tuple[object, ...]]) -> None:
    """What the runner counts is what waits, whatever fails, goes back or is refused; and every root comes again."""
    with LocalChain() as chain:
        chain.start_runner(jobs_max=3)
        actor = chain.deploy(SOURCE, sender=chain.accounts[0], value=10**14)
        floor, marks = chain.height, []
        for name, *rest in steps:
            number = rest[0] if rest else 0
            assert isinstance(number, int)
            match name:
                case "ask":
                    handler = "refuse" if chain.height % 2 else "take"
                    full = len(chain.jobs(state="open")) >= runner_of(chain.chain).jobs_max
                    assert actor.call("go", raw_job(handler), sender=chain.accounts[0]).ok is not full
                case "ask_and_fail":
                    actor.call("fail", raw_job(), sender=chain.accounts[0])
                case "stop":
                    chain.stop_runner()
                case "start":
                    chain.start_runner(jobs_max=3)
                case "mine":
                    chain.mine()
                case "snapshot":
                    marks.append(chain.snapshot())
                case "revert" if marks:
                    chain.revert(marks[-1])
                case "reorg":
                    depth = min(number, chain.height - max([floor, *(mark.height for mark in marks)]))
                    if depth:
                        chain.reorg(depth)
                case "reply" | "refuse" | "give_up":
                    is_open = number in [job.job for job in chain.jobs(state="open")]
                    try:
                        error = "retries_exhausted" if name == "give_up" else None
                        receipt = chain.reply(number, None if error else "x", error=error)
                        assert is_open
                        assert receipt.status in ("ok", "reverted")
                    except Rejection:
                        assert not is_open
            runner, jobs = runner_of(chain.chain), chain.jobs()
            assert runner.waiting == len([job for job in jobs if job.state == "open"])
            assert [job.job for job in jobs] == list(range(1, runner.next))
            assert all(job.block <= (job.replied_at or chain.height) <= chain.height for job in jobs)
        chain.check_invariants()
        assert verify_chain(chain.chain).ok
