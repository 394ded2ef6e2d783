"""The hostile programs that the native engine does not end: it charges Python's work, and only part of C's (D-32).

Each reaches the limits of time or memory of a child process, or breaks it. The sandbox ends all of them.
"""

from typing import Final

_GROUPS: Final = {
    "iteration in C is not charged by item": """
        accumulate-endless agent-never-ends-in-c all-of-repeat any-of-zeros combinations-list count-of-range
        counter-endless cycle-in deque-extend-itself dict-fromkeys-range enumerate-endless filter-none-endless
        iter-sentinel map-str-endless max-of-range module-sum permutations-in-c product-repeat range-contains-float
        range-list sum-of-range tee-chain user-length zip-endless zip-strict-lists
    """,
    "integers are not charged by their digits": """
        comb-huge constant-fold-power divmod-huge factorial-huge gcd-chain int-power int-power-tower int-shift
        int-shift-loop int-square-endless isqrt-huge perm-huge pow-modular prod-of-range reduce-multiply str-of-int
    """,
    "Decimal is not charged by its precision": "decimal-exp decimal-power decimal-scale decimal-sqrt",
    "what is made is not charged by its length": """
        b64-doubling bytearray-extend bytearray-size bytes-join bytes-size bytes-times catch-memory-error center-width
        constant-fold-list deque-repeat encode-utf32 expandtabs fill-format float-precision format-spec-nested
        int-bytes join-amplified json-escapes list-doubling list-times list-times-max ljust-width memoryview-cast
        module-state percent-star percent-width product-pools re-sub-amplify replace-empty shake-long slice-assign
        str-concat str-replace-grow str-split str-times str-translate str-zfill struct-pad tuple-concat
    """,
    "what is searched, compared, sorted, hashed or passed is not charged by its length": """
        list-remove-all reversed-index sha3-long sort-adversarial sort-of-lists star-call str-count-overlap
    """,
    "rounds of a key derivation are not charged": "pbkdf2-rounds",
    "visits of containers that share themselves cannot be known before": """
        compare-dag json-nested repr-nested return-dag tuple-hash-dag
    """,
    "keys that collide are visited within a dict": "dict-hash-flood",
    "backtracking of a pattern cannot be known before": """
        re-alternation re-backreference re-dot-star re-lookahead re-nested-plus
    """,
    "iterators within iterators use the stack of C, which nothing checks": "chain-of-chains reduce-zip",
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
