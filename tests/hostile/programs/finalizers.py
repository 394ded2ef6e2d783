"""Finalizers, managers and messages: code that runs at the end of a frame, or after it."""

from tests.hostile.program import body

SURVIVED = 'pvm_host.emit_event("survived", b"")'

PROGRAMS = (
    body(
        "break-in-finally",
        "break in finally swallows what is raised",
        """
        while True:
            try:
                while True:
                    pass
            finally:
                break
        return 1
    """,
    ),
    body(
        "close-refuses",
        "a generator yields again when it is closed",
        """
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
    """,
    ),
    body(
        "close-spins",
        "a generator spins when it is closed",
        f"""
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
    """,
    ),
    body(
        "continue-in-finally",
        "continue in finally swallows what is raised",
        """
        for _ in iter(int, 1):
            try:
                while True:
                    pass
            finally:
                continue
    """,
    ),
    body(
        "del-by-name",
        "a finalizer given to type() as text",
        """
        Late = type("Late", (), {"__de" + "l__": lambda self: pvm_host.emit_event("late", b"")})
        Late()
        return 1
    """,
    ),
    body(
        "del-by-setattr",
        "a finalizer set by setattr",
        """
        class Late:
            pass
        setattr(Late, "__de" + "l__", lambda self: [1 for _ in iter(int, 1)])
        Late()
        return 1
    """,
    ),
    body(
        "del-method",
        "a finalizer runs after the frame",
        """
        class Late:
            def __del__(self):
                while True:
                    pass
        Late()
        return 1
    """,
    ),
    body(
        "exit-answers-true",
        "__exit__ answers True to exhaustion",
        f"""
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
    """,
    ),
    body(
        "exit-by-partial",
        "__exit__ is a function of C that answers True",
        f"""
        class Swallow:
            __enter__ = functools.partial(int)
            __exit__ = functools.partial(max, 1, 2)
        with Swallow():
            while True:
                pass
        {SURVIVED}
    """,
        "functools",
    ),
    body(
        "exit-raises",
        "__exit__ replaces exhaustion by its own exception",
        f"""
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
    """,
    ),
    body(
        "finally-raises",
        "finally replaces exhaustion by an ordinary exception",
        f"""
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
    """,
    ),
    body(
        "finally-spins",
        "a loop in finally, in a function that ends",
        """
        def inner():
            try:
                return 1
            finally:
                while True:
                    pass
        return inner()
    """,
    ),
    body(
        "finally-yields",
        "finally of a generator yields while exhaustion passes",
        f"""
        def held():
            try:
                while True:
                    pass
            finally:
                yield 1
        for _ in held():
            {SURVIVED}
        return 1
    """,
    ),
    body(
        "generator-exit-raised",
        "the program raises GeneratorExit itself, which charges let pass",
        f"""
        while True:
            try:
                raise GeneratorExit
            except GeneratorExit:
                while True:
                    pass
            finally:
                {SURVIVED}
    """,
    ),
    body(
        "generator-throw-spin",
        "exceptions thrown into a generator that catches all of them",
        """
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
    """,
    ),
    body(
        "return-in-finally",
        "return in finally swallows exhaustion",
        """
        def inner():
            try:
                while True:
                    pass
            finally:
                return 1
        return inner()
    """,
    ),
    body(
        "str-of-error-answers-number",
        "__str__ of an exception answers with no text",
        """
        class Odd(Exception):
            def __str__(self):
                return 5
        raise Odd
    """,
    ),
    body(
        "str-of-error-long",
        "__str__ of an exception answers with a hundred megabytes",
        """
        class Long(Exception):
            def __str__(self):
                return "x" * 10**8
        raise Long
    """,
    ),
    body(
        "str-of-error-raises",
        "__str__ of an exception raises",
        """
        class Bad(Exception):
            def __str__(self):
                raise Bad
        raise Bad
    """,
    ),
    body(
        "str-of-error-recurses",
        "__str__ of an exception calls itself",
        """
        class Deep(Exception):
            def __str__(self):
                return str(self)
        raise Deep
    """,
    ),
    body(
        "str-of-error-spins",
        "__str__ of an exception never answers, after the frame has ended",
        """
        class Loud(Exception):
            def __str__(self):
                while True:
                    pass
        raise Loud
    """,
    ),
    body(
        "str-of-error-writes",
        "__str__ of an exception makes host calls when the frame has failed",
        """
        class Late(Exception):
            def __str__(self):
                pvm_host.set_state(b"late", b"1")
                return "late"
        raise Late
    """,
    ),
    body(
        "suppress-by-mapping",
        "a handler looked up by a class that lies about its name",
        """
        class OutOfGas(BaseException):
            pass
        try:
            while True:
                pass
        except OutOfGas:
            return 1
    """,
    ),
    body(
        "with-many",
        "two hundred managers that all answer True",
        """
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
    """,
    ),
)
