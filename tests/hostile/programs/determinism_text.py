"""Text that shows addresses, and so differs between processes."""

from tests.hostile.program import body

PROGRAMS = (
    body(
        "address-by-c-repr",
        "object.__repr__ and its like, called as functions",
        """
        return object.__repr__(go) + list.__repr__([go]) + dict.__repr__({1: go})
    """,
    ),
    body(
        "address-by-chain-map",
        "text that a container of the standard library makes",
        """
        return repr(collections.ChainMap({1: go})) + repr(collections.deque([go]))
    """,
        "collections",
    ),
    body(
        "address-by-decimal-error",
        "an error message of C shows a value",
        """
        try:
            decimal.Decimal(go)
        except TypeError as error:
            return str(error)
    """,
        "decimal",
    ),
    body(
        "address-by-digest",
        "the digest of a text with an address",
        """
        return hashlib.sha256(repr([go, object()]).encode()).hexdigest()
    """,
        "hashlib",
    ),
    body(
        "address-by-exit",
        "an error message with an address, seen by __exit__ alone",
        """
        seen = []
        class Spy:
            def __enter__(self):
                return self
            def __exit__(self, kind, error, trace):
                seen.append(error.args[0])
                return True
        with Spy():
            typing.Optional[(go, object())]
        return seen
    """,
        "typing",
    ),
    body(
        "address-by-key-error",
        "a KeyError shows its key",
        """
        try:
            {}[go]
        except KeyError as error:
            return str(error) + repr(error)
    """,
    ),
    body(
        "address-by-length",
        "the length of a text with an address",
        """
        return len(repr(go)) + len("%50r" % go) + len(f"{go!r:>60}")
    """,
    ),
    body(
        "address-by-map",
        "str and repr called by C",
        """
        return list(map(str, [go])) + list(map(repr, [go]))
    """,
    ),
    body(
        "address-by-partial",
        "str called by functools.partial",
        """
        return functools.partial(str, go)()
    """,
        "functools",
    ),
    body(
        "address-by-sort-key",
        "sorting by text of objects",
        """
        rows = [object() for _ in range(20)]
        return [rows.index(each) for each in sorted(rows, key=repr)]
    """,
    ),
    body(
        "address-by-str-class",
        "a class below str makes text of an object",
        """
        class Text(str):
            pass
        return Text(go)[:30]
    """,
    ),
    body(
        "address-by-template",
        "string.Template puts an object into text",
        """
        return string.Template("$x").substitute(x=go)
    """,
        "string",
    ),
    body(
        "address-by-user-string",
        "UserString keeps the text of an object",
        """
        return collections.UserString(go).data
    """,
        "collections",
    ),
    body(
        "address-of-bound-method",
        "text of a bound method of an object without a repr",
        """
        return str([].append) + repr({}.get)
    """,
    ),
    body(
        "address-of-code",
        "text of a code object by a class pattern",
        """
        match go:
            case object(__code__=code):
                return str(code)
    """,
    ),
    body(
        "address-of-generator",
        "text of a generator",
        """
        return str(x for x in ())
    """,
    ),
    body(
        "address-of-host",
        "text of a function of the host",
        """
        return f"{pvm_host.get_state!r}"
    """,
    ),
    body(
        "address-of-object",
        "text of a plain object",
        """
        return str(object()) + "%r" % object() + "{!r}".format(object())
    """,
    ),
    body(
        "address-of-posing-object",
        "a class that says it equals every type passes for a plain value, whose text is not searched",
        """
        class Meta(type):
            def __eq__(self, other):
                return True
            def __hash__(self):
                return 5
        class Posing(metaclass=Meta):
            pass
        print(Posing())
        return [str(Posing()), f"{Posing()}", "%s" % Posing(), repr([Posing()])]
    """,
    ),
    body(
        "printed-address",
        "printed text with an address",
        """
        print(go, object(), [go])
        return 1
    """,
    ),
)
