"""Signatures of long replays, checked by other processes: they change the time that it takes, and nothing else."""

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.chain.test_signature_checks import SIGNED, SPOILS, one_by_one, signed
from trailboss.chain import Chain, signature_workers
from trailboss.chain.development import development_genesis
from trailboss.chain.export import export_chain, import_chain
from trailboss.chain.replay import replay_to, verify_chain
from trailboss.chain.signature_workers import ITEMS_AHEAD, SIGNED_AHEAD, checked_ahead
from trailboss.model.blocks import Block
from trailboss.model.transactions import UNSIGNED, Transaction
from trailboss.primitives.errors import InvariantError, StorageError

Batch = Sequence[Transaction]
Processes = list["subprocess.Popen[bytes]"]
GOOD = SIGNED[:4]
EACH = 4
BLOCKS = 6
KEEPS_ITS_PLACE = ["changed", "unsigned", "no v", "high s", "another signer", "a false signer"]
"""Spoils of a transaction that still comes into a block of which no signature is checked."""


class PromptWorker(signature_workers._Worker):  # what is tested is what it does once it is there
    """A worker that is there as soon as it has been started."""

    def __init__(self) -> None:
        super().__init__()
        self.wait()


def start_early(patch: pytest.MonkeyPatch, processors: int = 2, *, unanswered: int = 1_024) -> Processes:
    """Let workers start after one signed transaction; return the list of their processes."""
    started: Processes = []
    popen = subprocess.Popen

    def record(*arguments: Any, **options: Any) -> Any:
        started.append(popen(*arguments, **options))
        return started[-1]

    patch.setattr(subprocess, "Popen", record)
    patch.setattr(signature_workers, "SIGNED_MIN", 1)
    patch.setattr(signature_workers, "UNANSWERED_MAX", unanswered)
    patch.setattr(signature_workers, "usable_processors", lambda: processors)
    patch.setattr(signature_workers, "_Worker", PromptWorker)
    return started


def have_ended(started: Processes) -> bool:
    return all(process.returncode is not None for process in started)


def of_itself(batch: Batch) -> Batch:
    return batch


batches = st.lists(
    st.lists(st.sampled_from([*GOOD, *(spoil(GOOD[0]) for spoil in SPOILS.values())]), max_size=5), max_size=12
)


@pytest.mark.slow
@pytest.mark.parametrize("unanswered", [1_024, 1])
@settings(max_examples=15)
@given(some=batches)
def test_all_signatures_of_a_batch_are_right_where_it_says_so(unanswered: int, some: list[Batch]) -> None:
    """Where they are, and there are any, it says so; batches keep their order, whichever process looks at them."""
    items: list[Batch] = [GOOD, GOOD, *some]
    with pytest.MonkeyPatch.context() as patch:
        started = start_early(patch, unanswered=unanswered)
        found = list(checked_ahead(items, of_itself))
    assert [batch for batch, _ in found] == items
    right = []
    for batch in some:
        plain = [each for each in batch if each.signature != UNSIGNED]
        right.append(bool(plain) and not any(one_by_one(plain)))
    assert [vouched for _, vouched in found] == [False, False, *right]
    assert len(started) == 1
    assert have_ended(started)


def chain_with(spoils: dict[int, str]) -> Chain:
    """Return a chain of transfers of which some are spoiled, without any check."""
    chain = Chain(development_genesis())
    transactions = [signed(nonce) for nonce in range(BLOCKS * EACH)]
    for place, spoil in spoils.items():
        transactions[place] = SPOILS[spoil](transactions[place])
    for first in range(0, len(transactions), EACH):
        assert not chain.build(transactions[first : first + EACH], signatures_checked=True).refused
        list(chain.advance_to(chain.height + 2))
    return chain


def verdicts_on(chain: Chain, export: Path) -> list[object]:
    """Return what verifying, replaying and importing a chain come to."""
    seen: list[Block] = []
    found: list[object] = [verify_chain(chain, seen.append), seen]
    for build in (lambda: replay_to(chain, chain.height), lambda: import_chain(export)):
        try:
            with closing(build()) as built:
                found.append((built.head, built.state_root))
        except (InvariantError, StorageError) as error:
            found.append(str(error))
    return found


@pytest.mark.slow
@settings(max_examples=10)
@given(spoils=st.dictionaries(st.integers(0, BLOCKS * EACH - 1), st.sampled_from(KEEPS_ITS_PLACE), max_size=3))
def test_replays_come_to_the_same_with_workers_and_without(
    tmp_path_factory: pytest.TempPathFactory, spoils: dict[int, str]
) -> None:
    """Reports, heads and refusals, with their words and their place, on chains with bad signatures too."""
    chain = chain_with(spoils)
    export = tmp_path_factory.mktemp("exports") / "chain"
    export_chain(chain, export)
    plain = verdicts_on(chain, export)
    with pytest.MonkeyPatch.context() as patch:
        started = start_early(patch)
        assert verdicts_on(chain, export) == plain
    assert len(started) <= 3
    assert have_ended(started)


def test_worker_that_is_killed_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the next block on, it has not vouched for anything."""
    started = start_early(monkeypatch)
    source = itertools.repeat(GOOD, 600)
    found = []
    for batch, vouched in checked_ahead(source, of_itself):
        found.append(vouched)
        assert batch is GOOD
        if len(found) == 300:
            started[0].kill()
            started[0].wait()
    assert len(found) == 600
    assert all(found[2:300])
    assert not found[-1]


def test_bad_signature_is_found_though_the_worker_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the block and with the words of a replay without workers."""
    chain = chain_with({BLOCKS * EACH - 1: "changed"})
    plain = verify_chain(chain)
    started = start_early(monkeypatch)
    assert verify_chain(chain, lambda block: block.height == 5 and started[0].kill()) == plain
    assert not plain.ok
    assert have_ended(started)


def raising(error: BaseException) -> Callable[[Block], None]:
    def on_block(block: Block) -> None:
        if block.height > 5:
            raise error

    return on_block


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError()], ids=["interrupt", "error"])
def test_no_process_is_left_after_an_error(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even while its traceback is kept."""
    chain = chain_with({})
    started = start_early(monkeypatch)
    for replay in (verify_chain, lambda chain, on_block: replay_to(chain, chain.height, on_block)):
        with pytest.raises(type(error)) as raised:
            replay(chain, raising(error))
        assert raised.value is error
        assert have_ended(started)
    assert len(started) == 2


def test_no_process_is_left_after_an_early_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not want the rest closes it."""
    started = start_early(monkeypatch)
    with closing(checked_ahead(itertools.repeat(GOOD), of_itself)) as checked:
        assert [vouched for _, vouched in itertools.islice(checked, 4)] == [False, False, True, True]
        assert not have_ended(started)
    assert have_ended(started)


def test_worker_ends_with_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """So it ends with a process that could not end it."""
    started = start_early(monkeypatch)
    with PromptWorker() as worker:
        assert worker.has_answered(1)
        worker._channel.close()
        assert started[0].wait(60) == 0


def test_few_transactions_and_one_processor_start_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process costs more than it gains there."""
    least = signature_workers.SIGNED_MIN
    started = start_early(monkeypatch, processors=1)
    assert len(list(checked_ahead([GOOD] * 4, of_itself))) == 4
    monkeypatch.setattr(signature_workers, "usable_processors", lambda: 2)
    monkeypatch.setattr(signature_workers, "SIGNED_MIN", least)
    list(checked_ahead([GOOD] * ((least - 1) // EACH), of_itself))
    list(checked_ahead([[SPOILS["unsigned"](GOOD[0])] * EACH] * least, of_itself))
    assert started == []


def test_replay_goes_on_where_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """As before there were any."""
    start_early(monkeypatch)

    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert verify_chain(chain_with({})).ok


def test_error_among_the_items_comes_after_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it is met while they wait."""
    start_early(monkeypatch)

    def items() -> Iterator[Batch]:
        yield from [GOOD] * 20
        raise ZeroDivisionError

    found = []
    with pytest.raises(ZeroDivisionError):
        found.extend(vouched for _, vouched in checked_ahead(items(), of_itself))
    with closing(checked_ahead(items(), of_itself)) as checked:
        assert [next(checked)[1] for _ in range(20)] == [False, False] + [True] * 18


@pytest.mark.parametrize(("size", "most"), [(0, ITEMS_AHEAD), (EACH, ITEMS_AHEAD), (SIGNED_AHEAD, 2), (100, 21)])
def test_what_is_read_ahead_is_bounded(size: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By blocks, and by their signed transactions."""
    start_early(monkeypatch)
    read = itertools.count()
    batch = (GOOD * (size // EACH + 1))[:size]
    items = (GOOD if next(read) < 2 else batch for _ in itertools.count())
    with closing(checked_ahead(items, of_itself)) as checked:
        taken = len(list(itertools.islice(checked, 10)))
    assert taken + 1 <= next(read) <= taken + most


def test_script_that_replays_is_not_run_again(tmp_path: Path) -> None:
    """Nor do its folder's modules stand in for those that a worker imports."""
    script = tmp_path / "replaying.py"
    (tmp_path / "coincurve").mkdir()
    script.write_text(
        "import sys\n"
        "print('once', flush=True)\n"
        "from tests.unit.chain.test_signature_workers import GOOD, of_itself, start_early\n"
        "import pytest\n"
        "from trailboss.chain.signature_workers import checked_ahead\n"
        "start_early(pytest.MonkeyPatch())\n"
        "print([vouched for _, vouched in checked_ahead([GOOD] * 4, of_itself)])\n"
    )
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    finished = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert finished.stdout == "once\n[False, False, True, True]\n", finished.stderr
