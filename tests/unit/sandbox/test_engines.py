"""Engines of chains: native ones take turns."""

from threading import Event, Thread

from trailboss.params import load_params
from trailboss.sandbox.engines import new_engine


def test_native_engines_of_one_process_take_turns() -> None:
    """What one does on a thread waits for the end of what another does on its own."""
    first, second = (new_engine(load_params("mainnet"), b"") for _ in range(2))
    begun, goes_on, ended = Event(), Event(), Event()

    def hold() -> None:
        begun.set()
        goes_on.wait(10)

    threads = [Thread(target=first.perform, args=(hold,)), Thread(target=second.perform, args=(ended.set,))]
    threads[0].start()
    begun.wait(10)
    threads[1].start()
    assert not ended.wait(0.05)
    goes_on.set()
    for thread in threads:
        thread.join()
    assert ended.is_set()
