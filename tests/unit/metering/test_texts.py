"""No text that a program can see holds an address of memory, however the text is made. Decision: D-90."""

import pytest

from trailboss.vm.rules import check_program

MADE = """
import functools, hashlib, hmac, itertools, json, operator, re, string, struct
from abc import ABC
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")
Pair = namedtuple("Pair", "a b")


def f():
    yield


class Plain:
    @property
    def p(self):
        return 1

    def m(self):
        return 1


class Abstract(ABC):
    pass


class Generical(Generic[T]):
    pass


class Failure(Exception):
    pass


class Text(str):
    pass


class Own:
    def __repr__(self):
        return f"Own({f})"


class Converting:
    convert = str

    def __init__(self):
        self.other = repr


class Level(Enum):
    LOW = 1


@dataclass
class Data:
    value: object


def dynamic(kind, value):
    return kind(value)


def message(function):
    try:
        function()
    except Exception as error:
        return error.args[0]


def handled(function):
    try:
        function()
    except Exception as error:
        return str(error) + repr(error) + f"{error}"


def in_place(text, value):
    text %= value
    return text


PLAIN_CLASS = type("Made", (), {})
THINGS = [
    f, lambda: 1, Plain().m, Plain.p, f(), object(), Abstract(), Generical(), PLAIN_CLASS(), Plain(), [].append,
    (1).__add__, iter([]), iter({}), map(f, []), filter(None, []), zip(), enumerate([]), reversed([]), iter(range(3)),
    memoryview(b""), itertools.chain(), functools.partial(f, 1), functools.lru_cache(f), staticmethod(f),
    classmethod(f),
    hashlib.sha256(), hashlib.blake2b(), hmac.new(b"k", digestmod="sha256"), struct.Struct("I"), re.finditer("a", "a"),
    re.compile("a").scanner("a"), super(Plain, Plain()), property(f), (i for i in []), Own(), Data(f), Pair(f, 1), [f],
    (f,), {"k": f}, {f: 1}, deque([f]), OrderedDict(a=f), ValueError(f), Failure([f]), field(default=f),
    json.JSONEncoder(), json.dumps, print, getattr, repr, pvm_host.get_state, string.Template("$x"), Level, Text,
    str.join, Plain().m.__call__,
]
"""
WAYS = [
    "str(x)",
    "str(object=x)",
    "repr(x)",
    "ascii(x)",
    "format(x)",
    "f'{x}'",
    "f'{x!r}'",
    "f'{x!s:>5}'",
    "f'{x!a}'",
    "f'{x=}'",
    "'%s' % (x,)",
    "'%r' % (x,)",
    "'%(k)s' % {'k': x}",
    "(b'%a' % (x,)).decode()",
    "(bytearray(b'%a') % (x,)).decode()",
    "in_place('%s', (x,))",
    "'{}'.format(x)",
    "'{0!r}'.format(x)",
    "'{k}'.format(k=x)",
    "str.format('{}', x)",
    "'{k}'.format_map({'k': x})",
    "'%s'.__mod__((x,))",
    "operator.mod('%s', (x,))",
    "operator.methodcaller('format', x)('{}')",
    "string.Template('$k').substitute(k=x)",
    "string.Template('$k').safe_substitute({'k': x})",
    "x.__repr__() if not isinstance(x, type) else ''",
    "x.__str__() if not isinstance(x, type) else ''",
    "getattr(x, '__repr__')() if not isinstance(x, type) else ''",
    "object.__repr__(x)",
    "object.__str__(x)",
    "object.__format__(x, '')",
    "str([x])",
    "str({'k': (x,)})",
    "str(ValueError(x))",
    "repr(Failure(x, [x]))",
    "repr(Data(x))",
    "Data(x).__repr__()",
    "Pair(x, x).__repr__()",
    "''.join(map(str, [x]))",
    "''.join(map(repr, [x]))",
    "''.join(str(each) for each in [x])",
    "sorted([x, 'a'], key=str)[0] is None or ''",
    "''.join(each for each in itertools.starmap(str, [(x,)]))",
    "functools.partial(str, x)()",
    "functools.reduce(lambda y, kind: kind(y), [str], x)",
    "'%60s|%-60r' % (x, x)",
    "'%s' % x if type(x) not in (tuple, dict, Pair) else ''",
    "'%s %d' % ({x if callable(x) else 1: [x]}, 5)",
    "'{:>{}}|{!r:>60}'.format(str(x), 60, x)",
    "'{k[0].real}{k[1]!r:>60}'.format_map({'k': (1, x)})",
    "json.dumps([x], default=str) if callable(x) else ''",
    "json.dumps([x], default=lambda y: y.__repr__()) if callable(x) and not isinstance(x, type) else ''",
    "dynamic(str, x)",
    "dynamic(type(''), x)",
    "(lambda kind: kind(x))(str)",
    "[kind(x) for kind in (str,)][0]",
    "{'s': str}['s'](x)",
    "Converting.convert(x)",
    "Converting().other(x)",
    "str.__call__(x)",
    "str.__new__(str, x)",
    "Text(x)[0:]",
    "Text(x).upper().lower()",
    "str(Text(x))",
    "message(lambda: [].index(x))",
    "message(lambda: Level(x)) if not isinstance(x, (type, dict, list)) else ''",
    "handled(lambda: {}[x]) if callable(x) else ''",
    "handled(lambda: deque().remove(x))",
    "handled(lambda: int(x))",
]


@pytest.mark.parametrize("way", WAYS)
def test_text_has_no_address_however_it_is_made(world, way):
    """Of functions, methods, objects, iterators and all else that Python shows by its place in memory."""
    go = "def go(p):\n    return [str.encode(make(x))[:300] for x in THINGS]"
    source = f"{MADE}\n\n{go}\n\n\ndef make(x):\n    return {way}\n"
    check_program(source, 10**6)
    outcome, _ = world.call(source, "go")

    assert outcome.error is None, outcome.error
    assert b"0x" not in outcome.return_value, outcome.return_value
    assert world.call(source, "go")[0] == outcome


EXACT = [
    ("str(f)", "<function f>"),
    ("repr(Plain().m)", "<bound method Plain.m of <Plain object>>"),
    ("f'{[].append!r:>50}'", "           <built-in method append of list object>"),
    ("'%15s|%-15r|' % (f, f)", "   <function f>|<function f>   |"),
    ("'{!r:>15}|{:<15}|'.format(f, str(f))", "   <function f>|<function f>   |"),
    ("str(Abstract())", "<actor.Abstract object>"),
    ("'%s|%s' % (f(), Plain.p)", "<generator object f>|<property object>"),
    ("str(hashlib.blake2b())", "<_blake2.blake2b object>"),
    ("str(Text(f))", "<function f>"),
    ("json.dumps({'f': f}, default=str)", '{"f": "<function f>"}'),
]


@pytest.mark.parametrize(("expression", "text"), EXACT)
def test_text_is_pythons_own_but_for_the_address(world, expression, text):
    """So another engine of the same rule shows the same."""
    outcome, _ = world.call(f"{MADE}\n\ndef go(p):\n    return {expression}\n", "go")

    assert outcome.return_value.decode() == text


KEPT = [
    "'<x at 0x7f>'",
    "str('<x at 0x7f>')",
    "f'<x at 0x{127:x}>'",
    "'<x at %s>' % '0x7f'",
    "'<x at 0x{:x}>'.format(127)",
    "str(['<x at 0x7f>'])[2:-2]",
    "'%s' % ('<x at 0x7f>',)",
    "b'<x at 0x7f>'.decode()",
    "json.loads(json.dumps('<x at 0x7f>'))",
    "json.JSONDecoder().decode('\"<x at 0x7f>\"')",
    "string.Template('<x at $k>').substitute(k='0x7f')",
    "'-'.join(map(str, ['<x at 0x7f>']))",
]


@pytest.mark.parametrize("expression", KEPT)
def test_text_of_plain_values_is_kept_whatever_stands_in_it(world, expression):
    """Only what Python says of an object is changed, never what a program or its user writes."""
    outcome, _ = world.call(f"{MADE}\n\ndef go(p):\n    return {expression}\n", "go")

    assert outcome.return_value == b"<x at 0x7f>"


SAME = [
    "isinstance('', str) and type('') is str and issubclass(Text, str) and str in (str, int)",
    "str() == '' and str(b'a', 'ascii') == 'a' and bytes('a', 'utf-8') == b'a' and bytes(2) == bytearray(2)",
    "Text() == '' and Text('a') == 'a' and Text(b'a', 'ascii') == 'a' and type(Text('a')) is Text",
    "7 % 4 == 3 and in_place(7, 4) == 3 and '%d' % 5 == '5' and 'a%%' % () == 'a%'",
    "f'{1.5:.2f} {\"a\":>{3}} {5!r}' == '1.50   a 5' and f'{Level.LOW}' == 'Level.LOW'",
    "[str(n) for n in range(2)] == list(map(str, range(2))) == ['0', '1']",
    "sorted([10, 9], key=str) == [10, 9] and max(['b', 'a']) == 'b' and max([1, 2], key=lambda n: -n) == 1",
    "'a'.encode() == b'a' and 'é'.encode('UTF-8', 'strict')[0] == 195 and b'a'.decode(encoding='latin-1') == 'a'",
    "dynamic(int, '5') == 5 and dynamic(str, 5) == '5' and Converting.convert(5) == '5'",
]


@pytest.mark.parametrize("expression", SAME)
def test_text_is_made_as_ever_of_what_has_no_address(world, expression):
    """Types stay types, numbers numbers."""
    outcome, _ = world.call(f"{MADE}\n\ndef go(p):\n    return {expression}\n", "go")

    assert (outcome.error, outcome.return_value) == (None, b"\xf5")


CODECS = [
    "'a'.encode('zip')",
    "'é'.encode('idna')",
    "b'a'.decode('ZLIB_codec')",
    "str(b'a', 'idna')",
    "bytes('a', 'punycode')",
    "bytearray('a', encoding='cp1252')",
    "str.encode('a', 'rot13')",
    "bytes.decode(b'a', 'idna')",
    "getattr('a', 'encode')('idna')",
    "operator.methodcaller('encode', 'idna')('a')",
    "''.join(map(str, [b'a'], ['idna']))",
    "'é'.encode('ascii', 'namereplace')",
]


@pytest.mark.parametrize("expression", CODECS)
def test_codec_is_refused_when_not_every_build_has_it(world, expression):
    """Whether it is there, and what it says, depends on how Python was built."""
    outcome, _ = world.call(f"{MADE}\n\ndef go(p):\n    return {expression}\n", "go")

    assert outcome.error.context["exception_type"] == "LookupError"
    assert "is not available to actors" in outcome.error.what


@pytest.mark.parametrize(
    "name", ["utf-8", "UTF8", "utf-16-le", "utf_32", "ascii", "latin-1", "unicode_escape", "utf-8-sig"]
)
def test_codec_is_there_when_every_build_has_it(world, name):
    """Those that Python has built in."""
    outcome, _ = world.call(f"def go(p):\n    return 'a'.encode({name!r}).decode({name!r})\n", "go")

    assert outcome.return_value == b"a"
