"""Rewrites operators, subscripts, calls and attributes so that they pay for the sizes of their operands.

What no operand can make expensive stays as it is: comparisons with a small constant, sums of constants.
Decision: D-101.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import Any, Final

from trailboss.metering.names import COMPARISONS, METHODS, OPERATORS, SET_MAKERS, SIZED_TYPES, UNCHECKED

PREFIX: Final = "_vm_"  # what every inserted name begins with
TARGET: Final = PREFIX + "target_now"  # the local that holds the object whose attribute or item is changed in place
KEY: Final = PREFIX + "key_now"  # the local that holds the key of such an item
NOWHERE: Final[dict[str, Any]] = {"lineno": -1, "col_offset": -1, "end_lineno": -1, "end_col_offset": -1}
"""A position that the compiler gives to code without a line of its own."""
_METHODS: Final = """format format_map encode decode substitute safe_substitute __repr__ __str__ __format__ __mod__
    __rmod__ __new__ __call__"""
TEXT_METHODS: Final = frozenset(_METHODS.split())
"""Attributes that make text of values, or bytes of text. Decision: D-90."""
_WATCHED: Final = TEXT_METHODS.union(METHODS)
_OF_ARGUMENTS: Final = ("startswith", "endswith")  # methods whose work the arguments alone bound
_BY_KEY: Final = ("get", "setdefault")  # methods that are called most; their key alone has a price
_FUNCTIONS: Final = "map filter starmap reduce accumulate partial takewhile dropwhile filterfalse groupby iter"
_CALLERS: Final = frozenset(_FUNCTIONS.split())  # functions that call their arguments
_KEYED: Final = {
    "sorted": "key", "min": "key", "max": "key", "sort": "key", "groupby": "key", "dumps": "default",
    "JSONEncoder": "default",
}  # fmt: skip
"""Functions that call an argument of this name."""
_LIGHT_BITS: Final = 128
_LIGHT_CHARACTERS: Final = 64
_TEXTS: Final = "id attr kind module level type_comment simple conversion is_async"
_NO_PARTS: Final = ("ctx", "op", "ops", *_TEXTS.split())
_PARTS: Final = {
    kind: tuple(name for name in kind._fields if name not in _NO_PARTS and kind is not ast.Constant)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""Fields that can hold parts, by kind of node."""
_FOLDED_MAX: Final = 64  # the largest shift or exponent of a sum of constants


def position(node: ast.AST) -> dict[str, Any]:
    """Return a node's position, for another one in its place."""
    return {name: getattr(node, name) for name in NOWHERE}


def instrument_call(name: str, arguments: Sequence[ast.expr | int], node: ast.AST | None) -> ast.Call:
    """Return a call of an instrument, at the position of a node."""
    where = NOWHERE if node is None else position(node)
    given = [ast.Constant(each, **where) if isinstance(each, int) else each for each in arguments]
    return ast.Call(ast.Name(PREFIX + name, ast.Load(), **where), given, [], **where)


def parts(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a node in order, without operators and contexts, as `ast.iter_child_nodes` does with them."""
    within: list[ast.AST] = []
    for name in _PARTS[type(node)]:
        value = getattr(node, name, None)
        if isinstance(value, list):
            within += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST):
            within.append(value)
    return within


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """Return a tree's nodes level by level, without operators and contexts."""
    nodes = [tree]
    for node in nodes:
        nodes += parts(node)
    return nodes


def value_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a program can bind to any value: other than by a plain definition or import."""
    yield from SIZED_TYPES
    for node in nodes_of(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name
            case ast.alias(asname=str(name)):
                yield name
            # A class that extends another may extend a built-in type, and take its arguments.
            case ast.ClassDef(name=name, bases=[_, *_]):
                yield name


def sized(node: ast.expr, values: frozenset[str], *, guarded: bool) -> ast.expr:
    """Return an expression in its priced form; its parts are rewritten already.

    ``values`` are the names of `value_names`; a guarded program must not make a set.
    """
    match node:
        case ast.BinOp(left=left, op=operator, right=right):
            name = OPERATORS.get(type(operator).__name__)
            if name is None or _constant(node) is not None:
                return node
            unchecked = not guarded and name in SET_MAKERS
            return instrument_call(name + UNCHECKED if unchecked else name, [left, right], node)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=operand):
            if not isinstance(operand, ast.Constant):
                node.operand = instrument_call("operand", [operand], operand)
        case ast.Compare():
            return _compared(node)
        case ast.Subscript():
            return _accessed(node)
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in _WATCHED:
            # The SDK gives these methods its own small constants, mostly.
            if guarded or name not in _OF_ARGUMENTS:
                return instrument_call("method" if guarded else "method" + UNCHECKED, [node], node)
        case ast.FormattedValue(value=value, conversion=conversion, format_spec=spec):
            code, given = ast.Constant(conversion, **position(node)), spec or ast.Constant("", **position(node))
            return ast.FormattedValue(instrument_call("field", [value, code, given], node), -1, None, **position(node))
        case ast.Call():
            _called(node, values, guarded=guarded)
        case _:
            _display(node, guarded=guarded)
    return node


def _display(node: ast.expr, *, guarded: bool) -> None:
    """Price the parts of a display that come of others, and its keys."""
    match node:
        case ast.Starred(value=value, ctx=ast.Load()):
            node.value = instrument_call("copied_items", [value], value)
        case ast.Dict(keys=keys, values=entries):
            for place, (key, entry) in enumerate(zip(keys, entries, strict=True)):
                if key is None:
                    entries[place] = instrument_call("entries", [entry], entry)
                elif guarded:
                    keys[place] = _hashed(key)
        case ast.DictComp(key=key) if guarded:
            node.key = _hashed(key)


def sized_statement(node: ast.stmt) -> None:
    """Price the parts of a rewritten statement that are no expressions of their own: targets, what a loop unpacks."""
    match node:
        case ast.Assign(targets=targets, value=value) if any(map(takes_many, targets)):
            node.value = instrument_call("counted", [value], value)
        case ast.For(target=target, iter=source) if takes_many(target):
            node.iter = instrument_call("each_copied", [source], source)
        case ast.Match(subject=subject, cases=cases):
            node.subject = instrument_call("operand", [subject, 1 + len(cases)], subject)


def in_place(node: ast.stmt, *, guarded: bool) -> list[ast.stmt]:
    """Return an assignment such as ``x.count += 1`` as plain ones, which price it; any other statement as it is."""
    if not isinstance(node, ast.AugAssign) or type(node.op).__name__ not in OPERATORS:
        return [node]
    where = position(node)
    name = "i" + OPERATORS[type(node.op).__name__]
    if not guarded and name[1:] in SET_MAKERS:
        name += UNCHECKED
    written: list[ast.stmt] = []
    target: ast.expr = node.target
    now: ast.expr

    def kept(name: str, value: ast.expr) -> ast.Name:
        written.append(ast.Assign([ast.Name(name, ast.Store(), **where)], value, **where))
        return ast.Name(name, ast.Load(), **where)

    match node.target:
        case ast.Name(id=changed):
            now = ast.Name(changed, ast.Load(), **position(node.target))
        case ast.Attribute(value=value, attr=attribute):
            held = kept(TARGET, value)
            now = ast.Attribute(held, attribute, ast.Load(), **where)
            target = ast.Attribute(held, attribute, ast.Store(), **where)
        case ast.Subscript(value=value, slice=key):
            held = kept(TARGET, value)
            place = kept(KEY, key if not isinstance(key, ast.Slice) else instrument_call("slice", _bounds(key), node))
            now = instrument_call("item", [held, place], node)
            target = ast.Subscript(held, place, ast.Store(), **where)
    return [*written, ast.Assign([target], instrument_call(name, [now, node.value], node), **where)]


def _compared(node: ast.Compare) -> ast.expr:
    operands = [node.left, *node.comparators]
    names = [COMPARISONS.get(type(each).__name__) for each in node.ops]
    if len(names) == 1:
        name, light = names[0], _is_light(operands[1])
        if name is None or light or (_is_light(operands[0]) and name not in ("contains", "lacks")):
            return node
        return instrument_call(name, operands, node)
    for place, name in enumerate(names):
        left, right = operands[place], operands[place + 1]
        if name in ("contains", "lacks"):
            right = instrument_call("counted", [right], right)
        if name is not None and not _is_light(left) and not _is_light(right):
            right = instrument_call("operand", [right], right)
        node.comparators[place] = right
    return node


def _accessed(node: ast.Subscript) -> ast.expr:
    key, is_load = node.slice, isinstance(node.ctx, ast.Load)
    if isinstance(key, ast.Slice):
        if is_load:
            return instrument_call("part", [node.value, *_bounds(key)], node)
        node.value = instrument_call("moved", [node.value], node)
    elif not is_load:
        if isinstance(node.ctx, ast.Del):
            node.value = instrument_call("moved", [node.value], node)
        if not _is_light(key):
            node.slice = instrument_call("key", [key], key)
    elif not _is_light(key):
        return instrument_call("item", [node.value, key], node)
    return node


def _bounds(key: ast.Slice) -> list[ast.expr]:
    return [each or ast.Constant(None, **position(key)) for each in (key.lower, key.upper, key.step)]


def _called(node: ast.Call, values: frozenset[str], *, guarded: bool) -> None:
    """Check the called function, and arguments that will be called, if they can be a type. Decision: D-90."""
    for keyword in node.keywords:
        if keyword.arg is None:
            keyword.value = instrument_call("entries", [keyword.value], keyword.value)
    match node:
        case ast.Call(
            func=ast.Call(func=ast.Name(id="_vm_method" | "_vm_method_any"), args=[ast.Attribute(attr=name) as found]),
            args=[key, *_],
        ):
            if name in _BY_KEY and not isinstance(key, ast.Starred):
                node.func, node.args[0] = found, _hashed(key) if guarded else key
                return
            if name in _OF_ARGUMENTS and _is_light(key):
                node.func = found
                return
    called = _name(node.func)
    if called in _CALLERS:
        node.args = [each if isinstance(each, ast.Starred) else _watched_value(each) for each in node.args]
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg == _KEYED.get(str(called)):
            keyword.value = _watched_value(keyword.value)
    # ``type(x)`` makes nothing, ``type(name, bases, names)`` makes a class.
    if called is None or called in values or (called == "type" and len(node.args) + len(node.keywords) != 1):
        node.func = _watched_value(node.func)


def _name(function: ast.expr) -> str | None:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=ast.Name(id="_vm_method" | "_vm_method_any"), args=[ast.Attribute(attr=name)]):
            return name
    return None


def _watched_value(node: ast.expr) -> ast.expr:
    return node if isinstance(node, ast.Lambda | ast.Constant) else instrument_call("callee", [node], node)


def _hashed(key: ast.expr) -> ast.expr:
    return key if _is_light(key) else instrument_call("hashed", [key], key)


def _is_light(node: ast.expr) -> bool:
    """Whether comparing with it, or looking it up, costs next to nothing whatever the other operand is."""
    match node:
        case ast.Constant(value=int(number)):
            return number.bit_length() <= _LIGHT_BITS
        case ast.Constant(value=str(text)) | ast.Constant(value=bytes(text)):
            return len(text) <= _LIGHT_CHARACTERS
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as operand):
            return _is_light(operand)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return len(items) <= _LIGHT_CHARACTERS and all(
                isinstance(each, ast.Constant) and _is_light(each) for each in items
            )
        case ast.JoinedStr():
            return False
    return False


def _constant(node: ast.expr) -> int | None:
    """Return the value of an expression of small constants, which the compiler computes; None for any other."""
    match node:
        case ast.Constant(value=int(number)) if number.bit_length() <= _LIGHT_BITS:
            return int(number)
        case ast.BinOp(left=left, op=operator, right=right):
            first, second = _constant(left), _constant(right)
            if first is None or second is None:
                return None
            match operator:
                case ast.Add() | ast.Sub():
                    made = first + second
                case ast.Mult():
                    made = first * second
                case ast.Pow() if 0 <= second <= _FOLDED_MAX:
                    made = first**second
                case ast.LShift() if 0 <= second <= _FOLDED_MAX:
                    made = first << second
                case _:
                    return None
            return made if made.bit_length() <= _LIGHT_BITS else None
    return None


def takes_many(target: ast.expr) -> bool:
    """Whether an assignment to a target can use up all that an iterable yields."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(map(takes_many, parts))
        case ast.Starred():
            return True
        case ast.Subscript(slice=ast.Slice()):
            return True
    return False
