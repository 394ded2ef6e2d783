"""Agents and views, which must not write, and calls between actors."""

from textwrap import dedent

from tests.hostile.program import HostileProgram, body, module

BID = '{"max_fee_per_cycle": 10**6, "max_priority_fee_per_cycle": 1}'
CALL = "pvm_host.call_actor"
FIRST, SECOND = "bytes([1]) * 20", "bytes([2]) * 20"


def view(name: str, reason: str, lines: str, imports: str = "") -> HostileProgram:
    """Return a program that runs in a read-only frame."""
    return body(name, reason, lines, imports, read_only=True)


def caller(name: str, reason: str, lines: str, *others: str, read_only: bool = False) -> HostileProgram:
    """Return a program that calls other actors, given by their sources."""
    return body(name, reason, lines, others=tuple(dedent(each).lstrip("\n") for each in others), read_only=read_only)


PROGRAMS = (
    view(
        "agent-adds-field",
        "a bid with one field more",
        """
        return {"max_fee_per_cycle": 1, "max_priority_fee_per_cycle": 1, "extra": 1}
    """,
    ),
    view(
        "agent-answers-deep",
        "a bid nested deeper than any decoder may go",
        """
        bid = 1
        for _ in range(10_000):
            bid = [bid]
        return bid
    """,
    ),
    view(
        "agent-answers-dict-subclass",
        "a bid in a dict whose methods never end",
        """
        class Bid(dict):
            def items(self):
                while True:
                    pass
            keys = __iter__ = __len__ = __getitem__ = items
        return Bid(max_fee_per_cycle=1, max_priority_fee_per_cycle=1)
    """,
    ),
    view(
        "agent-answers-float",
        "a bid of floats, one of them infinite",
        """
        return {"max_fee_per_cycle": float("inf"), "max_priority_fee_per_cycle": 0.5}
    """,
    ),
    view(
        "agent-answers-garbage",
        "a bid of bytes that are no encoding",
        """
        return b"\\xbf\\xff\\x9f" * 100
    """,
    ),
    view(
        "agent-answers-huge",
        "a bid of a million bits",
        """
        return {"max_fee_per_cycle": 1 << 10**6, "max_priority_fee_per_cycle": 0}
    """,
    ),
    view(
        "agent-answers-itself",
        "a bid that holds itself",
        """
        bid = {}
        bid["max_fee_per_cycle"] = bid
        return bid
    """,
    ),
    view(
        "agent-answers-long",
        "a bid of ten megabytes",
        """
        return b"x" * 10**7
    """,
    ),
    view(
        "agent-answers-negative",
        "a bid below nothing",
        """
        return {"max_fee_per_cycle": -1, "max_priority_fee_per_cycle": -(2**64)}
    """,
    ),
    view(
        "agent-answers-subclass",
        "a bid of numbers of the program's own class",
        """
        class Number(int):
            def __index__(self):
                while True:
                    pass
            __int__ = __eq__ = __lt__ = __add__ = __index__
        return {"max_fee_per_cycle": Number(5), "max_priority_fee_per_cycle": Number(1)}
    """,
    ),
    view(
        "agent-bids-by-calls",
        "an agent that asks itself for its bid",
        """
        return pvm_host.call_actor(pvm_host.self_address(), "go", payload, 10**9)
    """,
    ),
    view(
        "agent-never-ends",
        "an agent that never answers",
        """
        while True:
            pass
    """,
    ),
    view(
        "agent-never-ends-in-c",
        "an agent that never answers, in C",
        """
        return sum(range(10**12))
    """,
    ),
    view(
        "agent-swallows-refusals",
        "an agent that tries to write in an endless loop",
        f"""
        while True:
            try:
                pvm_host.set_state(b"a", b"b")
            except Exception:
                pass
        return {BID}
    """,
    ),
    caller(
        "call-depth",
        "calls to the depth that the chain allows, and one more",
        f"""
        depth = int(payload or b"0")
        try:
            return {CALL}(pvm_host.self_address(), "go", b"%d" % (depth + 1), 10**9)
        except pvm_host.HostError as error:
            return b"%d " % depth + str(error).encode()[:30]
    """,
    ),
    caller(
        "call-depth-and-recursion",
        "calls between actors, each at the bottom of 250 calls of its own",
        f"""
        def deep(n):
            if n:
                return deep(n - 1)
            return {CALL}(pvm_host.self_address(), "go", b"", 10**9)
        return deep(250)
    """,
    ),
    caller(
        "call-exhausts-callee",
        "the callee uses all that it was given",
        f"""
        for _ in range(100):
            try:
                {CALL}({FIRST}, "go", b"", 10_000)
            except pvm_host.HostError:
                pass
        return 1
    """,
        "def go(payload):\n    while True:\n        pass\n",
    ),
    caller(
        "call-limit-huge",
        "a limit of cycles beyond 64 bits",
        f"""
        return {CALL}({FIRST}, "go", b"", 2**64)
    """,
        "def go(payload):\n    return 1\n",
    ),
    caller(
        "call-limit-negative",
        "a negative limit of cycles",
        f"""
        return {CALL}({FIRST}, "go", b"", -1)
    """,
        "def go(payload):\n    return 1\n",
    ),
    caller(
        "call-loop",
        "two actors that call one another in a loop",
        f"""
        return {CALL}({FIRST}, "go", b"", 10**9)
    """,
        f"def go(payload):\n    return {CALL}(bytes([0x22]) * 20, 'go', b'', 10**9)\n",
    ),
    caller(
        "call-missing",
        "calls of an actor that does not exist, without end",
        f"""
        while True:
            try:
                {CALL}(bytes(20), "go", b"", 1)
            except pvm_host.HostError:
                pass
    """,
    ),
    caller(
        "call-private-handler",
        "calls of handlers that are no handlers",
        f"""
        found = []
        for name in ("__init__", "go.__globals__", "", "a" * 10_000, "pvm_host", "_vm_charge", "lambda"):
            try:
                found.append({CALL}({FIRST}, name, b"", 10_000))
            except pvm_host.HostError as error:
                found.append(error.name)
        return found
    """,
        "import json\n\nx = 5\n\n\ndef go(payload):\n    return 1\n",
    ),
    caller(
        "call-quiet-callee",
        "the callee catches what ends it",
        f"""
        return {CALL}({FIRST}, "go", b"", 100_000)
    """,
        """
        def go(payload):
            try:
                while True:
                    pass
            except BaseException:
                pvm_host.emit_event("survived", b"")
            return b"quiet"
    """,
    ),
    caller(
        "call-read-only-escape",
        "a callee of a view that writes",
        f"""
        return {CALL}({FIRST}, "go", b"", 100_000)
    """,
        "def go(payload):\n    pvm_host.set_state(b'a', b'b')\n    return 1\n",
        read_only=True,
    ),
    caller(
        "call-reentrant-state",
        "a callee comes back while the caller holds a value of its own state",
        f"""
        if payload == b"back":
            pvm_host.set_state(b"balance", b"0")
            return 1
        held = pvm_host.get_state(b"balance") or b"100"
        {CALL}({FIRST}, "go", b"", 200_000)
        pvm_host.set_state(b"balance", held)
        return pvm_host.get_state(b"balance")
    """,
        f"def go(payload):\n    return {CALL}(bytes([0x22]) * 20, 'go', b'back', 100_000)\n",
    ),
    caller(
        "call-three",
        "three actors in a ring, each with the next one's cycles",
        f"""
        return {CALL}({FIRST}, "go", b"", 10**9)
    """,
        f"def go(payload):\n    return {CALL}({SECOND}, 'go', b'', 10**9)\n",
        f"def go(payload):\n    return {CALL}(bytes([0x22]) * 20, 'go', b'', 10**9)\n",
    ),
    caller(
        "call-wide",
        "a tree of calls, three from each",
        f"""
        depth = len(payload)
        for _ in range(3):
            {CALL}(pvm_host.self_address(), "go", payload + b"x", 10**9)
        return depth
    """,
    ),
    caller(
        "callee-fails-loudly",
        "a callee whose error message never ends",
        f"""
        return {CALL}({FIRST}, "go", b"", 100_000)
    """,
        """
        class Loud(Exception):
            def __str__(self):
                while True:
                    pass


        def go(payload):
            raise Loud
    """,
    ),
    caller(
        "callee-module-spins",
        "a callee whose module never ends",
        f"""
        try:
            return {CALL}({FIRST}, "go", b"", 100_000)
        except pvm_host.HostError as error:
            return error.code
    """,
        "while True:\n    pass\n\n\ndef go(payload):\n    return 1\n",
    ),
    caller(
        "callee-returns-object",
        "a callee whose answer has no encoding",
        f"""
        return {CALL}({FIRST}, "go", b"", 100_000)
    """,
        "def go(payload):\n    return go\n",
    ),
    module(
        "handler-by-attribute",
        "a handler that a class makes when it is asked",
        """
        class Actor:
            def __getattr__(self, name):
                return lambda payload: name

            def go(self, payload):
                return self.anything(payload)
    """,
    ),
    module(
        "handler-class-new",
        "a class whose __new__ answers with a host module",
        """
        class Actor:
            def __new__(cls):
                return pvm_host

            def go(self, payload):
                return 1
    """,
    ),
    module(
        "handler-deleted",
        "a handler that deletes itself when the module runs",
        """
        def go(payload):
            return 1


        del go
    """,
    ),
    module(
        "handler-replaced",
        "a handler that is a host call when the module has run",
        """
        def go(payload):
            return 1


        go = pvm_host.get_state
    """,
    ),
    module(
        "handler-replaced-by-type",
        "a handler that is a class of the interpreter",
        """
        def go(payload):
            return 1


        go = type
    """,
    ),
    view(
        "view-cancels-timer",
        "a view that cancels a timer",
        """
        return pvm_host.cancel_timer(bytes(32))
    """,
    ),
    view(
        "view-deletes",
        "a view that deletes",
        """
        return pvm_host.delete_state(b"a")
    """,
    ),
    view(
        "view-emits",
        "a view that emits an event",
        """
        return pvm_host.emit_event("e", b"")
    """,
    ),
    view(
        "view-schedules",
        "a view that schedules a timer",
        """
        return pvm_host.schedule_timer(pvm_host.block_height() + 1, b"")
    """,
    ),
    view(
        "view-sends",
        "a view that sends a message",
        """
        return pvm_host.send_message(bytes(20), b"x")
    """,
    ),
    view(
        "view-sets-agent",
        "a view that sets an agent",
        """
        return pvm_host.set_gas_bidding_agent(bytes(20))
    """,
    ),
    view(
        "view-transfers",
        "a view that pays",
        """
        return pvm_host.transfer_balance(bytes(20), 1)
    """,
    ),
    view(
        "view-writes",
        "a view that writes",
        """
        return pvm_host.set_state(b"a", b"b")
    """,
    ),
    view(
        "view-writes-by-callee",
        "a view whose callee writes",
        """
        if payload == b"x":
            return pvm_host.set_state(b"a", b"b")
        return pvm_host.call_actor(pvm_host.self_address(), "go", b"x", 100_000)
    """,
    ),
    view(
        "view-writes-by-sdk",
        "a view that writes through the SDK",
        """
        return runtime.set_state(b"a", b"b")
    """,
        "cowboy_sdk.runtime as runtime",
    ),
)
