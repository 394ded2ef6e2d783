"""Time: work in C that a few cycles of Python start."""

from tests.hostile.program import body, module

PROGRAMS = (
    body(
        "accumulate-endless",
        "an iterator that never ends is consumed in C",
        """
        return list(itertools.accumulate(itertools.count()))
    """,
        "itertools",
    ),
    body(
        "all-of-repeat",
        "a built-in loops over an endless iterator without a turn of Python",
        """
        return all(itertools.repeat(1))
    """,
        "itertools",
    ),
    body(
        "any-of-zeros",
        "a search that never finds anything stays in C",
        """
        return any(itertools.repeat(0))
    """,
        "itertools",
    ),
    body(
        "bytes-find-periodic",
        "searching text that almost matches everywhere is slow in C",
        """
        hay = b"ab" * 30_000
        needle = b"ab" * 10_000 + b"b"
        return sum(hay.find(needle) for _ in range(200))
    """,
    ),
    body(
        "comb-huge",
        "one call of math.comb multiplies numbers of a megabit",
        """
        return math.comb(10**6, 5 * 10**5) & 1
    """,
        "math",
    ),
    body(
        "compare-dag",
        "comparing two lists that share themselves visits 2**60 pairs",
        """
        a, b = [1], [1]
        for _ in range(60):
            a, b = [a, a], [b, b]
        return a == b
    """,
    ),
    body(
        "count-of-range",
        "range.count visits every item for a value that is no int",
        """
        return range(10**12).count("x")
    """,
    ),
    body(
        "counter-endless",
        "Counter counts an endless iterator in C",
        """
        return collections.Counter(itertools.repeat("x"))
    """,
        "collections, itertools",
    ),
    body(
        "cycle-in",
        "membership in an endless cycle never answers",
        """
        return 3 in itertools.cycle((1, 2))
    """,
        "itertools",
    ),
    body(
        "decimal-exp",
        "Decimal.exp with a precision of a million digits",
        """
        decimal.getcontext().prec = 10**6
        return str(decimal.Decimal(2).exp())[:9]
    """,
        "decimal",
    ),
    body(
        "decimal-power",
        "Decimal power with a huge precision",
        """
        decimal.getcontext().prec = 10**6
        return str(decimal.Decimal(3) ** decimal.Decimal("0.7"))[:9]
    """,
        "decimal",
    ),
    body(
        "decimal-sqrt",
        "Decimal.sqrt is quadratic in the precision",
        """
        decimal.getcontext().prec = 10**6
        return str(decimal.Decimal(2).sqrt())[:9]
    """,
        "decimal",
    ),
    body(
        "deque-extend-itself",
        "deque.extend of an endless iterator with a bound keeps memory flat and never ends",
        """
        collections.deque(itertools.count(), maxlen=0)
    """,
        "collections, itertools",
    ),
    body(
        "dict-fromkeys-range",
        "dict.fromkeys makes a hundred million entries in one call",
        """
        return len(dict.fromkeys(range(10**9)))
    """,
    ),
    body(
        "divmod-huge",
        "division of long integers is quadratic",
        """
        a, b = 7 ** 400_000, 3 ** 300_000
        return sum(divmod(a + n, b)[1] & 1 for n in range(1_000))
    """,
    ),
    body(
        "enumerate-endless",
        "max consumes an endless enumeration",
        """
        return max(enumerate(itertools.repeat(0)))
    """,
        "itertools",
    ),
    body(
        "factorial-huge",
        "one call of math.factorial",
        """
        return math.factorial(10**7) & 1
    """,
        "math",
    ),
    body(
        "filter-none-endless",
        "filter with None skips endlessly in C",
        """
        return next(filter(None, itertools.repeat(0)))
    """,
        "itertools",
    ),
    body(
        "filter-posing-endless",
        "a class that says it equals every type passes for a short list, with an endless iterator",
        """
        class Meta(type):
            def __eq__(self, other):
                return True
            def __hash__(self):
                return 5
        class Posing(metaclass=Meta):
            def __len__(self):
                return 0
            def __iter__(self):
                return itertools.repeat(0)
        return list(filter(None, Posing()))
    """,
        "itertools",
    ),
    body(
        "gcd-chain",
        "gcd of long integers is quadratic",
        """
        a = 2 ** 200_000 + 1
        return sum(math.gcd(a, 3 ** 120_000 + n) for n in range(1_000))
    """,
        "math",
    ),
    body(
        "int-power",
        "one power fills memory and time",
        """
        return (3 ** 3 ** 18) & 1
    """,
    ),
    body(
        "int-power-tower",
        "a tower of powers that no machine can compute",
        """
        n = 9
        return (n ** n ** n ** n) & 1
    """,
    ),
    body(
        "isqrt-huge",
        "one call of math.isqrt",
        """
        return math.isqrt(1 << 40_000_000) & 1
    """,
        "math",
    ),
    body(
        "iter-sentinel",
        "iter with a sentinel that never comes",
        """
        return list(iter(int, 1))
    """,
    ),
    body(
        "json-nested",
        "json of containers that share themselves visits 2**60 nodes",
        """
        a = [1]
        for _ in range(60):
            a = [a, a]
        return json.dumps(a)
    """,
        "json",
    ),
    body(
        "map-str-endless",
        "map calls str without a turn of Python",
        """
        return max(map(str, itertools.count()))
    """,
        "itertools",
    ),
    body(
        "max-of-range",
        "max of a range visits each number",
        """
        return max(range(10**12))
    """,
    ),
    module(
        "module-sum",
        "the module runs a loop in C before the handler is called",
        """
        X = sum(range(10**12))


        def go(payload):
            return X
    """,
    ),
    body(
        "pbkdf2-rounds",
        "a key derivation of a billion rounds in one call",
        """
        return hashlib.pbkdf2_hmac("sha512", b"p", b"s", 10**9)
    """,
        "hashlib",
    ),
    body(
        "perm-huge",
        "one call of math.perm",
        """
        return math.perm(10**6) & 1
    """,
        "math",
    ),
    body(
        "permutations",
        "permutations of thirty items",
        """
        return sum(1 for _ in itertools.permutations(range(30)))
    """,
        "itertools",
    ),
    body(
        "permutations-in-c",
        "permutations counted in C",
        """
        return len(collections.deque(itertools.permutations(range(30)), maxlen=1))
    """,
        "collections, itertools",
    ),
    body(
        "pow-modular",
        "modular power of numbers of 100,000 bits",
        """
        return pow(3, 1 << 99_999, (1 << 100_000) - 1) & 1
    """,
    ),
    body(
        "pow-modular-negative",
        "modular inverse of long numbers",
        """
        m = 2 ** 216_091 - 1
        return sum(pow(3 + n, -1, m) & 1 for n in range(100))
    """,
    ),
    body(
        "prod-of-range",
        "math.prod of a range",
        """
        return math.prod(range(1, 10**7)) & 1
    """,
        "math",
    ),
    body(
        "product-repeat",
        "a Cartesian product of 10**12 tuples counted in C",
        """
        return len(collections.deque(itertools.product(range(10), repeat=12), maxlen=1))
    """,
        "collections, itertools",
    ),
    body(
        "range-contains-float",
        "membership of a float in a range compares each number",
        """
        return 0.5 in range(10**12)
    """,
    ),
    body(
        "re-alternation",
        "alternatives that match the same text double the work at each character",
        """
        return bool(re.match(r"(a|a)*$", "a" * 40 + "b"))
    """,
        "re",
    ),
    body(
        "re-backreference",
        "a back-reference within a repetition",
        """
        return bool(re.match(r"(a*)*(\\1b)*c", "a" * 40))
    """,
        "re",
    ),
    body(
        "re-dot-star",
        "many greedy parts backtrack against each other",
        """
        return bool(re.search(".*" * 12 + "x", "a" * 200))
    """,
        "re",
    ),
    body(
        "re-lookahead",
        "lookahead within a nested repetition",
        """
        return bool(re.match(r"((?=a)a+)+$", "a" * 40 + "b"))
    """,
        "re",
    ),
    body(
        "re-nested-plus",
        "the textbook pattern with exponential backtracking",
        """
        return bool(re.match(r"(a+)+$", "a" * 40 + "b"))
    """,
        "re",
    ),
    body(
        "reduce-multiply",
        "functools.reduce multiplies without a turn of Python",
        """
        return functools.reduce(operator.mul, range(1, 10**6)) & 1
    """,
        "functools, operator",
    ),
    body(
        "repr-nested",
        "repr of containers that share themselves",
        """
        a = (1,)
        for _ in range(60):
            a = (a, a)
        return len(repr(a))
    """,
    ),
    body(
        "sha3-long",
        "hashing a megabyte again and again",
        """
        block = bytes(2**20)
        while True:
            hashlib.sha3_512(block)
    """,
        "hashlib",
    ),
    body(
        "shake-long",
        "an extendable hash that answers with 300 megabytes",
        """
        return hashlib.shake_128(b"x").digest(3 * 10**8)[:4]
    """,
        "hashlib",
    ),
    body(
        "sort-adversarial",
        "sorting long texts with a common prefix",
        """
        prefix = "a" * 20_000
        rows = [prefix + str(n * 7919 % 1_000) for n in range(1_000)]
        while True:
            rows.sort()
            rows.reverse()
    """,
    ),
    body(
        "sort-of-lists",
        "sorting lists of lists compares deeply in C",
        """
        deep = [[0] * 1_000 + [n] for n in range(500)]
        while True:
            deep.sort(reverse=True)
            deep.sort()
    """,
    ),
    body(
        "str-count-overlap",
        "count in a long text, again and again",
        """
        text = "ab" * 100_000
        while True:
            text.count("ba")
    """,
    ),
    body(
        "str-split",
        "split makes a hundred thousand items, again and again",
        """
        text = "a " * 100_000
        while True:
            text.split()
    """,
    ),
    body(
        "str-translate",
        "translate of a long text, again and again",
        """
        text = "a" * 100_000
        table = {97: "bc"}
        while True:
            text.translate(table)
    """,
    ),
    body(
        "sum-of-lists",
        "sum of lists is quadratic",
        """
        return len(sum([[0] * 10 for _ in range(10_000)], []))
    """,
    ),
    body(
        "sum-of-range",
        "sum of a range visits each number",
        """
        return sum(range(10**12))
    """,
    ),
    body(
        "tee-chain",
        "tee of tee, consumed in C",
        """
        a = itertools.count()
        for _ in range(50):
            a, _b = itertools.tee(a)
        return max(a)
    """,
        "itertools",
    ),
    body(
        "tuple-hash-dag",
        "hashing a tuple that shares itself visits 2**60 items",
        """
        a = (1,)
        for _ in range(60):
            a = (a, a)
        return {a: 1}.get(a)
    """,
    ),
    body(
        "zip-endless",
        "zip of two endless iterators",
        """
        return max(zip(itertools.count(), itertools.count()))
    """,
        "itertools",
    ),
)
