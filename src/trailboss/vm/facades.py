"""Which names of the standard library a guest sees: those of Python 3.11, so that every interpreter shows the same.

Left out are names that reach the interpreter or the process (``typing.get_type_hints`` evaluates text,
``enum.global_enum`` writes into modules, ``string.Formatter`` reads attributes by text, ``re.purge`` empties a cache),
that are sets, or that later versions have dropped. Nothing here imports a module; `trailboss.vm.private_modules` does.

Decision: D-40
"""

from typing import Final

_ACTOR: Final = {
    "abc": "ABC ABCMeta abstractmethod",
    "base64": """a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode b32hexencode b64decode
        b64encode b85decode b85encode decodebytes encodebytes standard_b64decode standard_b64encode urlsafe_b64decode
        urlsafe_b64encode""",
    "collections": "ChainMap Counter OrderedDict UserDict UserList UserString abc defaultdict deque namedtuple",
    "collections.abc": """AsyncGenerator AsyncIterable AsyncIterator Awaitable Callable Collection Container Coroutine
        Generator Hashable ItemsView Iterable Iterator KeysView Mapping MappingView MutableMapping MutableSequence
        MutableSet Reversible Sequence Set Sized ValuesView""",
    "dataclasses": """Field FrozenInstanceError InitVar KW_ONLY MISSING asdict astuple dataclass field fields
        is_dataclass make_dataclass replace""",
    "decimal": """Clamped Context ConversionSyntax Decimal DecimalException DecimalTuple DivisionByZero
        DivisionImpossible DivisionUndefined FloatOperation Inexact InvalidContext InvalidOperation MAX_EMAX MAX_PREC
        MIN_EMIN MIN_ETINY Overflow ROUND_05UP ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN
        ROUND_HALF_UP ROUND_UP Rounded Subnormal Underflow getcontext localcontext setcontext""",
    "enum": """CONFORM CONTINUOUS EJECT Enum EnumCheck EnumMeta EnumType Flag FlagBoundary IntEnum IntFlag KEEP
        NAMED_FLAGS ReprEnum STRICT StrEnum UNIQUE auto member nonmember property unique verify""",
    "functools": """WRAPPER_ASSIGNMENTS WRAPPER_UPDATES cache cached_property cmp_to_key lru_cache partial partialmethod
        reduce singledispatch singledispatchmethod total_ordering update_wrapper wraps""",
    "hashlib": """blake2b blake2s md5 pbkdf2_hmac sha1 sha224 sha256 sha384 sha3_224 sha3_256 sha3_384 sha3_512 sha512
        shake_128 shake_256""",
    "hmac": "HMAC compare_digest digest new",
    "itertools": """accumulate chain combinations combinations_with_replacement compress count cycle dropwhile
        filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest""",
    "json": "JSONDecodeError JSONDecoder JSONEncoder dumps loads",
    "math": """acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp exp2
        expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp
        lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt tan tanh tau
        trunc ulp""",
    "operator": """abs add and_ attrgetter concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat
        ifloordiv ilshift imatmul imod imul index indexOf inv invert ior ipow irshift is_ is_not isub itemgetter
        itruediv ixor le length_hint lshift lt matmul methodcaller mod mul ne neg not_ or_ pos pow rshift setitem sub
        truediv truth xor""",
    "re": """A ASCII DOTALL I IGNORECASE L LOCALE M MULTILINE Match NOFLAG Pattern RegexFlag S U UNICODE VERBOSE X
        compile error escape findall finditer fullmatch match search split sub subn""",
    "string": """Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable
        punctuation whitespace""",
    "struct": "Struct calcsize error iter_unpack pack pack_into unpack unpack_from",
    "typing": """AbstractSet Annotated Any AnyStr AsyncContextManager AsyncGenerator AsyncIterable AsyncIterator
        Awaitable BinaryIO Callable ChainMap ClassVar Collection Concatenate Container ContextManager Coroutine Counter
        DefaultDict Deque Dict Final FrozenSet Generator Generic Hashable IO ItemsView Iterable Iterator KeysView List
        Literal LiteralString Mapping MappingView Match MutableMapping MutableSequence MutableSet NamedTuple Never
        NewType NoReturn NotRequired Optional OrderedDict ParamSpec Pattern Protocol Required Reversible Self Sequence
        Set Sized SupportsAbs SupportsBytes SupportsComplex SupportsFloat SupportsIndex SupportsInt SupportsRound
        TYPE_CHECKING Text TextIO Tuple Type TypeAlias TypeGuard TypeVar TypeVarTuple TypedDict Union Unpack ValuesView
        assert_never assert_type cast final get_args get_origin is_typeddict no_type_check overload
        runtime_checkable""",
}
_SDK: Final = {
    "ast": """AST AnnAssign Assign AsyncFor AsyncFunctionDef Attribute AugAssign Await Call ClassDef Constant Del
        ExceptHandler Expr For FunctionDef Import ImportFrom List Load MatchAs MatchStar Name NodeVisitor Return Store
        Subscript Tuple UAdd USub UnaryOp While expr get_source_segment iter_child_nodes parse stmt unparse walk""",
    "bisect": "bisect_left bisect_right insort",
    "dataclasses": _ACTOR["dataclasses"] + " _FIELD _FIELD_CLASSVAR _FIELD_INITVAR _MODULE_IDENTIFIER_RE _get_field"
    " _is_kw_only",
    "reprlib": "recursive_repr",
    "textwrap": "dedent",
    "unicodedata": "category",
}
_BUILTINS: Final = """abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate
    filter float format int isinstance issubclass iter len list map max memoryview min next object oct ord pow property
    range repr reversed round slice sorted staticmethod str sum super tuple type zip Ellipsis NotImplemented False None
    True ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BufferError EOFError Exception
    ExceptionGroup FloatingPointError GeneratorExit ImportError IndexError KeyError LookupError MemoryError
    ModuleNotFoundError NameError NotImplementedError OSError OverflowError PermissionError RecursionError
    ReferenceError RuntimeError StopAsyncIteration StopIteration SyntaxError TypeError UnboundLocalError
    UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError ValueError ZeroDivisionError"""

ACTOR_MODULES: Final = {name: tuple(names.split()) for name, names in _ACTOR.items()}
"""Public names by module, for actors. Design: the allow-list of modules."""
SDK_MODULES: Final = ACTOR_MODULES | {name: tuple(names.split()) for name, names in _SDK.items()}
"""The same for the SDK's own code, which needs a few more."""
ACTOR_BUILTINS: Final = tuple(_BUILTINS.split())
_SDK_BUILTINS: Final = "delattr dir frozenset getattr globals hasattr hash id set setattr vars"
SDK_BUILTINS: Final = (*ACTOR_BUILTINS, *_SDK_BUILTINS.split())
"""The SDK's own code is checked by its authors; what it does with these does not depend on the process."""
