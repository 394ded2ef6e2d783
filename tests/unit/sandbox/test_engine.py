"""Frames in the sandbox: what they cost, how they end, and that nothing of one remains for the next."""

import os
from threading import Thread

import pytest

from tests.golden.world import ACTOR, World, WorldHost
from trailboss.codec.canonical import encode_canonical
from trailboss.metering.meter import Meter
from trailboss.params import load_params
from trailboss.primitives.errors import ConfigurationError, InvariantError, Rejection
from trailboss.primitives.keccak import keccak256
from trailboss.sandbox import engine as engines
from trailboss.sandbox import pages
from trailboss.sandbox.engine import FUEL_PER_CYCLE, FrameRun
from trailboss.sandbox.engines import check_engine, new_engine
from trailboss.sandbox.guest_layout import RUN, pack
from trailboss.sandbox.runtime import CALLS, PRINT_TEXT
from trailboss.sandbox.stage import on_stage
from trailboss.sandbox.values import Forgery
from trailboss.vm.engine import CallSite, Frame
from trailboss.vm.guest_api import HOST_CALLS

COUNTER = """
def go(p):
    count = int.from_bytes(pvm_host.get_state(b"count") or b"", "big") + 1
    pvm_host.set_state(b"count", count.to_bytes(8, "big"))
    return count

def fill(p):
    global held
    held = [bytes(4_000) for _ in range(500)]
    return len(held)

def find(p):
    return "held" in globals_of() and 1 or 0

def globals_of():
    try:
        held
    except NameError:
        return ()
    return ("held",)

def loop(p):
    turns = 0
    while True:
        turns += 1

def search(p):
    return "x" in range(10**12)

def grow(p):
    kept = []
    while True:
        kept.append(bytes(60_000))
"""


def actor_of(runtime, source=COUNTER):
    params = load_params("mainnet")
    return on_stage(lambda: runtime.actor(source, keccak256(source.encode()), params))


def test_frame_costs_what_it_costs_natively(world):
    native = World()
    for handler in ("go", "go", "fill", "find", "loop"):
        outcomes = [each.call(COUNTER, handler, cycles=200_000) for each in (native, world)]
        (first, first_meter), (second, second_meter) = outcomes
        assert (first, first_meter.charged()[0]) == (second, second_meter.charged()[0])
    assert native.slots == world.slots


def test_frame_begins_with_the_first_state_when_others_ran_before(runtime, world):
    """All memory, byte for byte: what 2 MB of objects, an exhausted loop and an exception left is gone."""
    actor = actor_of(runtime)
    for handler in ("go", "fill", "find", "nothing", "go"):
        world.call(COUNTER, handler)
        restorer = runtime.take_machine(actor)
        memory = restorer.machine.read(0, restorer.machine.size)
        assert memory == actor.first.content(0, restorer.machine.size), handler
        runtime.keep_machine(actor, restorer)


def test_frame_costs_the_same_fuel_each_time(runtime):
    actor = actor_of(runtime)

    def fuel_of_a_frame():
        restorer = runtime.take_machine(actor)
        restorer.mark()
        frame = Frame(COUNTER, b"", ACTOR, ACTOR, "find", b"")
        meter = Meter(10**6, 10**6)
        site = CallSite(WorldHost(World(), frame, meter, ACTOR), meter, load_params("mainnet"), frame)
        run = FrameRun(restorer.machine, site, actor, RUN)
        run.outcome()
        used = run.allowed_fuel - restorer.machine.fuel()
        restorer.restore()
        runtime.keep_machine(actor, restorer)
        return used

    assert len({on_stage(fuel_of_a_frame) for _ in range(5)}) == 1


def test_no_file_remains_of_an_actor_that_is_no_longer_kept(runtime, world, monkeypatch):
    """Each actor and each machine has a file; what is dropped closes its own."""
    monkeypatch.setattr("trailboss.sandbox.runtime.ACTORS_KEPT", 2)
    monkeypatch.setattr("trailboss.sandbox.runtime.MACHINES_KEPT", 1)

    def files_after(number):
        for place in range(number):
            outcome, _ = world.call(f"{COUNTER}# {number} {place}\n", "go")
            assert outcome.error is None
        return len(os.listdir("/proc/self/fd"))

    few = files_after(3)
    assert files_after(9) <= few


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_frame_begins_with_the_first_state_in_a_process_that_was_forked(runtime, world):
    """The page map that a process opens is its own; its child must not read it for its own."""
    actor = actor_of(runtime)
    world.call(COUNTER, "go")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            world.call(COUNTER, "fill")
            machine = runtime.take_machine(actor).machine
            status = 0 if machine.read(0, machine.size) == actor.first.content(0, machine.size) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_memory_is_mapped_again_when_the_kernel_lists_no_pages(runtime, world, monkeypatch):
    monkeypatch.setattr(pages, "page_map", lambda: None)
    source = COUNTER + "# another actor\n"
    actor = actor_of(runtime, source)
    for handler in ("fill", "find", "go"):
        outcome, _ = world.call(source, handler)
        restorer = runtime.take_machine(actor)
        assert outcome.error is None
        assert restorer.machine.read(0, restorer.machine.size) == actor.first.content(0, restorer.machine.size)
        runtime.keep_machine(actor, restorer)


@pytest.mark.spec("E-01")
def test_frame_is_out_of_cycles_when_its_fuel_is_used_up(world):
    """C code that no meter interrupts ends all the same, pays its limit, and the receipt names its line."""
    outcome, meter = world.call(COUNTER, "search", cycles=100_000)

    assert outcome.error.slug == "out_of_cycles"
    assert meter.charged()[0] == 100_000
    assert outcome.error.context["traceback"].endswith('in search: return "x" in range(10**12)')


def test_frame_pays_when_its_memory_is_used_up(world):
    outcome, meter = world.call(COUNTER, "grow", cycles=10**7)

    assert outcome.error.slug == "out_of_memory"
    assert meter.cycles_used > 1_000
    assert world.call(COUNTER, "go")[0].error is None


def test_compilation_ends_when_the_source_is_a_bomb(engine):
    source = "def go(p):\n    return " + "(" * 90 + "1" + ")" * 90 + "\n" + "x = 1\n" * 5_000
    engine.check_source(source, bytes(32))
    with pytest.raises(Rejection):
        engine.check_source("def go(p):\n    return 1 <<< 2\n", bytes(32))


def test_engine_is_refused_when_the_prices_are_not_the_images(runtime):
    with pytest.raises(ConfigurationError, match=r"overrides source\.\*"):
        new_engine(load_params("mainnet", {"source.call": 11}), runtime.digest)


def test_chain_is_refused_when_its_image_is_not_here():
    with pytest.raises(ConfigurationError, match="use the version that the chain started with"):
        check_engine(bytes(32))


class Forger:
    """A frame whose guest has broken every rule of Python."""

    def __init__(self, runtime):
        self.world = World()
        self.meter = Meter(50_000, 50_000)
        self.meter.cycles_used = 100
        frame = Frame(COUNTER, b"", ACTOR, ACTOR, "go", b"")
        host = WorldHost(self.world, frame, self.meter, ACTOR)
        actor = actor_of(runtime)
        self.machine = runtime.take_machine(actor).machine
        self.run = FrameRun(self.machine, CallSite(host, self.meter, load_params("mainnet"), frame), actor, RUN)
        self.machine.set_fuel(10**9)


@pytest.fixture
def forger(runtime):
    return Forger(runtime)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"\x00" * 1_000,
        pack(1),
        pack((0, (), {}, 99)),
        pack((0, (), {}, -1)),
        pack((0, (), {}, True)),
        pack((-1, (), {}, 100)),
        pack((len(CALLS), (), {}, 100)),
        pack((0, [], {}, 100)),
        pack((0, (), [], 100)),
        pack((0, ({},), {}, 100)),
        pack((PRINT_TEXT, (b"octets",), {}, 100)),
        pack((PRINT_TEXT, (), {}, 100)),
        pack((True, (), {}, 100)),
    ],
    ids=lambda octets: octets[:12].hex(),
)
def test_host_call_is_refused_when_it_is_forged(forger, request_bytes):
    """Nothing reaches the chain, and the meter does not run back."""
    with pytest.raises(Forgery):
        forger.run.serve(request_bytes)
    assert forger.meter.cycles_used >= 100
    assert forger.world.slots == {}
    assert forger.world.printed == []


def test_forged_argument_ends_the_frame_and_not_the_block(world, monkeypatch):
    def refuse(value):
        raise Forgery(f"an argument {value!r}")

    monkeypatch.setattr(engines, "argument", refuse)
    outcome, _ = world.call("def go(p):\n    pvm_host.get_state(go)\n", "go")

    assert outcome.error.slug == "pvm_error"
    assert "the sandbox ended the frame" in outcome.error.what


def test_charge_above_64_bits_ends_the_frame(world):
    """The guest's meter has 64 bits; a price that has more is not lost, nor is a sum that has."""
    source = "def go(p):\n    return 'x' in range(10**12) or 'x' in range(10**12)\n"
    outcome, meter = world.call(source, "go")

    assert outcome.error.slug == "out_of_cycles"
    assert meter.cycles_used > meter.cycles_limit


def test_large_request_pays_for_its_reading(forger):
    before = forger.machine.fuel()
    forger.run.serve(pack((PRINT_TEXT, ("x" * 100_000,), {}, 100)))
    assert before - forger.machine.fuel() > 100_000


def test_fuel_is_no_more_than_the_cycles_that_are_left_buy(forger):
    """A host call that uses most of the cycles leaves the guest the fuel of the rest."""
    forger.meter.cycles_used = 49_000
    forger.machine.set_fuel(10**12)
    forger.run.serve(pack((list(HOST_CALLS).index("get_state"), (b"count",), {}, 49_000)))
    base = load_params("mainnet").costs.frame_base
    assert forger.machine.fuel() <= (1_000 + base) * FUEL_PER_CYCLE


def test_defect_of_the_chain_passes_through_the_guest(world, monkeypatch):
    def fail(*_):
        raise InvariantError("the chain's own defect")

    monkeypatch.setattr("tests.golden.world.WorldHost.read_slot", fail)
    with pytest.raises(InvariantError, match="own defect"):
        world.call(COUNTER, "go")


def test_frames_run_on_several_threads_at_once(engine):
    results = []

    def work():
        world = World(engine=engine)
        results.append([world.call(COUNTER, "go")[0].return_value for _ in range(20)])

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [results[0]] * 4


def test_deployment_ends_as_out_of_cycles_when_its_source_takes_more_fuel_than_its_length_buys(engine):
    """Constants of one hash: a compiler compares each with all, which no length shows."""
    source = f"X = [{','.join(str((2**31 - 1) * n) for n in range(1, 8_400))}]\n"
    with pytest.raises(Rejection) as caught:
        engine.check_source(source, bytes(32))
    assert caught.value.reason.slug == "out_of_cycles"


@pytest.mark.parametrize("line", ["x+x\n", "x[:]\n", "x[x]+=x\n", "while x:x\n", "f'{x}'\n", "if x:x\n"])
def test_dense_source_is_compiled_within_its_price(engine, line):
    """The shapes that take most fuel and memory, as long as they may be."""
    tokens = {"x+x\n": 4, "x[:]\n": 5, "x[x]+=x\n": 7, "while x:x\n": 5, "f'{x}'\n": 23, "if x:x\n": 5}[line]
    engine.check_source(line * (49_900 // tokens), bytes(32))


def test_compiled_form_is_kept_when_the_first_state_is_not(runtime, world, monkeypatch):
    """An actor that comes back is not compiled again, and costs the same."""
    monkeypatch.setattr("trailboss.sandbox.runtime.ACTORS_KEPT", 1)
    before = world.call(COUNTER, "fill")[1].charged()
    world.call(COUNTER + "# another\n", "fill")
    monkeypatch.setattr(runtime, "_compile", None)
    assert world.call(COUNTER, "fill")[1].charged() == before


def test_module_runs_in_each_frame_when_its_state_is_too_large_to_keep(runtime, world, monkeypatch):
    """What the module makes is then paid for and made again, with equal cycles."""
    source = "DATA = [bytes(4_000) for _ in range(20)]\ndef go(p):\n    return len(DATA)\n"
    outcome, meter = world.call(source, "go")
    assert actor_of(runtime, source).cycles is not None
    monkeypatch.setattr("trailboss.sandbox.runtime.FIRST_STATE_BYTES_MAX", 50_000)
    other = source + "# another\n"
    again, second = world.call(other, "go")
    assert actor_of(runtime, other).cycles is None
    assert (again.return_value, second.charged()) == (outcome.return_value, meter.charged())


def test_module_that_reads_the_chain_runs_in_each_frame(world):
    source = "NOW = pvm_host.block_height()\nHERE = pvm_host.self_address()\ndef go(p):\n    return [NOW, HERE]\n"
    answers = []
    for world.height in (100, 101):
        outcome, _ = world.call(source, "go")
        answers.append(outcome.return_value)
    assert answers == [encode_canonical([height, ACTOR]) for height in (100, 101)]


def test_actor_is_made_once_when_two_threads_want_it(runtime, monkeypatch):
    made = []
    prepared = runtime._prepared

    def counted(*arguments):
        made.append(1)
        return prepared(*arguments)

    monkeypatch.setattr(runtime, "_prepared", counted)
    source = COUNTER + "# for two threads\n"
    threads = [Thread(target=on_stage, args=(lambda: actor_of(runtime, source),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
