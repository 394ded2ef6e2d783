"""Arguments of host calls: huge, nested, of the program's own classes, of wrong types, beyond every range."""

from tests.hostile.program import HostileProgram, body

CALLS = [
    "call_actor",
    "cancel_timer",
    "charge_gas",
    "create_deferred_tx",
    "delete_state",
    "emit_event",
    "extend_timer",
    "get_state",
    "keccak256",
    "randomness",
    "scan_state_prefix",
    "schedule_timer",
    "schedule_timer_ex",
    "send_message",
    "set_gas_bidding_agent",
    "set_state",
    "set_reserved_state",
    "set_timeout",
    "transfer_balance",
    "verify_signature",
]
EVERY_CALL = f"""
found = {{}}
for name in {CALLS}:
    try:
        getattr(pvm_host, name)(*arguments)
    except Exception as error:
        found[name] = type(error).__name__
return found
"""


def everywhere(name: str, reason: str, arguments: str, classes: str = "") -> HostileProgram:
    """Return a program that gives the same arguments to every host call."""
    return body(name, reason, f"{classes}\narguments = {arguments}{EVERY_CALL}")


OWN_BYTES = """
class Own(bytes):
    def __len__(self):
        while True:
            pass
    __iter__ = __getitem__ = __eq__ = __bytes__ = __buffer__ = __contains__ = hex = startswith = __len__
"""
OWN_INT = """
class Own(int):
    def __index__(self):
        while True:
            pass
    __int__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __bool__ = __abs__ = bit_length = __index__
"""
OWN_TEXT = """
class Own(str):
    def __str__(self):
        while True:
            pass
    encode = __len__ = __eq__ = __iter__ = __getitem__ = __format__ = __repr__ = __str__
"""
SELF = "pvm_host.self_address()"

PROGRAMS = (
    body(
        "address-lengths",
        "addresses of every length",
        """
        found = []
        for length in (0, 1, 19, 21, 32, 10**6):
            try:
                pvm_host.send_message(bytes(length), b"")
            except pvm_host.HostError as error:
                found.append(error.name)
        return found
    """,
    ),
    everywhere("argument-bool", "a bool where a number is asked for", "(True, True)"),
    everywhere(
        "argument-bytes-subclass",
        "bytes of the program's own class, whose methods never end",
        "(Own(b'k'), Own(b'v'))",
        OWN_BYTES,
    ),
    everywhere("argument-class", "classes and functions", "(type, go, object())"),
    everywhere(
        "argument-dag",
        "a list that shares itself: 2**60 items",
        "(dag, dag)",
        """
dag = [b"x"]
for _ in range(60):
    dag = [dag, dag]
""",
    ),
    everywhere(
        "argument-deep",
        "a list nested ten thousand deep",
        "(deep, deep)",
        """
deep = []
for _ in range(10_000):
    deep = [deep]
""",
    ),
    everywhere(
        "argument-dict-subclass",
        "a dict whose methods never end",
        "(Own(a=1), Own())",
        """
class Own(dict):
    def items(self):
        while True:
            pass
    keys = __iter__ = __len__ = __getitem__ = items
""",
    ),
    everywhere("argument-empty", "empty bytes and texts", "(b'', b'')"),
    everywhere("argument-float-nan", "not a number", "(float('nan'), float('inf'), float('-inf'))"),
    everywhere("argument-generator", "an endless generator", "((0 for _ in iter(int, 1)), iter(int, 1))"),
    everywhere("argument-huge-bytes", "ten megabytes", "(b'x' * 10**7, b'y' * 10**7)"),
    everywhere("argument-huge-int", "a number of ten million bits", "(1 << 10**7, -(1 << 10**7))"),
    everywhere(
        "argument-int-subclass",
        "an int of the program's own class, whose methods never end",
        "(Own(500), Own(500))",
        OWN_INT,
    ),
    everywhere("argument-itself", "a list that holds itself", "(own, own)", "own = []\nown.append(own)"),
    everywhere("argument-many", "a hundred thousand arguments", "[b'x'] * 100_000"),
    everywhere(
        "argument-memoryview",
        "views of released, sliced and cast buffers",
        "(released, memoryview(b'abcd')[::-2], memoryview(bytes(8)).cast('Q'))",
        """
released = memoryview(bytearray(b"abc"))
released.release()
""",
    ),
    everywhere("argument-minimum", "numbers just outside each range", "(-1, 2**64, 2**128)"),
    everywhere("argument-none", "nothing", "(None, None)"),
    everywhere(
        "argument-object-with-index",
        "an object that says it is a number",
        "(Own(), Own())",
        """
class Own:
    def __index__(self):
        return 500
    def __bytes__(self):
        return b"x"
    def __buffer__(self, flags):
        return memoryview(b"x")
""",
    ),
    everywhere(
        "argument-property-name",
        "an object whose class has a name that never ends",
        "(Own(), Own())",
        """
class Meta(type):
    @property
    def __name__(cls):
        while True:
            pass
    __qualname__ = __module__ = __name__
    def __instancecheck__(cls, other):
        return True
class Own(metaclass=Meta):
    @property
    def __class__(self):
        return bytes
""",
    ),
    everywhere("argument-str", "texts where bytes are asked for", "('k', 'v')"),
    everywhere(
        "argument-str-subclass",
        "a text of the program's own class, whose methods never end",
        "(Own('k'), Own('v'))",
        OWN_TEXT,
    ),
    everywhere("argument-surrogate", "a text with a lone surrogate", "('\\ud800', '\\udfff')"),
    everywhere(
        "argument-tuple-subclass",
        "a tuple of the program's own class",
        "(Own((1, 2)), Own())",
        """
class Own(tuple):
    def __iter__(self):
        while True:
            pass
    __len__ = __getitem__ = __iter__
""",
    ),
    body(
        "call-as-method",
        "a host call becomes a method of the program's class",
        """
        class A:
            get = pvm_host.get_state
        return A().get(b"k")
    """,
    ),
    body(
        "call-by-callback",
        "host calls made by C: a sort key, map, reduce, a default factory",
        """
        sorted([b"a", b"b"], key=pvm_host.keccak256)
        list(map(pvm_host.get_state, [b"a"] * 100))
        return collections.defaultdict(pvm_host.block_height)["x"]
    """,
        "collections",
    ),
    body(
        "call-in-class-body",
        "a host call in a metaclass, while a class is made",
        """
        class Meta(type):
            def __new__(cls, name, bases, space):
                pvm_host.set_state(b"made", name.encode())
                return super().__new__(cls, name, bases, space)
        class A(metaclass=Meta):
            pass
        return pvm_host.get_state(b"made")
    """,
    ),
    body(
        "call-keyword-names",
        "arguments by names that do not exist, or twice",
        """
        found = []
        for named in ({"site": 1}, {"key": b"a", "value": b"b", "self": 1}, {"call": 1}, {"": 1}, {"a" * 10_000: 1}):
            try:
                pvm_host.set_state(b"k", **named)
            except TypeError as error:
                found.append(str(error)[:80])
        return found
    """,
    ),
    body(
        "call-keyword-subclass",
        "names of arguments of the program's own class of texts",
        """
        class Name(str):
            def __eq__(self, other):
                while True:
                    pass
            def __hash__(self):
                return 5
        return pvm_host.set_state(b"k", **{Name("value"): b"v"})
    """,
    ),
    body(
        "charge-gas-all",
        "the program charges itself all that it has",
        """
        while True:
            pvm_host.charge_gas(pvm_host.gas_left())
    """,
    ),
    body(
        "charge-gas-huge",
        "the program charges itself beyond 64 bits",
        """
        try:
            pvm_host.charge_gas(2**64 - 1)
        except BaseException:
            pvm_host.emit_event("survived", b"")
    """,
    ),
    body(
        "charge-gas-negative",
        "the program gives itself cycles",
        """
        return pvm_host.charge_gas(-10**9)
    """,
    ),
    body(
        "context-changed",
        "the facts of the block, changed by the program",
        """
        facts = pvm_host.context()
        facts["sender"] = b"x" * 20
        return pvm_host.context()["sender"] == facts["sender"]
    """,
    ),
    body(
        "context-types",
        "classes of the process among the answers",
        """
        return sorted({type(each).__name__: 1 for each in pvm_host.context().values()})
    """,
    ),
    body(
        "emit-forever",
        "events without end",
        """
        while True:
            pvm_host.emit_event("e" * 64, b"x" * 4_096)
    """,
    ),
    body(
        "emit-names",
        "names of events that no log can show",
        """
        found = []
        for name in ("", "a" * 10**6, "\\0", "\\n", "\\u202e", "timer.fired"):
            try:
                found.append(pvm_host.emit_event(name, b"")["emit_id"])
            except pvm_host.HostError as error:
                found.append(error.name)
        return found
    """,
    ),
    body(
        "host-error-forged",
        "a refusal of the program's own making",
        """
        error = pvm_host.HostError("x" * 10**6, 1005, "out_of_cycles")
        error.code = -(10**100)
        raise error
    """,
    ),
    body(
        "host-error-refusal",
        "the refusal that is kept with the host's error, replaced",
        """
        try:
            pvm_host.transfer_balance(bytes(20), -1)
        except pvm_host.HostError as error:
            for name in list(error.__dict__):
                error.__dict__[name] = "forged"
            raise
    """,
    ),
    body(
        "host-error-refusal-match",
        "the same by a class pattern",
        """
        try:
            pvm_host.transfer_balance(bytes(20), -1)
        except pvm_host.HostError as error:
            match error:
                case object(__dict__=names):
                    for name in list(names):
                        names[name] = "forged"
            raise
    """,
    ),
    body(
        "host-error-subclass",
        "a class below the host's error, with a class for a name",
        """
        class Forged(pvm_host.HostError):
            name = code = property(lambda self: [1 for _ in iter(int, 1)])
        raise Forged()
    """,
    ),
    body(
        "keccak-long",
        "a digest of ten megabytes",
        """
        return pvm_host.keccak256(bytes(10**7))
    """,
    ),
    body(
        "print-forever",
        "printed text without end",
        """
        while True:
            print("x" * 10_000)
    """,
    ),
    body(
        "print-own-objects",
        "printed objects whose texts print",
        """
        class Loud:
            def __str__(self):
                print(self)
                return "x"
        print(Loud(), sep=Loud(), end=b"")
    """,
    ),
    body(
        "return-dag",
        "an answer of 2**60 items",
        """
        answer = [1]
        for _ in range(60):
            answer = [answer, answer]
        return answer
    """,
    ),
    body(
        "return-deep",
        "an answer nested ten thousand deep",
        """
        answer = []
        for _ in range(10_000):
            answer = [answer]
        return answer
    """,
    ),
    body(
        "return-huge-int",
        "an answer of ten million bits",
        """
        return 1 << 10**7
    """,
    ),
    body(
        "return-itself",
        "an answer that holds itself",
        """
        answer = []
        answer.append(answer)
        return answer
    """,
    ),
    body(
        "return-keys",
        "an answer whose keys are of all kinds",
        """
        return {1: 1, "1": 1, b"1": 1, (1, 2): 1, None: 1, 1.5: 1, True: 2}
    """,
    ),
    body(
        "return-long",
        "an answer of ten megabytes",
        """
        return b"x" * 10**7
    """,
    ),
    body(
        "return-memoryview",
        "an answer that is a view of a foreign shape",
        """
        return memoryview(bytes(64)).cast("Q", [2, 4])
    """,
    ),
    body(
        "return-nan",
        "an answer of floats that are no numbers",
        """
        return [float("nan"), float("inf"), -0.0]
    """,
    ),
    body(
        "return-object",
        "an answer that is an object",
        """
        return go
    """,
    ),
    body(
        "return-released-view",
        "an answer that is a released view",
        """
        view = memoryview(b"abc")
        view.release()
        return view
    """,
    ),
    body(
        "return-subclass",
        "an answer whose class overrides all that an encoder uses",
        """
        class Own(list):
            def __iter__(self):
                while True:
                    pass
            __len__ = __getitem__ = __iter__
        return Own([1, 2])
    """,
    ),
    body(
        "return-surrogate",
        "an answer with a lone surrogate",
        """
        return "\\ud800"
    """,
    ),
    body(
        "scan-limits",
        "scans with all limits",
        """
        found = []
        for limit in (0, 1, 10**6, 2**64 - 1, -1, 2**64):
            try:
                found.append(len(pvm_host.scan_state_prefix(b"", limit)))
            except pvm_host.HostError as error:
                found.append(error.name)
        return found
    """,
    ),
    body(
        "signature-garbage",
        "signatures of garbage",
        """
        return [pvm_host.verify_signature(2, bytes([n]) * 32, b"m" * 10**5, bytes([n]) * 64) for n in range(20)]
    """,
    ),
    body(
        "slot-reserved",
        "the slots that only the SDK may write",
        """
        found = []
        for key in (b"__INITIALIZED__", b"cowboy.offchain.image.v1", bytearray(b"__INITIALIZED__")):
            try:
                pvm_host.set_state(key, b"x")
            except ValueError as error:
                found.append(str(error))
        return found
    """,
    ),
    body(
        "slots-many",
        "slots without end",
        """
        n = 0
        while True:
            n += 1
            pvm_host.set_state(b"%d" % n, b"")
    """,
    ),
    body(
        "timer-heights",
        "timers at all heights",
        """
        found = []
        for height in (-1, 0, 1, 100, 101, 2**63, 2**64 - 1, 2**64):
            try:
                found.append(len(pvm_host.schedule_timer(height, b"")))
            except pvm_host.HostError as error:
                found.append(error.name)
        return found
    """,
    ),
    body(
        "timers-many",
        "timers without end",
        """
        while True:
            pvm_host.schedule_timer(pvm_host.block_height() + 1, b"x" * 1_000)
    """,
    ),
    body(
        "transfer-amounts",
        "payments of all amounts",
        """
        found = []
        for amount in (-1, 0, 2**128 - 1, 2**128, 10**100):
            try:
                found.append(pvm_host.transfer_balance(bytes(20), amount))
            except pvm_host.HostError as error:
                found.append(error.name)
        return found
    """,
    ),
    body(
        "unsupported-calls",
        "calls that exist and refuse",
        """
        found = []
        for name in ("fork_actor", "submit_job", "token_mint", "update_bid", "intent_deposit"):
            try:
                getattr(pvm_host, name)(go, go=go)
            except pvm_host.HostError as error:
                found.append(error.name)
        return found
    """,
    ),
)
