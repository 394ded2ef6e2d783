"""Values that differ between processes, machines, builds or versions of Python."""

from tests.hostile.program import body, module

PROGRAMS = (
    body(
        "builtin-doc",
        "documentation of built-ins differs between versions",
        """
        return [len(str.__doc__), len(dict.__doc__), len(len.__doc__)]
    """,
    ),
    body(
        "codec-locale",
        "a codec that not every build has",
        """
        return "x".encode("cp1252") + "x".encode("idna") + "x".encode("mbcs")
    """,
    ),
    body(
        "codec-zip",
        "a codec from bytes to bytes",
        """
        return str(b"x" * 100, "zip")
    """,
    ),
    body(
        "decimal-context",
        "the decimal settings of a frame before",
        """
        before = decimal.getcontext().prec
        decimal.getcontext().prec = 5
        return before
    """,
        "decimal",
    ),
    body(
        "decimal-limits",
        "the limits of Decimal differ between 32 and 64 bits",
        """
        return [decimal.MAX_PREC, decimal.MAX_EMAX, decimal.MIN_ETINY]
    """,
        "decimal",
    ),
    body(
        "dict-view-and",
        "an intersection of views is a set",
        """
        return list({"a": 1, "b": 2, "c": 3}.keys() & ["c", "b", "a"])
    """,
    ),
    body(
        "dict-view-in-place",
        "the same by an augmented assignment",
        """
        keys = {"a": 1, "b": 2, "c": 3}.keys()
        keys |= {"d": 4, "e": 5}.keys()
        return list(keys)
    """,
    ),
    body(
        "dict-view-method",
        "the same by the method's own name",
        """
        return list({"a": 1, "b": 2}.keys().__and__(["a"]))
    """,
    ),
    body(
        "dict-view-operator",
        "the same by operator",
        """
        return list(operator.and_({"a": 1, "b": 2, "c": 3}.keys(), ["c", "a"]))
    """,
        "operator",
    ),
    body(
        "dict-view-reduce",
        "the same by reduce of a method",
        """
        return list(functools.reduce(type({}.keys()).__or__, [{"a": 1}.keys(), {"b": 1}.keys(), {"c": 1}.keys()]))
    """,
        "functools",
    ),
    body(
        "enum-contains",
        "membership of a value in an Enum changed its meaning",
        """
        class E(enum.Enum):
            A = 1
        try:
            return 1 in E
        except TypeError:
            return "TypeError"
    """,
        "enum",
    ),
    body(
        "error-messages",
        "messages of built-in errors differ between versions",
        """
        found = []
        for attempt in (lambda: [][1], lambda: 1 + "a", lambda: int("x"), lambda: None.x, lambda: go(1, 2, 3)):
            try:
                attempt()
            except Exception as error:
                found.append(str(error))
        return found
    """,
    ),
    body(
        "float-extremes",
        "floats at the edges of their range",
        """
        return [str(x) for x in (5e-324, 1.7976931348623157e308, 0.1 + 0.2, 1e22, 1e16, 123456789012345680.0)]
    """,
    ),
    body(
        "float-format",
        "formats of floats with many digits",
        """
        return [f"{0.1:.60f}", "%.17g" % 0.1, (0.1).hex(), f"{1e300:,.1f}", f"{2.675:.2f}"]
    """,
    ),
    body(
        "float-getformat",
        "the machine's format of floats",
        """
        return float.__getformat__("double")
    """,
    ),
    body(
        "float-libm",
        "functions of the machine's mathematical library",
        """
        values = [math.sin(1e22), math.exp(1.5), math.pow(2.1, 3.3), math.gamma(4.7), math.erf(0.3), math.tan(1e10)]
        return [value.hex() for value in values]
    """,
        "math",
    ),
    body(
        "float-locale",
        "numbers with separators of the locale",
        """
        return f"{1234567.5:n}" + "{:n}".format(1234567)
    """,
    ),
    body(
        "float-nan",
        "comparison and sorting of NaN",
        """
        nan = float("nan")
        return [str(x) for x in sorted([3.0, nan, 1.0, nan, 2.0])] + [nan in [nan], [nan] == [nan], str(max(nan, 1.0))]
    """,
    ),
    body(
        "float-nan-bits",
        "the sign and payload of NaN",
        """
        inf = float("inf")
        return struct.pack(">d", inf - inf) + struct.pack(">d", inf * 0.0) + struct.pack(">d", -(inf - inf))
    """,
        "struct",
    ),
    body(
        "float-sum",
        "sum of floats became more exact in Python 3.12",
        """
        return str(sum([0.1] * 10))
    """,
    ),
    body(
        "hash-by-abc-set",
        "collections.abc.Set computes a hash of its items",
        """
        return collections.abc.Set._hash({"a": 1, "b": 2}.keys())
    """,
        "collections.abc",
    ),
    body(
        "hash-by-match",
        "a class pattern reads __hash__",
        """
        match "text":
            case str(__hash__=method):
                return method()
    """,
    ),
    body(
        "hash-by-match-object",
        "the hash of an object is its address",
        """
        match go:
            case object(__hash__=method):
                return method()
    """,
    ),
    body(
        "hash-by-method",
        "__hash__ as an attribute",
        """
        return "text".__hash__()
    """,
    ),
    body(
        "hash-by-name",
        "hash as a name",
        """
        return hash("text")
    """,
    ),
    body(
        "hash-by-super",
        "the hash of a base class within the program's own",
        """
        class Text(str):
            def __hash__(self):
                return super().__hash__()
        return Text("a").__hash__()
    """,
    ),
    body(
        "hash-in-dict-class",
        "a key whose __hash__ is taken from a base class by getattr",
        """
        class Key(str):
            pass
        return getattr(Key("a"), "__ha" + "sh__")()
    """,
    ),
    body(
        "hash-of-dataclass",
        "the hash that a dataclass generates",
        """
        @dataclasses.dataclass(frozen=True)
        class Key:
            name: str = "a"
        return getattr(Key, "__hash__")(Key())
    """,
        "dataclasses",
    ),
    body(
        "id-by-name",
        "id as a name",
        """
        return id(go)
    """,
    ),
    body(
        "import-random",
        "a module of chance",
        """
        import random
        return random.random()
    """,
    ),
    body(
        "import-time",
        "a module of time",
        """
        import time
        return time.time_ns()
    """,
    ),
    body(
        "import-uuid",
        "a module of names by chance and machine",
        """
        import uuid
        return str(uuid.uuid4())
    """,
    ),
    body(
        "int-max-digits",
        "the limit of digits of integers",
        """
        return len(str(10 ** 4_299)) + len(str(10 ** 4_300))
    """,
    ),
    body(
        "interned-identity",
        "identity of equal texts and numbers",
        """
        a, b = "ab" * 3, "".join(["abab", "ab"])
        return [a is b, 256 + 1 is 257 + 0, () is tuple([]), "a" is "abc"[0]]
    """,
    ),
    body(
        "memoryview-native",
        "views by the machine's own sizes",
        """
        return [memoryview(bytes(16)).cast("l").itemsize, memoryview(bytes(16)).cast("P").itemsize]
    """,
    ),
    body(
        "memoryview-order",
        "views by the machine's own byte order",
        """
        return list(memoryview(b"\\x01\\x00\\x00\\x00").cast("I"))
    """,
    ),
    body(
        "methods-of-types",
        "methods that later versions have",
        """
        return [hasattr(kind, name) for kind, name in ((int, "is_integer"), (float, "from_number"), (tuple, "index"))]
    """,
    ),
    module(
        "module-identity",
        "what a module keeps for the next frame",
        """
        import cowboy_sdk
        import json

        kept = []


        def go(payload):
            kept.append(1)
            json.kept = kept
            return len(kept)
    """,
    ),
    body(
        "operator-length-hint",
        "the length that an iterator guesses",
        """
        return [operator.length_hint(x) for x in (iter([1, 2]), itertools.repeat(0, 5), iter({1: 2}), "abc")]
    """,
        "operator, itertools",
    ),
    body(
        "re-debug",
        "a pattern with a flag that prints in the process",
        """
        return re.compile("ab+", 128).pattern
    """,
        "re",
    ),
    body(
        "re-error-name",
        "the class of a pattern's error has another name since 3.13",
        """
        try:
            re.compile("(")
        except re.error as error:
            return type(error).__name__ + str(error)
    """,
        "re",
    ),
    body(
        "re-locale",
        "a pattern by the locale",
        """
        return bool(re.match(rb"\\w", b"\\xe9", re.LOCALE))
    """,
        "re",
    ),
    body(
        "recursion-count",
        "how deep calls go",
        """
        def deep(n):
            pvm_host.set_state(b"n", str(n).encode())
            return deep(n + 1)
        return deep(0)
    """,
    ),
    body(
        "set-by-frozenset",
        "a set by a method that makes one",
        """
        return list(type({}.keys() - [])("cab"))
    """,
    ),
    body(
        "set-comprehension",
        "the order of a set",
        """
        return list({x for x in "hostile"})
    """,
    ),
    body(
        "set-display",
        "the order of a set, written out",
        """
        return list({"a", "b", "c"})
    """,
    ),
    body(
        "set-of-abstract-methods",
        "the names of abstract methods are a set",
        """
        class A(abc.ABC):
            @abc.abstractmethod
            def one(self): pass
            @abc.abstractmethod
            def two(self): pass
            @abc.abstractmethod
            def three(self): pass
        return list(A.__abstractmethods__)
    """,
        "abc",
    ),
    body(
        "set-of-typed-dict",
        "the keys of a TypedDict are a set",
        """
        class T(typing.TypedDict):
            one: int
            two: int
            three: int
        return list(T.__required_keys__)
    """,
        "typing",
    ),
    body(
        "set-of-typing",
        "a set made by a function of the library",
        """
        class P(typing.Protocol):
            a: int
            b: int
            c: int
        return list(getattr(P, "__abstract" + "methods__")) + list(getattr(P, "__protocol_attrs__", []))
    """,
        "typing",
    ),
    body(
        "sizeof",
        "the size of an object in memory",
        """
        return [].__sizeof__()
    """,
    ),
    body(
        "sort-by-id",
        "sorting by identity",
        """
        return sorted([go, payload], key=id)
    """,
    ),
    body(
        "struct-native",
        "sizes and alignment of the machine's own structures",
        """
        return [struct.calcsize(each) for each in ("l", "P", "n", "bq", "@bi", "N")]
    """,
        "struct",
    ),
    body(
        "struct-native-order",
        "the machine's own byte order",
        """
        return struct.pack("I", 1) + struct.pack("=H", 1)
    """,
        "struct",
    ),
    body(
        "syntax-warning",
        "a warning that only some versions give",
        """
        return [1 is 1, "\\\\d" == r"\\d", ~True]
    """,
    ),
    body(
        "typing-repr",
        "text of types differs between versions",
        """
        return str(typing.Optional[int]) + repr(typing.Union[int, str]) + repr(int | None)
    """,
        "typing",
    ),
    body(
        "unicode-casefold",
        "tables of characters differ between versions",
        """
        return [c.upper() + c.lower() + c.casefold() for c in ("\\u1c89", "\\ua7cb", "\\u0131", "\\u00df")]
    """,
    ),
    body(
        "unicode-name",
        "a character that the tables of Python 3.11 do not name",
        """
        return "\\N{SHAKING FACE}"
    """,
    ),
    body(
        "unicode-printable",
        "repr escapes what its version cannot print",
        """
        return repr("\\U0001fae8\\U00031350") + ascii("\\U0001fae8")
    """,
    ),
    body(
        "version-attribute",
        "attributes that a version adds to classes",
        """
        class A:
            pass
        return [hasattr(A, "__static_attr" + "ibutes__"), hasattr(A, "__first" + "lineno__"), A.__doc__]
    """,
    ),
    body(
        "weak-order",
        "order of keys after deletions",
        """
        table = {n: n for n in range(100)}
        for n in range(0, 100, 3):
            del table[n]
        table.update({n: 0 for n in (3, 0, 99)})
        return list(table)
    """,
    ),
)
