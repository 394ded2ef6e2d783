"""Exhaustion of cycles, cells, memory and depth: nothing that guest code does holds it up."""

import gc

import pytest

ATTEMPTS = {
    "bare except": """
def go(p):
    while True:
        try:
            while True:
                pass
        except:
            pvm_host.emit_event("survived", b"")
""",
    "except BaseException": """
def go(p):
    while True:
        try:
            while True:
                pass
        except BaseException as error:
            pvm_host.emit_event("survived", b"")
""",
    "finally": """
def go(p):
    try:
        while True:
            pass
    finally:
        pvm_host.emit_event("survived", b"")
""",
    "finally that raises": """
def inner():
    try:
        while True:
            pass
    finally:
        raise ValueError

def go(p):
    try:
        inner()
    except ValueError:
        pvm_host.emit_event("survived", b"")
        return b"survived"
""",
    "__exit__ that answers True": """
class Swallow:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        pvm_host.emit_event("survived", b"")
        return True

def go(p):
    with Swallow():
        while True:
            pass
    pvm_host.emit_event("survived", b"")
    return b"survived"
""",
    "__exit__ that is no function of the guest's": """
import functools

class Swallow:
    __enter__ = functools.partial(int)
    __exit__ = functools.partial(min, 1, 2)

def go(p):
    with Swallow():
        while True:
            pass
    pvm_host.emit_event("survived", b"")
    return b"survived"
""",
    "generator that is closed": """
def stubborn():
    try:
        yield 1
    finally:
        while True:
            pass

def go(p):
    held = stubborn()
    next(held)
    del held
    pvm_host.emit_event("survived", b"")
    return b"survived"
""",
    "generator that swallows": """
def stubborn():
    while True:
        try:
            yield 1
        except BaseException:
            pass

def go(p):
    held = stubborn()
    for _ in held:
        while True:
            pass
""",
    "nested functions": """
def go(p):
    def outer():
        def inner():
            while True:
                pass
        try:
            inner()
        except BaseException:
            pvm_host.emit_event("survived", b"")
    while True:
        outer()
""",
    "class body": """
def go(p):
    class Body:
        try:
            while True:
                x = 1
        except BaseException:
            pvm_host.emit_event("survived", b"")
""",
    "comprehension": """
import itertools

def go(p):
    return [x for x in itertools.count()]
""",
    "generator expression": """
import itertools

def go(p):
    return sum(x for x in itertools.count())
""",
    "lambda": """
def go(p):
    spin = lambda: spin() if 0 else [1 for _ in iter(int, 1)]
    while True:
        try:
            spin()
        except BaseException:
            pvm_host.emit_event("survived", b"")
""",
    "module level": """
try:
    while True:
        pass
except BaseException:
    pvm_host.emit_event("survived", b"")

def go(p):
    return b""
""",
    "__set_name__": """
class Descriptor:
    def __set_name__(self, owner, name):
        while True:
            pass

def go(p):
    try:
        class Owner:
            field = Descriptor()
    except BaseException:
        pvm_host.emit_event("survived", b"")
    return b"survived"
""",
    "__str__ of the error": """
class Loud(Exception):
    def __str__(self):
        while True:
            pass

def go(p):
    raise Loud
""",
    "match guard": """
def always():
    while True:
        pass

def go(p):
    match p:
        case _ if always():
            return b""
""",
    "sort key": """
def go(p):
    return sorted([1, 2], key=lambda x: [1 for _ in iter(int, 1)])
""",
    "except handler that is a class of the guest's": """
class Everything(type):
    def __instancecheck__(cls, other):
        return True

class Any(BaseException, metaclass=Everything):
    pass

def go(p):
    try:
        while True:
            pass
    except (Any, Exception, BaseException):
        pvm_host.emit_event("survived", b"")
""",
}


@pytest.mark.spec("E-02")
@pytest.mark.parametrize("name", ATTEMPTS)
def test_frame_ends_out_of_cycles_when_guest_code_tries_to_hold_on(world, name):
    """No handler runs on, no ``finally`` emits, and the meter stands just above its limit."""
    outcome, meter = world.call(ATTEMPTS[name], "go", cycles=20_000)

    assert outcome.error.slug == "out_of_cycles"
    assert (outcome.error.context["used"], outcome.error.context["limit"]) == (20_000, 20_000)
    assert outcome.error.what == "needs more than its limit of 20000 cycles, all of which are used"
    assert (meter.charged()[0], meter.cycles_left) == (20_000, 0)
    assert outcome.return_value == b""
    assert world.events == []


@pytest.mark.spec("E-02")
def test_frame_ends_out_of_cells_when_a_write_is_too_large_and_caught(world):
    """Cells are a limit of their own: the frame stops at the host call."""
    source = """
def go(p):
    pvm_host.set_state(b"a", b"1" * 50)
    try:
        pvm_host.set_state(b"b", b"2" * 50)
    except BaseException:
        pass
    finally:
        pvm_host.emit_event("survived", b"")
"""
    outcome, meter = world.call(source, "go", cells=100)

    assert outcome.error.slug == "out_of_cells"
    where = 'line 5, in go: pvm_host.set_state(b"b", b"2" * 50)'
    assert outcome.error.context == {"used": 100, "limit": 100, "traceback": where}
    assert meter.cycles_used < 1_000
    assert world.events == []


def test_charge_gas_exhausts_when_it_asks_for_more_than_is_left(world):
    """The one host call that spends on purpose ends the frame like any block of code."""
    source = """
def go(p):
    try:
        pvm_host.charge_gas(10**9)
    except BaseException:
        return b"survived"
"""
    outcome, _ = world.call(source, "go", cycles=5_000)

    assert outcome.error.slug == "out_of_cycles"


DEEP = {
    "function": "def go(p):\n    return go(p)",
    "caught": """
def dive(n):
    try:
        return dive(n + 1)
    except BaseException:
        return n

def go(p):
    return dive(0)
""",
    "lambda": "dive = lambda n: dive(n + 1)\ndef go(p):\n    return dive(0)",
    "method": """
class A:
    def __getattr__(self, name):
        return getattr(self, name)

def go(p):
    return A().x
""",
    "generator": "def dive():\n    yield from dive()\ndef go(p):\n    return list(dive())",
    "generator by next": "def dive():\n    yield next(dive())\ndef go(p):\n    return list(dive())",
    "property": """
class A:
    __add__ = lambda self, other: self + other

def go(p):
    return A() + 1
""",
    "sort": "def go(p):\n    return sorted([1], key=go)",
    "class body": "def go(p):\n    class A:\n        x = go(p)\n",
}


@pytest.mark.parametrize("name", DEEP)
def test_frame_ends_out_of_memory_when_calls_go_too_deep(world, name):
    """The depth is counted, so it is the same whatever the stack of this process, and it is not catchable."""
    outcome, meter = world.call(DEEP[name], "go")
    again, meter_again = world.call(DEEP[name], "go")

    assert outcome.error.slug == "out_of_memory"
    assert outcome.error.what == "more than 256 calls within one another"
    assert (again, meter_again.cycles_used) == (outcome, meter.cycles_used)


NOT_DEEP = {
    "loop": "def one():\n    return 1\ndef go(p):\n    return sum([one() for _ in range(1000)])",
    "errors": """
fails = lambda: [][0]

def go(p):
    caught = 0
    for _ in range(1000):
        try:
            fails()
        except IndexError:
            caught += 1
    return caught
""",
    "errors that the interpreter swallows": """
class Box:
    value = property(lambda self: self.missing)

def go(p):
    found = [getattr(Box(), "value", 1) for _ in range(500)]
    for _ in range(500):
        found.append(getattr(Box(), "value", 1))
    return sum(found)
""",
    "generators that sleep": """
def numbers():
    yield 1
    yield 2

def go(p):
    held = [numbers() for _ in range(1000)]
    return sum([next(each) for each in held])
""",
    "generators that are thrown into": """
def patient():
    while True:
        try:
            yield 1
        except ValueError:
            pass

def go(p):
    held = patient()
    return sum([next(held)] + [held.throw(ValueError()) for _ in range(999)])
""",
    "delegation": """
def inner():
    yield 1

def outer():
    yield from inner()

def go(p):
    return sum([next(outer()) for _ in range(1000)])
""",
}


@pytest.mark.parametrize("name", NOT_DEEP)
def test_depth_returns_to_where_it_was_when_calls_end_in_any_way(world, name):
    """A thousand calls one after another are not a thousand within one another."""
    outcome, _ = world.call(NOT_DEEP[name], "go")

    assert outcome.error is None
    assert outcome.return_value == b"\x19\x03\xe8"


def test_depth_reaches_its_limit_exactly(world):
    """The handler itself is the first of 256 calls."""
    source = "def dive(n):\n    return n if n == 0 else dive(n - 1)\ndef go(p):\n    return dive(int(p))"

    assert world.call(source, "go", b"254")[0].error is None
    assert world.call(source, "go", b"255")[0].error.slug == "out_of_memory"


def test_frame_ends_out_of_memory_when_an_object_is_too_large_and_caught(world):
    """Python's own MemoryError is as final as the counted depth."""
    source = """
def go(p):
    try:
        return len(b"x" * 2**62)
    except BaseException:
        return b"survived"
"""
    outcome, _ = world.call(source, "go")

    assert outcome.error.slug == "out_of_memory"
    assert outcome.error.what == "the frame's memory is used up"


def test_interrupt_of_the_process_passes_through_when_a_frame_runs(world, monkeypatch):
    """Whoever presses Ctrl-C is not the guest's to handle."""
    source = """
def go(p):
    try:
        pvm_host.get_state(b"a")
    except BaseException:
        return b"survived"
"""
    monkeypatch.setattr("tests.golden.world.WorldHost.read_slot", interrupted)

    with pytest.raises(KeyboardInterrupt):
        world.call(source, "go")
    monkeypatch.undo()

    assert world.call(source, "go")[0].error is None


def interrupted(*_):
    raise KeyboardInterrupt


def test_defect_of_the_chain_passes_through_when_guest_code_catches_everything(world, monkeypatch):
    """A host that fails stops the chain; it does not become a catchable error of the guest's."""
    source = (
        "def go(p):\n    try:\n        pvm_host.get_state(b'a')\n    except BaseException:\n        return b'survived'"
    )
    monkeypatch.setattr("tests.golden.world.WorldHost.read_slot", defective)

    with pytest.raises(TypeError, match="a defect"):
        world.call(source, "go")


def defective(*_):
    raise TypeError("a defect")


def test_nothing_is_reported_as_unraisable_when_generators_outlive_their_frame(world, recwarn):
    """A generator that is cleared away after its frame may not run on, nor charge another frame's meter."""
    source = """
held = []

def stubborn():
    try:
        yield 1
    finally:
        pvm_host.emit_event("late", b"")

def go(p):
    held.append(stubborn())
    held.append(held)
    next(held[0])
    return b""
"""
    _, meter = world.call(source, "go")
    used = meter.cycles_used

    gc.collect()

    assert world.events == []
    assert meter.cycles_used == used
    assert list(recwarn) == []
