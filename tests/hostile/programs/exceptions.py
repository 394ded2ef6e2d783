"""Exceptions: catching what ends a frame, and errors that attack whoever shows them."""

from tests.hostile.program import body, module

SURVIVED = 'pvm_host.emit_event("survived", b"")'

PROGRAMS = (
    body(
        "bare-except",
        "a bare except around an endless loop, in an endless loop",
        f"""
        while True:
            try:
                while True:
                    pass
            except:
                {SURVIVED}
    """,
    ),
    body(
        "base-exception",
        "except BaseException around exhaustion",
        f"""
        while True:
            try:
                while True:
                    pass
            except BaseException as error:
                {SURVIVED}
    """,
    ),
    body(
        "base-exception-group",
        "an exception group built around what was caught",
        f"""
        try:
            while True:
                pass
        except BaseException as error:
            {SURVIVED}
            raise BaseExceptionGroup("mine", [error])
    """,
    ),
    body(
        "catch-memory-error",
        "memory is asked for again and again, its refusal caught",
        f"""
        while True:
            try:
                [0] * 2**40
            except MemoryError:
                {SURVIVED}
    """,
    ),
    body(
        "catch-recursion",
        "the depth is used up, and its refusal caught, at each depth",
        f"""
        def deep(n):
            try:
                return deep(n + 1)
            except RecursionError:
                {SURVIVED}
                return deep(n)
        return deep(0)
    """,
    ),
    body(
        "custom-base",
        "an exception class below BaseException, raised and caught a million times",
        """
        class Mine(BaseException):
            pass
        while True:
            try:
                raise Mine
            except Mine:
                pass
    """,
    ),
    body(
        "except-chain",
        "a chain of a hundred thousand contexts",
        """
        error = None
        for n in range(100_000):
            try:
                try:
                    raise ValueError(n) from error
                except ValueError as again:
                    error = again
            except ValueError:
                pass
        raise error
    """,
    ),
    body(
        "except-class-lies",
        "the class of a handler claims everything",
        f"""
        class Every(type):
            def __instancecheck__(cls, other):
                return True
            def __subclasscheck__(cls, other):
                return True
        class Net(BaseException, metaclass=Every):
            pass
        try:
            while True:
                pass
        except Net:
            {SURVIVED}
    """,
    ),
    body(
        "except-expression-spins",
        "the expression of a handler is a loop without end",
        """
        def kinds():
            while True:
                pass
        try:
            raise ValueError
        except kinds():
            return 1
    """,
    ),
    body(
        "except-star",
        "except* splits groups",
        """
        try:
            raise ExceptionGroup("g", [ValueError(1)])
        except* ValueError:
            return 1
    """,
    ),
    body(
        "except-tuple-nested",
        "a handler with a tuple nested ten thousand deep",
        """
        kinds = (KeyError,)
        for _ in range(10_000):
            kinds = (kinds,)
        try:
            raise ValueError
        except kinds:
            return 1
    """,
    ),
    body(
        "group-deep",
        "exception groups nested ten thousand deep",
        """
        error = ValueError(1)
        for _ in range(10_000):
            error = ExceptionGroup("g", [error])
        raise error
    """,
    ),
    body(
        "group-split",
        "splitting a deep group with a function",
        """
        error = ValueError(1)
        for _ in range(5_000):
            error = ExceptionGroup("g", [error])
        return bool(error.split(lambda each: True)[0])
    """,
    ),
    body(
        "group-wide",
        "a group of a hundred thousand exceptions",
        """
        raise ExceptionGroup("g", [ValueError(n) for n in range(10_000)])
    """,
    ),
    body(
        "init-raises",
        "__init__ of an exception raises another one",
        """
        class Bad(Exception):
            def __init__(self):
                raise Bad
        raise Bad
    """,
    ),
    body(
        "keyboard-interrupt",
        "the program raises what the node's own stop raises",
        """
        raise KeyboardInterrupt
    """,
    ),
    body(
        "message-long",
        "an exception with a message of a hundred megabytes",
        """
        raise ValueError("x" * 10**8)
    """,
    ),
    body(
        "message-name-long",
        "an exception class with a name of a megabyte",
        """
        raise type("X" * 10**6, (Exception,), {})("y")
    """,
    ),
    module(
        "module-level-except",
        "the module catches its own exhaustion",
        f"""
        while True:
            try:
                while True:
                    pass
            except BaseException:
                {SURVIVED}


        def go(payload):
            return 1
    """,
    ),
    body(
        "new-returns-other",
        "__new__ of an exception returns no exception",
        """
        class Odd(Exception):
            def __new__(cls):
                return 5
        raise Odd
    """,
    ),
    body(
        "out-of-gas-by-context",
        "what ends a frame is looked for in the context of an exception",
        """
        found = []
        def look(error):
            while error is not None:
                found.append(type(error).__name__)
                error = error.__context__
        try:
            try:
                while True:
                    pass
            finally:
                raise ValueError
        except ValueError as error:
            look(error)
        return found
    """,
    ),
    body(
        "raise-in-eq",
        "comparison raises from within C's sort",
        """
        class Bad:
            def __lt__(self, other):
                raise ValueError
        return sorted([Bad() for _ in range(100)])
    """,
    ),
    body(
        "raise-in-hash",
        "__hash__ raises from within a dict",
        """
        class Bad:
            def __hash__(self):
                raise ValueError
        return {Bad(): 1}
    """,
    ),
    body(
        "raise-non-exception",
        "something that is no exception is raised",
        """
        raise 5
    """,
    ),
    body(
        "stop-iteration-leak",
        "StopIteration leaves a generator, a map and a handler",
        """
        return list(map(lambda x: next(iter(())), [1, 2]))
    """,
    ),
    body(
        "system-exit",
        "the program asks the process to end",
        """
        raise SystemExit(1)
    """,
    ),
    body(
        "system-exit-by-hierarchy",
        "the same, found among the classes of exceptions",
        """
        return [kind.__name__ for kind in BaseException.__subclasses__()]
    """,
    ),
    body(
        "traceback-kept",
        "exceptions keep their tracebacks, which keep frames",
        """
        kept = []
        while True:
            try:
                raise ValueError(bytes(1_000))
            except ValueError as error:
                kept.append(error)
    """,
    ),
)
