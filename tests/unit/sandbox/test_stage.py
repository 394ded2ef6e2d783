"""Stages: which thread an action runs on, and what reaches its caller."""

import signal
import threading
from functools import partial
from threading import get_ident

import pytest

from trailboss.sandbox.stage import near_stage, on_stage


def test_frames_of_one_action_share_its_thread():
    threads = near_stage(lambda: [get_ident(), on_stage(get_ident), on_stage(get_ident), near_stage(get_ident)])

    assert len(set(threads)) == 1
    assert threads[0] != get_ident()


def test_nested_frame_has_a_thread_of_its_own():
    """A frame can use all of a stack up."""
    frame = partial(on_stage, lambda: (get_ident(), on_stage(lambda: (get_ident(), on_stage(get_ident)))))
    outer, (middle, inner) = near_stage(frame)

    assert len({outer, middle, inner}) == len((outer, middle, inner))


def test_action_within_a_frame_leaves_the_frames_thread():
    frame, action = on_stage(lambda: (get_ident(), near_stage(lambda: on_stage(get_ident))))

    assert frame != action


def test_exception_passes_and_frees_the_stage():
    def fail() -> None:
        raise KeyError("no")

    def action() -> bool:
        with pytest.raises(KeyError, match="no"):
            on_stage(fail)
        return on_stage(get_ident) == get_ident()

    assert near_stage(action)
    with pytest.raises(KeyError, match="no"):
        near_stage(fail)


def test_interrupted_caller_waits_for_the_end():
    """What an interrupted block has begun is taken back, which must not happen while it still goes on."""
    main, ended = threading.main_thread().ident, threading.Event()
    # A shell starts what runs in its background with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def action() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        ended.wait(0.2)
        ended.set()

    try:
        with pytest.raises(KeyboardInterrupt):
            near_stage(action)
    finally:
        signal.signal(signal.SIGINT, before)

    assert ended.is_set()
