"""Every change of a container that a module leads to is found."""

import pytest

from trailboss.vm.container_content import find_content

SOURCE = """
ITEMS = [1, [2]]
EMPTY = []
TABLE = {"a": 1}
BYTES = bytearray(b"1")
PAIR = ({}, 1)
MEMBERS = {1, 2}
class Plain:
    kinds = []
    n: int = 1
    @property
    def two(self):
        return 2
    @staticmethod
    def three(cell=PAIR):
        return 3
def made():
    held = []
    def inner(more: int = 1, *, last={}):
        held.append(more)
    return inner
inner = made()
"""
CHANGES = {
    "name": "NEW = 1",
    "name bound to another value": "ITEMS = [1, [2]]",
    "name that is gone": "del ITEMS",
    "item": "ITEMS[0] = 2",
    "item that is equal": "ITEMS[0] = True",
    "items exchanged": "ITEMS.reverse()",
    "item within": "ITEMS[1].append(1)",
    "first item": "EMPTY.append(1)",
    "byte": "BYTES[0] = 0",
    "member": "MEMBERS.add(3)",
    "key": "TABLE['b'] = TABLE.pop('a')",
    "dict in a tuple": "PAIR[0]['a'] = 1",
    "list of a class": "Plain.kinds.append(1)",
    "attribute of a class": "Plain.m = 1",
    "value of an attribute": "Plain.n = 2",
    "annotation of a class": "Plain.__annotations__['n'] = str",
    "function of a property": "Plain.two.fget.m = 1",
    "attribute of a static method": "vars(Plain)['three'].m = 1",
    "default of a static method": "Plain.three.__defaults__[0][0]['a'] = 1",
    "attribute of a function": "made.m = 1",
    "default by keyword": "inner.__kwdefaults__['last'] = 2",
    "default that is changed": "inner.__kwdefaults__['last']['a'] = 2",
    "closure": "inner()",
}


@pytest.mark.parametrize("name", CHANGES)
def test_change_is_found(name):
    """Whatever is set, added, removed, or exchanged, by a program or for it."""
    space = {"__name__": "actor"}
    exec(SOURCE, space)
    content = find_content(space, {id(space["__builtins__"])})
    assert content.is_first()
    exec(CHANGES[name], space)

    assert not content.is_first()


@pytest.mark.parametrize(
    "source",
    [
        "import sys",
        "x = iter([])",
        "x = [].append",
        "x = type('M', (type,), {})('C', (), {})",
        "x = type('M', (type,), {'__eq__': lambda a, b: True, '__hash__': lambda a: 1})('C', (), {})()",
        "x = object()",
        "import hashlib; x = hashlib.sha256(); del hashlib",
        "def many(): yield 1\nx = many()",
    ],
)
def test_what_can_hold_something_else_is_not_compared(source):
    """A module is not kept for an object whose content cannot be listed without its own code."""
    space = {}
    exec(source, space)

    assert find_content(space, {id(space["__builtins__"])}) is None
