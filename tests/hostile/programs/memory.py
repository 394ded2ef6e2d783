"""Memory: texts, lists, integers, recursion, generators, patterns and formats that grow."""

from tests.hostile.program import body, module

PROGRAMS = (
    body(
        "b64-doubling",
        "an encoding makes its input a third longer each turn",
        """
        text = b"x" * 1_000
        while True:
            text = base64.b64encode(text)
    """,
        "base64",
    ),
    body(
        "bytearray-extend",
        "a bytearray extended by itself doubles",
        """
        grown = bytearray(b"x")
        while True:
            grown.extend(grown)
    """,
    ),
    body(
        "bytearray-size",
        "a bytearray of four gigabytes in one call",
        """
        return len(bytearray(2**32))
    """,
    ),
    body(
        "bytes-join",
        "join multiplies the separator",
        """
        return len((b"x" * 10**6).join([b""] * 10**5))
    """,
    ),
    body(
        "bytes-size",
        "bytes of an exabyte in one call",
        """
        return len(bytes(2**60))
    """,
    ),
    body(
        "bytes-times",
        "repetition of bytes",
        """
        return len(b"x" * 2**33)
    """,
    ),
    body(
        "center-width",
        "padding to a width of four gigabytes",
        """
        return len("x".center(2**32))
    """,
    ),
    body(
        "chain-of-chains",
        "a chain of a million iterators within one another, built in C, overflows C's stack",
        """
        nested = functools.reduce(itertools.chain, [()] * 10**6, ())
        return next(nested, None)
    """,
        "functools, itertools",
    ),
    body(
        "chain-of-chains-freed",
        "the same, never used: freeing it recurses in C",
        """
        nested = functools.reduce(itertools.chain, [()] * 10**6, ())
        del nested
        return 1
    """,
        "functools, itertools",
    ),
    body(
        "class-many",
        "a class for each turn, each with its tables",
        """
        kinds = []
        while True:
            kinds.append(type("K", (), {}))
    """,
    ),
    body(
        "combinations-list",
        "a list of all combinations",
        """
        return len(list(itertools.combinations(range(60), 30)))
    """,
        "itertools",
    ),
    body(
        "comprehension-large",
        "a comprehension that makes a billion items",
        """
        return len([0 for _ in range(10**9)])
    """,
    ),
    body(
        "decimal-scale",
        "a Decimal with an exponent of a billion becomes an integer",
        """
        return int(decimal.Decimal("1e1000000000")) & 1
    """,
        "decimal",
    ),
    body(
        "deque-repeat",
        "repetition of a deque",
        """
        return len(collections.deque([0]) * 2**40)
    """,
        "collections",
    ),
    body(
        "dict-comprehension",
        "a dict of a billion keys",
        """
        return len({n: n for n in range(10**9)})
    """,
    ),
    body(
        "dict-doubling",
        "dicts within dicts, doubled by merging copies",
        """
        grown = {0: 0}
        while True:
            grown = {**grown, **{key + len(grown): key for key in grown}}
    """,
    ),
    body(
        "encode-utf32",
        "an encoding that makes text four times as long",
        """
        return len(("x" * 10**9).encode("utf-32"))
    """,
    ),
    body(
        "expandtabs",
        "a tab stop at two billion",
        """
        return len("\\t\\t".expandtabs(2**31 - 1))
    """,
    ),
    body(
        "fill-format",
        "a width in a format string",
        """
        return len(f"{1:>{2**31}}")
    """,
    ),
    body(
        "float-precision",
        "a precision of two billion",
        """
        return len("%.2147483646f" % 0.1)
    """,
    ),
    body(
        "format-spec-nested",
        "a width that comes from an argument",
        """
        return len("{:{}}".format(1, 2**32))
    """,
    ),
    body(
        "generator-stack",
        "generators that wait on one another",
        """
        def nested(n):
            if n:
                yield from nested(n - 1)
            yield n
        return list(nested(100_000))
    """,
    ),
    body(
        "getrecursion-eq",
        "equality of a list that holds itself recurses in C",
        """
        a, b = [], []
        a.append(b)
        b.append(a)
        return a == b
    """,
    ),
    body(
        "int-bytes",
        "an integer to a gigabyte of bytes",
        """
        return len((1).to_bytes(2**32, "big"))
    """,
    ),
    body(
        "int-factorial-loop",
        "a factorial in Python grows without bound",
        """
        product = 1
        n = 1
        while True:
            product *= n
            n += 1
    """,
    ),
    body(
        "int-shift",
        "a shift by a terabit",
        """
        return (1 << 2**40).bit_length()
    """,
    ),
    body(
        "int-shift-loop",
        "shifts that double",
        """
        x = 1
        while True:
            x <<= x.bit_length()
    """,
    ),
    body(
        "join-amplified",
        "one long text joined ten thousand times",
        """
        long = "x" * 10**6
        return len("".join([long] * 10**5))
    """,
    ),
    body(
        "json-escapes",
        "json makes six characters of one",
        """
        return len(json.dumps("\\u20ac" * 300_000_000))
    """,
        "json",
    ),
    body(
        "lambda-closures",
        "closures that keep one another",
        """
        chain = None
        while True:
            chain = (lambda held: lambda: held)(chain)
    """,
    ),
    body(
        "list-append",
        "a list that grows by one",
        """
        grown = []
        while True:
            grown.append(0)
    """,
    ),
    body(
        "list-doubling",
        "a list that doubles",
        """
        grown = [0]
        while True:
            grown += grown
    """,
    ),
    body(
        "list-of-lists",
        "a list of lists of lists",
        """
        grown = []
        while True:
            grown = [grown] * 1_000
    """,
    ),
    body(
        "list-times",
        "repetition of a list",
        """
        return len([0] * 2**32)
    """,
    ),
    body(
        "list-times-max",
        "repetition beyond the size of any list",
        """
        return len([0, 1] * 2**62)
    """,
    ),
    body(
        "ljust-width",
        "padding on the left",
        """
        return len("x".ljust(10**18))
    """,
    ),
    body(
        "memoryview-cast",
        "views of views of a large buffer",
        """
        view = memoryview(bytes(10**6))
        views = [view[n:].tobytes() for n in range(10**6)]
        return len(views)
    """,
    ),
    module(
        "module-state",
        "the module fills memory before the handler is called",
        """
        FILLED = [bytes(10**6) for _ in range(10**5)]


        def go(payload):
            return len(FILLED)
    """,
    ),
    body(
        "nested-list-repr",
        "repr of a list nested a hundred thousand deep recurses in C",
        """
        nested = []
        for _ in range(20_000):
            nested = [nested]
        return len(repr(nested))
    """,
    ),
    body(
        "nested-tuple-hash",
        "the hash of a deeply nested tuple recurses in C",
        """
        nested = ()
        for _ in range(20_000):
            nested = (nested,)
        return {nested: 1}[nested]
    """,
    ),
    body(
        "percent-star",
        "a width from the arguments of the percent operator",
        """
        return len("%*d" % (2**31 - 1, 1))
    """,
    ),
    body(
        "percent-width",
        "a width in the text of the percent operator",
        """
        return len("%2147483647d" % 1)
    """,
    ),
    body(
        "product-pools",
        "product keeps its inputs: a repeat of a billion",
        """
        return next(itertools.product([0], repeat=10**9))[0]
    """,
        "itertools",
    ),
    body(
        "range-list",
        "a list of a range",
        """
        return len(list(range(10**10)))
    """,
    ),
    body(
        "re-nested-groups",
        "a pattern nested beyond what the compiler of patterns can walk",
        """
        return bool(re.compile("(" * 10_000 + ")" * 10_000))
    """,
        "re",
    ),
    body(
        "re-repeat-count",
        "a pattern with a repetition of four billion",
        """
        return bool(re.match("(?:a{1,65000}){1,65000}", "a" * 1_000))
    """,
        "re",
    ),
    body(
        "re-sub-amplify",
        "one match replaced by a long text",
        """
        return len(re.sub("a", "b" * 100_000, "a" * 100_000))
    """,
        "re",
    ),
    body(
        "recursion",
        "calls without end",
        """
        def again(n):
            return again(n + 1)
        return again(0)
    """,
    ),
    body(
        "recursion-attribute",
        "__getattr__ calls itself",
        """
        class Deep:
            def __getattr__(self, name):
                return getattr(self, name + "x")
        return Deep().a
    """,
    ),
    body(
        "recursion-mutual",
        "two methods that call one another through operators",
        """
        class Deep:
            def __add__(self, other):
                return other + self
        return Deep() + Deep()
    """,
    ),
    body(
        "recursion-repr",
        "__repr__ calls repr of itself",
        """
        class Deep:
            def __repr__(self):
                return repr(self)
        return repr(Deep())
    """,
    ),
    body(
        "reduce-zip",
        "zips within zips, built in C, overflow C's stack",
        """
        nested = functools.reduce(zip, [(1,)] * 10**6, (1,))
        return len(list(nested))
    """,
        "functools",
    ),
    body(
        "replace-empty",
        "replacing the empty text puts a long one between all characters",
        """
        return len(("x" * 10**5).replace("", "y" * 10**5))
    """,
    ),
    body(
        "slice-assign",
        "assignment to a slice doubles a list",
        """
        grown = [0]
        while True:
            grown[0:0] = grown
    """,
    ),
    body(
        "str-concat",
        "text that doubles",
        """
        text = "x"
        while True:
            text += text
    """,
    ),
    body(
        "str-times",
        "repetition of text",
        """
        return len("x" * 2**34)
    """,
    ),
    body(
        "str-zfill",
        "zfill to the width of memory",
        """
        return len("1".zfill(2**40))
    """,
    ),
    body(
        "struct-pad",
        "a structure with four gigabytes of padding",
        """
        return len(struct.pack("4294967295x"))
    """,
        "struct",
    ),
    body(
        "tee-unread",
        "tee keeps what one side has not read",
        """
        a, b = itertools.tee(itertools.count())
        for _ in a:
            pass
    """,
        "itertools",
    ),
    body(
        "tuple-concat",
        "a tuple that doubles",
        """
        grown = (0,)
        while True:
            grown = grown + grown
    """,
    ),
    body(
        "user-length",
        "__len__ answers with more than memory",
        """
        class Long:
            def __len__(self):
                return 2**62
            def __getitem__(self, place):
                return 0
        return len(list(Long()))
    """,
    ),
    body(
        "zip-strict-lists",
        "many lists of a million items",
        """
        rows = [list(range(10**6)) for _ in range(10**4)]
        return len(list(zip(*rows)))
    """,
    ),
)
