"""Exceptions and finalizers: catching what ends a frame, or running after its end."""

from tests.hostile.program import body, module

SURVIVED = 'pvm_host.emit_event("survived", b"")'

PROGRAMS = (
    body("bare-except", "a bare except around an endless loop, in an endless loop", f"""
        while True:
            try:
                while True:
                    pass
            except:
                {SURVIVED}
    """),
    body("base-exception", "except BaseException around exhaustion", f"""
        while True:
            try:
                while True:
                    pass
            except BaseException as error:
                {SURVIVED}
    """),
    body("base-exception-group", "an exception group built around what was caught", f"""
        try:
            while True:
                pass
        except BaseException as error:
            {SURVIVED}
            raise BaseExceptionGroup("mine", [error])
    """),
    body("break-in-finally", "break in finally swallows what is raised", """
        while True:
            try:
                while True:
                    pass
            finally:
                break
        return 1
    """),
    body("catch-memory-error", "memory is asked for again and again, its refusal caught", f"""
        while True:
            try:
                [0] * 2**40
            except MemoryError:
                {SURVIVED}
    """),
    body("catch-recursion", "the depth is used up, and its refusal caught, at each depth", f"""
        def deep(n):
            try:
                return deep(n + 1)
            except RecursionError:
                {SURVIVED}
                return deep(n)
        return deep(0)
    """),
    body("close-refuses", "a generator yields again when it is closed", """
        def stubborn():
            while True:
                try:
                    yield 1
                except GeneratorExit:
                    yield 2
        for _ in range(1_000):
            held = stubborn()
            next(held)
            del held
        return 1
    """),
    body("close-spins", "a generator spins when it is closed", f"""
        def stubborn():
            try:
                yield 1
            finally:
                while True:
                    pass
        held = stubborn()
        next(held)
        held.close()
        {SURVIVED}
    """),
    body("continue-in-finally", "continue in finally swallows what is raised", """
        for _ in iter(int, 1):
            try:
                while True:
                    pass
            finally:
                continue
    """),
    body("custom-base", "an exception class below BaseException, raised and caught a million times", """
        class Mine(BaseException):
            pass
        while True:
            try:
                raise Mine
            except Mine:
                pass
    """),
    body("del-method", "a finalizer runs after the frame", """
        class Late:
            def __del__(self):
                while True:
                    pass
        Late()
        return 1
    """),
    body("del-by-name", "a finalizer given to type() as text", """
        Late = type("Late", (), {"__de" + "l__": lambda self: pvm_host.emit_event("late", b"")})
        Late()
        return 1
    """),
    body("del-by-setattr", "a finalizer set by setattr", """
        class Late:
            pass
        setattr(Late, "__de" + "l__", lambda self: [1 for _ in iter(int, 1)])
        Late()
        return 1
    """),
    body("except-chain", "a chain of a hundred thousand contexts", """
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
    """),
    body("except-class-lies", "the class of a handler claims everything", f"""
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
    """),
    body("except-expression-spins", "the expression of a handler is a loop without end", """
        def kinds():
            while True:
                pass
        try:
            raise ValueError
        except kinds():
            return 1
    """),
    body("except-star", "except* splits groups", """
        try:
            raise ExceptionGroup("g", [ValueError(1)])
        except* ValueError:
            return 1
    """),
    body("except-tuple-nested", "a handler with a tuple nested ten thousand deep", """
        kinds = (KeyError,)
        for _ in range(10_000):
            kinds = (kinds,)
        try:
            raise ValueError
        except kinds:
            return 1
    """),
    body("exit-answers-true", "__exit__ answers True to exhaustion", f"""
        class Swallow:
            def __enter__(self):
                return self
            def __exit__(self, *error):
                return True
        while True:
            with Swallow():
                while True:
                    pass
            {SURVIVED}
    """),
    body("exit-by-partial", "__exit__ is a function of C that answers True", f"""
        class Swallow:
            __enter__ = functools.partial(int)
            __exit__ = functools.partial(max, 1, 2)
        with Swallow():
            while True:
                pass
        {SURVIVED}
    """, "functools"),
    body("exit-raises", "__exit__ replaces exhaustion by its own exception", f"""
        class Replace:
            def __enter__(self):
                return self
            def __exit__(self, *error):
                raise ValueError("mine")
        try:
            with Replace():
                while True:
                    pass
        except ValueError:
            {SURVIVED}
            return 1
    """),
    body("finally-raises", "finally replaces exhaustion by an ordinary exception", f"""
        def inner():
            try:
                while True:
                    pass
            finally:
                raise ValueError
        try:
            inner()
        except ValueError:
            {SURVIVED}
    """),
    body("finally-spins", "a loop in finally, in a function that ends", """
        def inner():
            try:
                return 1
            finally:
                while True:
                    pass
        return inner()
    """),
    body("finally-yields", "finally of a generator yields while exhaustion passes", f"""
        def held():
            try:
                while True:
                    pass
            finally:
                yield 1
        for _ in held():
            {SURVIVED}
        return 1
    """),
    body("generator-exit-raised", "the program raises GeneratorExit itself, which charges let pass", f"""
        while True:
            try:
                raise GeneratorExit
            except GeneratorExit:
                while True:
                    pass
            finally:
                {SURVIVED}
    """),
    body("generator-throw-spin", "exceptions thrown into a generator that catches all of them", """
        def held():
            while True:
                try:
                    yield 1
                except BaseException:
                    pass
        it = held()
        next(it)
        while True:
            it.throw(ValueError)
    """),
    body("group-deep", "exception groups nested ten thousand deep", """
        error = ValueError(1)
        for _ in range(10_000):
            error = ExceptionGroup("g", [error])
        raise error
    """),
    body("group-split", "splitting a deep group with a function", """
        error = ValueError(1)
        for _ in range(5_000):
            error = ExceptionGroup("g", [error])
        return bool(error.split(lambda each: True)[0])
    """),
    body("group-wide", "a group of a hundred thousand exceptions", """
        raise ExceptionGroup("g", [ValueError(n) for n in range(10_000)])
    """),
    body("init-raises", "__init__ of an exception raises another one", """
        class Bad(Exception):
            def __init__(self):
                raise Bad
        raise Bad
    """),
    body("keyboard-interrupt", "the program raises what the node's own stop raises", """
        raise KeyboardInterrupt
    """),
    body("message-long", "an exception with a message of a hundred megabytes", """
        raise ValueError("x" * 10**8)
    """),
    body("message-name-long", "an exception class with a name of a megabyte", """
        raise type("X" * 10**6, (Exception,), {})("y")
    """),
    body("new-returns-other", "__new__ of an exception returns no exception", """
        class Odd(Exception):
            def __new__(cls):
                return 5
        raise Odd
    """),
    body("out-of-gas-by-context", "what ends a frame is looked for in the context of an exception", """
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
    """),
    body("raise-in-eq", "comparison raises from within C's sort", """
        class Bad:
            def __lt__(self, other):
                raise ValueError
        return sorted([Bad() for _ in range(100)])
    """),
    body("raise-in-hash", "__hash__ raises from within a dict", """
        class Bad:
            def __hash__(self):
                raise ValueError
        return {Bad(): 1}
    """),
    body("raise-non-exception", "something that is no exception is raised", """
        raise 5
    """),
    body("return-in-finally", "return in finally swallows exhaustion", """
        def inner():
            try:
                while True:
                    pass
            finally:
                return 1
        return inner()
    """),
    body("stop-iteration-leak", "StopIteration leaves a generator, a map and a handler", """
        return list(map(lambda x: next(iter(())), [1, 2]))
    """),
    body("str-of-error-answers-number", "__str__ of an exception answers with no text", """
        class Odd(Exception):
            def __str__(self):
                return 5
        raise Odd
    """),
    body("str-of-error-long", "__str__ of an exception answers with a hundred megabytes", """
        class Long(Exception):
            def __str__(self):
                return "x" * 10**8
        raise Long
    """),
    body("str-of-error-raises", "__str__ of an exception raises", """
        class Bad(Exception):
            def __str__(self):
                raise Bad
        raise Bad
    """),
    body("str-of-error-recurses", "__str__ of an exception calls itself", """
        class Deep(Exception):
            def __str__(self):
                return str(self)
        raise Deep
    """),
    body("str-of-error-spins", "__str__ of an exception never answers, after the frame has ended", """
        class Loud(Exception):
            def __str__(self):
                while True:
                    pass
        raise Loud
    """),
    body("str-of-error-writes", "__str__ of an exception makes host calls when the frame has failed", """
        class Late(Exception):
            def __str__(self):
                pvm_host.set_state(b"late", b"1")
                return "late"
        raise Late
    """),
    body("suppress-by-mapping", "a handler looked up by a class that lies about its name", """
        class OutOfGas(BaseException):
            pass
        try:
            while True:
                pass
        except OutOfGas:
            return 1
    """),
    body("system-exit", "the program asks the process to end", """
        raise SystemExit(1)
    """),
    body("system-exit-by-hierarchy", "the same, found among the classes of exceptions", """
        return [kind.__name__ for kind in BaseException.__subclasses__()]
    """),
    body("traceback-kept", "exceptions keep their tracebacks, which keep frames", """
        kept = []
        while True:
            try:
                raise ValueError(bytes(1_000))
            except ValueError as error:
                kept.append(error)
    """),
    body("with-many", "two hundred managers that all answer True", """
        class Swallow:
            def __enter__(self):
                return self
            def __exit__(self, *error):
                return True
        def deep(n):
            with Swallow():
                if n:
                    return deep(n - 1)
                while True:
                    pass
        while True:
            deep(100)
    """),
    module("module-level-except", "the module catches its own exhaustion", f"""
        while True:
            try:
                while True:
                    pass
            except BaseException:
                {SURVIVED}


        def go(payload):
            return 1
    """),
)
