"""Time: work without end in Python, and small work in C that Python repeats."""

from tests.hostile.program import body, module

PROGRAMS = (
    body(
        "cached-fibonacci",
        "a cache turns recursion into calls that C makes",
        """
        @functools.lru_cache(None)
        def fib(n):
            return n if n < 2 else fib(n - 1) + fib(n - 2)
        return [fib(n) for n in range(100_000)][-1]
    """,
        "functools",
    ),
    module(
        "class-body-endless",
        "the module never ends, so each frame pays for nothing but it",
        """
        class Actor:
            while True:
                x = 1

            def go(self, payload):
                return 1
    """,
    ),
    body(
        "dict-hash-flood",
        "keys that collide make each insertion linear",
        """
        flood = {}
        for n in range(100_000):
            flood[n * (2**61 - 1)] = n
        return len(flood)
    """,
    ),
    body(
        "extend-itself",
        "a list iterated while it grows never ends",
        """
        grown = [1]
        for each in grown:
            grown.append(each)
        return len(grown)
    """,
    ),
    body(
        "for-while-true",
        "the plain endless loop",
        """
        while True:
            pass
    """,
    ),
    body(
        "generator-endless",
        "a generator and its consumer in Python",
        """
        def endless():
            while True:
                yield 1
        return sum(endless())
    """,
    ),
    body(
        "int-of-text",
        "int() of text is quadratic in its digits",
        """
        text = "7" * 4_300
        return sum(int(text) & 1 for _ in range(10_000))
    """,
    ),
    body(
        "int-square-endless",
        "a number that doubles its digits each turn makes one multiplication endless",
        """
        x = 3
        while True:
            x = x * x
    """,
    ),
    body(
        "json-many",
        "many small documents",
        """
        while True:
            json.loads(json.dumps({"a": [1, 2, {"b": None}]}))
    """,
        "json",
    ),
    body(
        "lambda-recursion",
        "a lambda calls itself from two places",
        """
        grow = lambda n: n if n < 1 else grow(n - 1) + grow(n - 1)
        return grow(200)
    """,
    ),
    body(
        "list-insert-front",
        "insertion at the front moves everything",
        """
        line = [0] * 100_000
        while True:
            line.insert(0, 1)
    """,
    ),
    body(
        "list-remove-all",
        "remove searches from the front",
        """
        line = [0] * 100_000 + [1]
        while True:
            line.remove(1)
            line.append(1)
    """,
    ),
    module(
        "module-endless",
        "the module never ends, whoever calls it",
        """
        while True:
            pass


        def go(payload):
            return 1
    """,
    ),
    body(
        "nested-loops",
        "loops within loops multiply",
        """
        total = 0
        for a in range(10**6):
            for b in range(10**6):
                for c in range(10**6):
                    total += a ^ b ^ c
        return total
    """,
    ),
    body(
        "re-sub-callback",
        "a callback for each character, in a text that grows",
        """
        text = "a"
        while True:
            text = re.sub("a", lambda found: "aa", text)
    """,
        "re",
    ),
    body(
        "reversed-index",
        "index of a missing item in a long list, again and again",
        """
        line = list(range(50_000))
        while True:
            try:
                line.index(-1)
            except ValueError:
                pass
    """,
    ),
    body(
        "sort-compare",
        "sorting with a comparison that the program writes",
        """
        rows = list(range(10_000))
        return sorted(rows, key=functools.cmp_to_key(lambda a, b: b - a))[0]
    """,
        "functools",
    ),
    body(
        "star-call",
        "a call with a hundred thousand arguments, again and again",
        """
        def many(*values):
            return 0
        line = [0] * 100_000
        while True:
            many(*line)
    """,
    ),
    body(
        "str-of-int",
        "str() of an integer is quadratic in its digits",
        """
        number = 10 ** 4_299
        while True:
            str(number)
    """,
    ),
    body(
        "str-replace-grow",
        "replace makes text longer at each turn",
        """
        text = "a"
        while True:
            text = text.replace("a", "aa")
    """,
    ),
    body(
        "while-else",
        "an endless loop hidden in an else",
        """
        while False:
            pass
        else:
            while 1:
                continue
    """,
    ),
)
