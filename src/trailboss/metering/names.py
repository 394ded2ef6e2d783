"""Names of methods and types whose work depends on sizes, for the instrumentation and for the prices.

Decision: D-101.
"""

from typing import Final

METHODS: Final[dict[str, str]] = {
    name: pricer
    for pricer, names in {
        "scanned": """capitalize casefold decode endswith isalnum isalpha isascii isdecimal isdigit isidentifier islower
            isnumeric isprintable isspace istitle isupper lower partition removeprefix removesuffix split splitlines
            startswith swapcase title upper hex tolist tobytes fromhex hexdigest encode""",
        "searched": "count find index remove",
        "searched_back": "rfind rindex rsplit rpartition",
        "stripped": "strip lstrip rstrip",
        "padded": "center ljust rjust zfill expandtabs",
        "replaced": "replace translate maketrans",
        "joined": "join",
        "formatted": "format format_map substitute safe_substitute __format__",
        "extended": "extend extendleft update fromkeys subtract",
        "copied": "copy reverse rotate elements most_common total isdisjoint",
        "moved": "insert pop",
        "keyed": "get setdefault",
        "sorted": "sort",
        "int_bytes": "to_bytes from_bytes bit_count as_integer_ratio",
        "digested": "digest",
        "dumped": "iterencode",
        "loaded": "raw_decode",
        "matched": "match search fullmatch findall finditer sub subn expand scanner",
        "packed": "pack unpack pack_into unpack_from iter_unpack",
        "decimal_done": """sqrt exp ln log10 power divide divide_int multiply remainder remainder_near fma quantize
            create_decimal create_decimal_from_float from_float to_integral_value to_integral_exact to_integral
            to_eng_string as_tuple scaleb shift normalize compare plus minus add to_sci_string""",
        "chained": "from_iterable",
        "constructed": "__init__ __new__",
        "shown": "__repr__ __str__",
        "operated": """__add__ __radd__ __iadd__ __mul__ __rmul__ __imul__ __mod__ __rmod__ __floordiv__ __rfloordiv__
            __divmod__ __rdivmod__ __pow__ __rpow__ __lshift__ __rlshift__ __rshift__ __rrshift__ __neg__ __pos__
            __invert__ __abs__ __truediv__ __rtruediv__ __ior__ __round__ __int__ __float__ __trunc__ __floor__
            __ceil__""",
        "compared": "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __contains__",
        "accessed": "__getitem__ __setitem__ __delitem__",
    }.items()
    for name in names.split()
}
"""Methods by name, and the pricer of each."""
SIZED_TYPES: Final = frozenset(
    [
        "str",
        "bytes",
        "bytearray",
        "int",
        "float",
        "complex",
        "list",
        "tuple",
        "dict",
        "filter",
        "map",
        "zip",
        "deque",
        "OrderedDict",
        "Counter",
        "defaultdict",
        "Decimal",
        "Struct",
        "set",
        "frozenset",
        "UserList",
        "UserDict",
        "UserString",
        "Enum",
        "IntEnum",
        "StrEnum",
        "Flag",
        "IntFlag",
    ]
)
"""Types that are priced where they are called."""
OPERATORS: Final = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "FloorDiv": "floordiv", "Mod": "mod", "Div": "truediv", "Pow": "pow",
    "LShift": "lshift", "RShift": "rshift", "BitAnd": "and", "BitOr": "or", "BitXor": "xor",
}  # fmt: skip
"""Operators of the syntax by kind of node, and their instruments; those in place begin with an ``i``."""
SET_MAKERS: Final = ("sub", "and", "or", "xor")
"""Operators that make a set of two views of a dict, the one way to a set that no rule about the source can detect."""
COMPARISONS: Final = {
    "Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge", "In": "contains", "NotIn": "lacks",
}  # fmt: skip
UNCHECKED: Final = "_any"  # ends the name of a `SET_MAKERS` instrument that may answer with a set, for the SDK
