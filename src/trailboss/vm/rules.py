"""The rules for actor code. Deployment refuses whatever could differ between two nodes. Decision: D-32, D-40."""

import ast
import io
import token
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Final, NamedTuple

from trailboss.metering.instrument import SETTERS
from trailboss.metering.syntax import PREFIX, TEXT_METHODS, parts
from trailboss.primitives.errors import Fact, Rejection, RejectionReason
from trailboss.vm.nest_depth import NESTING_MAX, check_nesting, no_python

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
"""What a guest sees of the standard library: the names of Python 3.11, so that every interpreter shows the same.

Left out are sets, names that later versions dropped, and names that reach the interpreter or the process:
``typing.get_type_hints`` evaluates text, ``enum.global_enum`` writes into modules, ``string.Formatter`` reads
attributes by text, ``re.purge`` empties a cache. Decision: D-40.
"""
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
"""Public names by module, for actors."""
SDK_MODULES: Final = ACTOR_MODULES | {name: tuple(names.split()) for name, names in _SDK.items()}
"""The same for the SDK's own code, which needs some more."""
ACTOR_BUILTINS: Final = tuple(_BUILTINS.split())
_SDK_BUILTINS: Final = "delattr dir frozenset getattr globals hasattr hash id set setattr vars"
SDK_BUILTINS: Final = (*ACTOR_BUILTINS, *_SDK_BUILTINS.split())
"""The SDK's authors check its code; its use of these names does not depend on the process."""


GRAMMAR: Final = (3, 11)  # the Python whose grammar actors use; later syntax is refused on every interpreter
SDK: Final = "cowboy_sdk"  # the public SDK
LANE_SDK: Final = "trailboss.sdk"  # the module of this package that actors can import, for timers
LANE_PACKAGE: Final = LANE_SDK.partition(".")[0]
LANE_MODULES: Final = (LANE_PACKAGE, f"{LANE_PACKAGE}.recurrence", LANE_SDK)
"""Modules of this package that guests share; actors import the last one, which has the names of the others."""
HOST: Final = "pvm_host"
_NAMES: Final = """id hash open input eval exec compile globals locals vars dir set frozenset breakpoint exit quit
    help aiter anext copyright credits license KeyboardInterrupt SystemExit __import__ __builtins__ __build_class__
    __loader__ __spec__ __file__ __cached__ __path__"""
REFUSED_NAMES: Final = frozenset(_NAMES.split())
BREAKPOINT: Final = "breakpoint"
BREAKPOINT_ADVICE: Final = (
    "remove it: only a development chain with the native engine stops there, at the statement breakpoint() alone"
)
_ATTRIBUTES: Final = """__globals__ __subclasses__ __code__ __builtins__ __traceback__ __closure__ __dict__ __self__
    __func__ __reduce__ __reduce_ex__ __getattribute__ __hash__ __sizeof__ __dir__ __loader__ __spec__ __file__
    __cached__ __path__ __and__ __or__ __sub__ __xor__ __rand__ __ror__ __rsub__ __rxor__ __weakref__
    __firstlineno__ __static_attributes__ __annotate__ __annotate_func__ __annotations_cache__
    tb_frame tb_next tb_lasti tb_lineno f_back f_builtins f_code f_globals f_lasti f_lineno
    f_locals f_trace gi_frame gi_code gi_running gi_suspended gi_yieldfrom cr_frame cr_code cr_await cr_origin
    cr_running cr_suspended ag_frame ag_code ag_await ag_running
    __abstractmethods__ __required_keys__ __optional_keys__ __readonly_keys__ __mutable_keys__ __protocol_attrs__"""
REFUSED_ATTRIBUTES: Final = frozenset(_ATTRIBUTES.split())
"""Attributes that lead out of a program into the interpreter, or differ between processes or versions, as sets do."""
_REFUSED_IMPORTS: Final = frozenset(name for name in REFUSED_NAMES | REFUSED_ATTRIBUTES if name.startswith("__"))
"""Names that every module has, and that no import statement may read."""
_REFUSED_PATTERNS: Final = REFUSED_ATTRIBUTES.union(SETTERS, (name for name in TEXT_METHODS if name.startswith("__")))
"""Attributes that no class pattern may read: those, and methods that are checked wherever else a program reads them."""
SUBSTITUTES: Final = {
    "take unpredictable values from pvm_host.randomness(domain), or ": ("random", "secrets", "uuid"),
    "use the block's time, pvm_host.block_height() or pvm_host.context()['timestamp_ms'], or ": (
        "time", "datetime", "calendar", "zoneinfo",
    ),
    "wait with a timer, pvm_host.schedule_timer(height, payload), or ": ("asyncio", "threading", "sched", "concurrent"),
    "send the facts in a transaction, as examples/actors/oracle.py does, or ": (
        "requests", "urllib", "http", "httpx", "aiohttp", "socket",
    ),
    "keep it in storage, pvm_host.get_state(key) and pvm_host.set_state(key, value), or ": (
        "os", "io", "pathlib", "pickle", "shelve", "sqlite3", "tempfile",
    ),
}  # fmt: skip
"""Alternatives to modules that differ between nodes."""
_NESTED_FIELDS_MAX: Final = 2  # nested braces of a formatted string in that grammar
SCOPES_MAX: Final = 2_000  # functions, classes, lambdas, comprehensions and managers of ``with`` of a program
COMPREHENSIONS_MAX: Final = 16  # within one another
COPIES_MAX: Final = 10_000  # parts of a program that a compiler adds as copies of what stands after ``finally``
_SCOPES: Final = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
_PLAIN: Final = frozenset((
    ast.Constant, ast.Expr, ast.Assign, ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Subscript,
    ast.Tuple, ast.List, ast.Dict, ast.keyword, ast.arg, ast.arguments, ast.Pass, ast.Starred, ast.Slice,
))  # fmt: skip
"""Kinds of nodes that break no rule by themselves."""
_NAMED: Final[dict[type[ast.AST], str]] = {
    ast.Name: "id", ast.arg: "arg", ast.FunctionDef: "name", ast.AsyncFunctionDef: "name", ast.ClassDef: "name",
    ast.Global: "names", ast.Nonlocal: "names", ast.alias: "name", ast.ExceptHandler: "name", ast.MatchAs: "name",
    ast.MatchStar: "name", ast.MatchMapping: "rest", ast.keyword: "arg", ast.Attribute: "attr",
}  # fmt: skip
"""Fields that hold the names of nodes."""


class Fault(NamedTuple):
    """One violation of a rule, without its position."""

    rule: str  # short name of the rule
    what: str  # the violation and its reason
    fix: str = ""  # what to do; empty for the general advice


class _Inside(NamedTuple):
    """Where a node is: in a ``finally``, in a loop within it, in a lambda, in an async function, in comprehensions."""

    final: bool = False
    loop: bool = False
    lambda_: bool = False
    async_: bool = False
    comprehensions: int = 0


def check_program(source: str, source_bytes_max: int, *, breakpoints: bool = False) -> ast.Module:
    """Return the tree of an actor's source, if it follows the rules; ``breakpoints`` as in `find_faults`.

    Raises:
        Rejection: As `find_faults`; ``NON_DETERMINISTIC_CODE`` with line, column and rule of the first fault, and
            the number of others.
    """
    tree, found = find_faults(source, source_bytes_max, breakpoints=breakpoints)
    if found:
        line, column, (rule, what, fix) = found[0]
        facts: dict[str, Fact] = {"line": line, "column": column, "rule": rule, "further": len(found) - 1}
        what = f"line {line}, column {column}: {what}"
        raise Rejection(RejectionReason.NON_DETERMINISTIC_CODE, what, fix, **facts)
    return tree


def find_faults(
    source: str, source_bytes_max: int, *, breakpoints: bool = False
) -> tuple[ast.Module, list[tuple[int, int, Fault]]]:
    """Return the tree of a source, and where it breaks a rule: line and column, from 1, in order, and what is wrong.

    Args:
        source: Of an actor.
        source_bytes_max: The limit of its size, in UTF-8 bytes.
        breakpoints: Whether the statement ``breakpoint()`` is allowed. Decision: D-118.

    Raises:
        Rejection: ``INVALID_DATA`` for source that is too large, in UTF-8 bytes, or not Python of the `GRAMMAR`.
    """
    check_size(source, source_bytes_max)
    check_nesting(source)
    tree = parse(source)
    nodes = list(_walk(tree))
    _check_shape(nodes, source)
    stops = filter(None, (breakpoint_name(node) for node, _, _ in nodes if breakpoints))
    found = sorted(_findings(nodes, frozenset(stops)), key=itemgetter(0, 1))
    is_formatted = any(type(node) is ast.JoinedStr for node, _, _ in nodes)
    del nodes  # a compiler needs the memory
    with refusing(source):
        # The compiler finds what the parser lets pass, such as a return outside a function.
        compile(tree, "<actor>", "exec", dont_inherit=True, optimize=0)
    if is_formatted:
        _check_formatted(source)
    lines = source.splitlines() if found else []
    return tree, [(line, _column(lines, line, byte), fault) for line, byte, fault in found]


def _column(lines: Sequence[str], line: int, byte: int) -> int:
    """Return the column of a byte of a line: the parser counts bytes, people count characters."""
    text = lines[line - 1] if line <= len(lines) else ""
    return len(text.encode(errors="surrogatepass")[:byte].decode(errors="surrogatepass")) + 1


def check_size(source: str, source_bytes_max: int) -> int:
    """Return the bytes of a source in UTF-8; refuse one that is too large as `check_program` does."""
    size = len(source.encode(errors="surrogatepass"))
    if size > source_bytes_max:
        what = f"source has {size} bytes, the limit is {source_bytes_max}"
        raise Rejection(RejectionReason.INVALID_DATA, what, size=size, limit=source_bytes_max)
    return size


def parse(source: str) -> ast.Module:
    """Return the tree of a source in the `GRAMMAR`. `Rejection` ``INVALID_DATA`` with line and column."""
    with refusing(source):
        return ast.parse(source, feature_version=GRAMMAR)


@contextmanager
def refusing(source: str) -> Iterator[None]:
    """Refuse what parser and compiler refuse: `Rejection` ``INVALID_DATA`` with line and column."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except SyntaxError as error:
        raise no_python(source, error.lineno or 1, error.offset or 1, error.msg) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise no_python(source, 1, 1, str(error) or "too deeply nested") from None


_Place = tuple[ast.AST, _Inside, int]
"""A node, where it is, and its depth in the tree."""


def _walk(tree: ast.Module) -> Iterator[_Place]:
    """Yield every node but operators and contexts; none below the deepest level that is allowed."""
    waiting: list[_Place] = [(tree, _Inside(), 0)]
    while waiting:
        place = node, inside, depth = waiting.pop()
        yield place
        within = parts(node) if depth < NESTING_MAX else []
        if not within:
            continue
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                inside = _Inside(async_=isinstance(node, ast.AsyncFunctionDef), comprehensions=inside.comprehensions)
            case ast.Lambda():
                inside = _Inside(lambda_=True, comprehensions=inside.comprehensions)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                inside = inside._replace(comprehensions=inside.comprehensions + 1)
            case ast.For() | ast.While():
                inside = inside._replace(loop=True)
            case ast.Try(finalbody=[_, *_] as body):
                final = inside._replace(final=True, loop=False)
                waiting += [(each, final, depth + 1) for each in within[-len(body) :]]
                within = within[: -len(body)]
        waiting += [(each, inside, depth + 1) for each in within]


def _check_shape(nodes: Sequence[_Place], source: str) -> None:
    """Refuse what only some interpreters accept, and what a compiler works on for longer than its length shows.

    The first are very deep nesting, and the deeper braces of Python 3.12; the second are many scopes, whose code
    CPython 3.11 compares with one another, and blocks of ``finally``, which are compiled once for each way out.
    """
    deep = [node for node, _, depth in nodes if depth == NESTING_MAX and isinstance(node, ast.expr | ast.stmt)]
    if deep:
        line, byte = min((node.lineno, node.col_offset) for node in deep)
        raise no_python(source, line, byte + 1, f"nested deeper than {NESTING_MAX} levels")
    for node, inside, _ in nodes:
        if inside.comprehensions > COMPREHENSIONS_MAX and isinstance(node, ast.expr):
            what = f"comprehensions nested deeper than {COMPREHENSIONS_MAX} levels"
            raise no_python(source, node.lineno, node.col_offset + 1, what)
    kinds = Counter(type(node) for node, _, _ in nodes)
    scopes = sum(kinds[kind] for kind in (*_SCOPES, ast.withitem))
    if scopes > SCOPES_MAX:
        what = f"{scopes} functions, classes, lambdas, comprehensions and managers, the limit is {SCOPES_MAX}"
        raise Rejection(RejectionReason.INVALID_DATA, what, "deploy it as several actors", limit=SCOPES_MAX)
    if kinds[ast.Try] and (copies := _compiled(nodes[0][0])[0] - len(nodes)) > COPIES_MAX:
        what = (
            f"a compiler copies what stands after finally for each way out: {copies} parts, the limit is {COPIES_MAX}"
        )
        raise Rejection(RejectionReason.INVALID_DATA, what, "call a function after finally", limit=COPIES_MAX)
    for node, _, _ in nodes if kinds[ast.JoinedStr] else ():
        if isinstance(node, ast.JoinedStr) and _braces(node) > _NESTED_FIELDS_MAX:
            raise no_python(source, node.lineno, node.col_offset + 1, "f-string: expressions nested too deeply")


def _compiled(node: ast.AST) -> tuple[int, int]:
    """Return how many parts of a node are compiled, and how many ways lead out of blocks in it."""
    count, ways = 1, int(isinstance(node, ast.Return | ast.Break | ast.Continue))
    within = [_compiled(each) for each in parts(node)]
    before = len(within) - (len(node.finalbody) if isinstance(node, ast.Try) else 0)
    ways += sum(each[1] for each in within)
    count += sum(each[0] for each in within[:before])
    # Once if the block ends, once if it fails, once for each way out.
    count += sum(each[0] for each in within[before:]) * (2 + ways)
    return count, 0 if isinstance(node, _SCOPES) else ways


def _braces(node: ast.JoinedStr) -> int:
    within = [each.format_spec for each in node.values if isinstance(each, ast.FormattedValue)]
    return max((1 + (_braces(each) if isinstance(each, ast.JoinedStr) else 0) for each in within), default=0)


def breakpoint_name(node: ast.AST) -> ast.Name | None:
    """Return the name in the statement ``breakpoint()``; None for any other node."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) as found, args=[], keywords=[])) if name == BREAKPOINT:
            return found
    return None


def _findings(nodes: Sequence[_Place], stops: frozenset[ast.Name]) -> Iterator[tuple[int, int, Fault]]:
    """Yield every violation of a rule with line, from 1, and byte in it, in no particular order.

    Nodes in ``stops`` are names that are allowed where they stand.
    """
    bound = frozenset(name for node, _, _ in nodes if _binds(node) for name in _identifiers(node))
    for node, inside, _ in nodes:
        for name in _identifiers(node):
            if name.startswith("_"):
                yield from (_placed(node, fault) for fault in _name_faults(name))
        if type(node) not in _PLAIN and node not in stops:
            yield from (_placed(node, fault) for fault in _faults(node, inside, bound))


def _placed(node: ast.AST, fault: Fault) -> tuple[int, int, Fault]:
    return getattr(node, "lineno", 1), getattr(node, "col_offset", 0), fault


def _name_faults(name: str) -> Iterator[Fault]:
    if name.startswith(PREFIX):
        yield Fault("reserved-name", f"{name}: names that begin with {PREFIX} are reserved")
    if name == "__del__":
        yield Fault("finalizer", "__del__ runs at an undefined time")


def _faults(node: ast.AST, inside: _Inside, bound: frozenset[str]) -> Iterator[Fault]:
    match node:
        case ast.Name(id=name):
            if name in REFUSED_NAMES and isinstance(node.ctx, ast.Load) and name not in bound:
                fix = BREAKPOINT_ADVICE if name == BREAKPOINT else ""
                yield Fault("name", f"{name} is not available to actors", fix)
        case ast.Attribute(attr=name):
            if name in REFUSED_ATTRIBUTES:
                yield _attribute_fault(name)
        case ast.Import() | ast.ImportFrom():
            yield from _import_faults(node)
        case ast.Set() | ast.SetComp():
            yield Fault("set", "a set has no defined order; use a dict or cowboy_sdk.ordered_set")
        case ast.MatchClass(kwd_attrs=names):
            yield from (_attribute_fault(name) for name in names if name in _REFUSED_PATTERNS)
        case ast.TryStar():
            yield Fault("except-star", "except* is not available to actors")
        case ast.Return() | ast.Break() | ast.Continue():
            if inside.final and (isinstance(node, ast.Return) or not inside.loop):
                yield Fault("finally", f"{type(node).__name__.lower()} in finally would swallow what ends the frame")
        case _:
            yield from _concurrency_faults(node, inside)


def _attribute_fault(name: str) -> Fault:
    return Fault("attribute", f".{name} leads out of the program or differs between nodes")


def _concurrency_faults(node: ast.AST, inside: _Inside) -> Iterator[Fault]:
    match node:
        case ast.AsyncFunctionDef(name=name, decorator_list=decorators):
            if not any(is_continuation(each) for each in decorators):
                yield Fault("async", f"async def {name}: only a continuation of the SDK is asynchronous")
        case ast.AsyncFor() | ast.AsyncWith() | ast.comprehension(is_async=1):
            yield Fault("async", f"{type(node).__name__}: there is nothing to wait for within a frame")
        case ast.Await() if not inside.async_:
            yield Fault("async", "await outside a continuation")
        case ast.Yield() | ast.YieldFrom() if inside.async_ or inside.lambda_:
            yield Fault("generator", f"yield in {'an async function' if inside.async_ else 'a lambda'}")


def is_continuation(decorator: ast.expr) -> bool:
    """Whether a decorator is the SDK's ``@runner.continuation`` or ``@actor.continuation``, with or without options."""
    match decorator:
        case ast.Attribute(attr="continuation") | ast.Call(func=ast.Attribute(attr="continuation")):
            return True
    return False


def is_sdk(module: str) -> bool:
    """Whether guests share a module and its code is instrumented like theirs."""
    return module.partition(".")[0] == SDK or module in LANE_MODULES


def _import_faults(node: ast.Import | ast.ImportFrom) -> Iterator[Fault]:
    if isinstance(node, ast.ImportFrom) and (node.level or node.module is None):
        yield Fault("import", "a relative import: an actor is one module")
        return
    if isinstance(node, ast.ImportFrom):
        yield from (_attribute_fault(each.name) for each in node.names if each.name in _REFUSED_IMPORTS)
    modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for module in modules:
        root, *rest = module.split(".")
        if module in (HOST, LANE_SDK) or module in ACTOR_MODULES:
            continue
        if root == LANE_PACKAGE:
            yield Fault("import", f"import of {module}: actors can import only {LANE_SDK} of {LANE_PACKAGE}")
        elif root != SDK or any(part.startswith("_") for part in rest):
            yield Fault("import", f"import of {module}, which is not available to actors", _import_advice(root))


def _import_advice(root: str) -> str:
    advice = next((words for words, modules in SUBSTITUTES.items() if root in modules), "")
    return f"{advice}import one of {', '.join((HOST, SDK, LANE_SDK, *ACTOR_MODULES))}"


def _identifiers(node: ast.AST) -> Iterable[str]:
    """Return the names that a node binds, uses or declares."""
    field = _NAMED.get(type(node))
    if field is None:
        return ()
    name = getattr(node, field)
    if isinstance(node, ast.alias):
        name = node.asname or name
    return name if isinstance(name, list) else (name,) if isinstance(name, str) else ()


def _binds(node: ast.AST) -> bool:
    """Whether the names of a node are bound by the program."""
    if isinstance(node, ast.Name):
        return not isinstance(node.ctx, ast.Load)
    return not isinstance(node, ast.keyword | ast.Attribute)


def _check_formatted(source: str) -> None:
    """Refuse formatted strings that only Python 3.12 and later allow."""
    start, middle, end = (getattr(token, f"FSTRING_{part}", None) for part in ("START", "MIDDLE", "END"))
    quotes: list[str] = []
    for each in tokenize.generate_tokens(io.StringIO(source).readline) if start is not None else ():
        if each.type == end:
            quotes.pop()
            continue
        own_text = each.type == middle and len(quotes) == 1
        if quotes and not own_text and _is_modern(each, quotes):
            raise no_python(source, each.start[0], each.start[1] + 1, "this use of an f-string needs a later Python")
        if each.type == start:
            quotes.append(each.string.lstrip("rRfFbBuU"))


def _is_modern(each: tokenize.TokenInfo, quotes: list[str]) -> bool:
    broken = each.type in (token.NL, token.NEWLINE) and any(len(quote) == 1 for quote in quotes)
    reused = any(quote in each.string for quote in quotes)
    return broken or reused or "\\" in each.string or each.type == token.COMMENT
