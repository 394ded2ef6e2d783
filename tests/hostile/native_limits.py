"""The hostile programs that the native engine does not end: it charges C's work by sizes alone (D-101).

Each reaches the limits of time or memory of a child process, or breaks it. The sandbox ends all of them.
"""

from typing import Final

_GROUPS: Final = {
    "keys that collide are visited within a dict": "dict-hash-flood",
    "backtracking of a pattern cannot be known before": """
        re-alternation re-backreference re-dot-star re-lookahead re-nested-plus
    """,
    "text that the library evaluates is not instrumented": "singledispatch-endless",
}
NATIVE_LIMITS: Final = {name: reason for reason, names in _GROUPS.items() for name in names.split()}
"""Why the native engine does not end a program, by its name."""

_DOORS: Final = {
    "the format language of str reads attributes": """
        format-attribute format-attribute-chain format-host-error format-host-function format-map-attribute
    """,
    "a class pattern reads by position what __match_args__ names, and methods that are checked elsewhere": """
        match-format match-positional
    """,
    "functools.update_wrapper and wraps read attributes by name": """
        update-wrapper-code update-wrapper-dict update-wrapper-engine update-wrapper-kill wraps-closure
    """,
    "the library evaluates text that is an annotation": "forward-reference sdk-inspect singledispatch-annotation",
    "abstract classes keep registrations, and write them with addresses": """
        abc-dump-registry abc-register-mapping abc-register-shared
    """,
    "the library makes text or hashes of values, unseen": "address-by-user-string hash-by-abc-set",
    "a finalizer is given to a class by name": "del-by-name",
}
NATIVE_ESCAPES: Final = {name: door for door, names in _DOORS.items() for name in names.split()}
"""The hostile programs that reach, on the native engine, what the rules mean to keep from them, by name."""
MARKED: Final = frozenset({"abc-register-mapping", "abc-register-shared", "deque-repeat", "update-wrapper-dict"})
"""Those after which a process is not what it was: nothing else may run in it."""
VARYING: Final = frozenset(
    {"abc-dump-registry", "address-by-user-string", "format-host-error", "hash-by-abc-set", "match-format"}
)
"""Those that differ between two processes."""
