"""The public SDK's own doors: models, codecs, storage, timers, continuations, helpers that keep state."""

from tests.hostile.program import body, module

DEEP = """
        deep = []
        for _ in range(20_000):
            deep = [deep]
"""
DAG = """
        dag = [1]
        for _ in range(60):
            dag = [dag, dag]
"""

PROGRAMS = (
    body(
        "address-garbage",
        "addresses of all forms",
        """
        found = []
        for value in ("0x", "0x" + "g" * 40, "0x" + "0" * 10**5, b"", bytes(21), 5, None, [0] * 20):
            try:
                found.append(str(cowboy_sdk.Address(value)))
            except Exception as error:
                found.append(type(error).__name__)
        return found
    """,
        "cowboy_sdk",
    ),
    body(
        "bounded-loop-forged",
        "the bound of a loop is an object that never ends",
        """
        class Bound(int):
            def __gt__(self, other):
                return True
            __ge__ = __lt__ = __le__ = __gt__
        for _ in cowboy_sdk.BoundedRange(Bound(5)):
            pass
        return 1
    """,
        "cowboy_sdk",
    ),
    body(
        "capture-anything",
        "a capture of what cannot be kept",
        """
        ctx = cowboy_sdk.capture()
        ctx.a = go
        return repr(ctx)
    """,
        "cowboy_sdk",
    ),
    body(
        "codec-bignum",
        "a number of a megabit is encoded",
        """
        return len(codec.encode(1 << 10**6))
    """,
        "cowboy_sdk.codec as codec",
    ),
    body(
        "codec-dag",
        "an encoding of 2**60 items",
        DAG
        + """
        return codec.encode(dag)
    """,
        "cowboy_sdk.codec as codec",
    ),
    body(
        "codec-decode-all-bytes",
        "each byte, decoded",
        """
        found = []
        for n in range(256):
            try:
                codec.decode(bytes([n]))
            except Exception as error:
                found.append(type(error).__name__)
        return len(found)
    """,
        "cowboy_sdk.codec as codec",
    ),
    body(
        "codec-decode-deep",
        "a text of lists within lists",
        """
        return codec.decode(b"\\x81" * 100_000 + b"\\x00")
    """,
        "cowboy_sdk.codec as codec",
    ),
    body(
        "codec-decode-length",
        "lengths beyond the text and beyond memory",
        """
        found = []
        for head in (b"\\x5b", b"\\x7b", b"\\x9b", b"\\xbb"):
            try:
                codec.decode(head + b"\\xff" * 8)
            except Exception as error:
                found.append(type(error).__name__)
        return found
    """,
        "cowboy_sdk.codec as codec",
    ),
    body(
        "codec-deep",
        "an encoding nested twenty thousand deep",
        DEEP
        + """
        return codec.encode(deep)
    """,
        "cowboy_sdk.codec as codec",
    ),
    body(
        "codec-itself",
        "an encoding of a list that holds itself",
        """
        own = []
        own.append(own)
        return codec.encode(own)
    """,
        "cowboy_sdk.codec as codec",
    ),
    body(
        "codec-subclasses",
        "an encoding of classes that override what an encoder uses",
        """
        class Own(dict):
            def items(self):
                while True:
                    pass
        class Number(int):
            def to_bytes(self, *_):
                return b"forged"
        return codec.encode([Number(2**70), Own(a=1)])
    """,
        "cowboy_sdk.codec as codec",
    ),
    body(
        "codec-view",
        "an object that says which plain value it stands for, without end",
        """
        class View:
            def __cowboy_native__(self):
                return self
            to_dict = __native__ = __cowboy_native__
        return codec.encode(View())
    """,
        "cowboy_sdk.codec as codec",
    ),
    body(
        "context-kept",
        "the facts that the SDK keeps, changed",
        """
        pvm_sys._ctx["chain_id"] = 666
        return runtime.get_chain_id()
    """,
        "cowboy_sdk.pvm_sys as pvm_sys, cowboy_sdk.runtime as runtime",
    ),
    body(
        "continuation-forged",
        "a continuation of the program's own bytes",
        """
        pvm_host.set_state(b"__cont__x", b"\\xa1\\x61a\\x01")
        return cowboy_sdk.load_cont(b"x")
    """,
        "cowboy_sdk",
    ),
    body(
        "continuation-many",
        "continuations without end",
        """
        n = 0
        while True:
            n += 1
            cowboy_sdk.save_cont(b"%d" % n, {"x": n}, "resume")
    """,
        "cowboy_sdk",
    ),
    body(
        "handler-mode",
        "the SDK's mode of handlers, set by the program",
        """
        mode._set_mode("pure")
        pvm_host.set_state(b"a", b"b")
        return mode._get_mode()
    """,
        "cowboy_sdk.handler_mode as mode",
    ),
    body(
        "json-codec-deep",
        "the SDK's JSON, nested",
        """
        return json_codec.decode(b"[" * 100_000)
    """,
        "cowboy_sdk.json_codec as json_codec",
    ),
    body(
        "json-codec-numbers",
        "the SDK's JSON with numbers beyond all ranges",
        """
        found = []
        for text in (b"1e999", b"NaN", b"-Infinity", b"9" * 5_000, b"0.1e-999", b"-0"):
            try:
                found.append(str(json_codec.decode(text)))
            except Exception as error:
                found.append(type(error).__name__)
        return found
    """,
        "cowboy_sdk.json_codec as json_codec",
    ),
    module(
        "model-annotation-code",
        "an annotation of a model is text with code",
        """
        from cowboy_sdk import CowboyModel


        class Order(CowboyModel):
            owner: "().__class__.__base__.__subclasses__()" = None


        def go(payload):
            return str(Order.schema())[:100]
    """,
    ),
    module(
        "model-default-code",
        "a name of a field that is no name",
        """
        from cowboy_sdk import CowboyModel

        Order = type("Order", (CowboyModel,), {"__annotations__": {"x=__import__('os')": int, "y, *z": str}})


        def go(payload):
            return repr(Order(1, 2))
    """,
    ),
    module(
        "model-field-dunder",
        "fields of a model named after Python's own attributes",
        """
        from cowboy_sdk import CowboyModel


        class Order(CowboyModel):
            __class__: int = 1
            __dict__: dict = None


        def go(payload):
            return repr(Order().to_dict())
    """,
    ),
    module(
        "model-fields-many",
        "a model of five thousand fields",
        """
        from cowboy_sdk import CowboyModel

        Order = type("Order", (CowboyModel,), {"__annotations__": {f"a{n}": int for n in range(1_000)}})


        def go(payload):
            return len(Order(**{f"a{n}": n for n in range(1_000)}).to_dict())
    """,
    ),
    module(
        "model-recursive",
        "a model that holds itself",
        """
        from cowboy_sdk import CowboyModel


        class Node(CowboyModel):
            next: object = None


        def go(payload):
            node = Node()
            node.next = node
            return [repr(node), node == node, node.to_dict()]
    """,
    ),
    body(
        "ordered-set-flood",
        "an ordered set of keys that collide",
        """
        return len(cowboy_sdk.ordered_set([n * (2**61 - 1) for n in range(2_000)]))
    """,
        "cowboy_sdk",
    ),
    body(
        "random-range",
        "a random number below a number of a megabit",
        """
        return pvm_random.randrange(1 << 10**6) & 1
    """,
        "cowboy_sdk.pvm_random as pvm_random",
    ),
    body(
        "random-shuffle-own",
        "a shuffle of an object that grows",
        """
        class Own(list):
            def __len__(self):
                return 10**12
        pvm_random.shuffle(Own([1, 2, 3]))
    """,
        "cowboy_sdk.pvm_random as pvm_random",
    ),
    body(
        "random-state",
        "the SDK's random numbers, set by the program",
        """
        pvm_random.setstate((3, (2**32,) * 10**5, None))
        return pvm_random.random()
    """,
        "cowboy_sdk.pvm_random as pvm_random",
    ),
    body(
        "reentrancy-guard",
        "a guard of the SDK, entered twice by a generator",
        """
        @cowboy_sdk.reentrancy_guard
        def guarded(self):
            return guarded(self)
        return guarded(object())
    """,
        "cowboy_sdk",
    ),
    body(
        "retry-forever",
        "retries without end",
        """
        attempts = cowboy_sdk.Retry(max_attempts=10**12)
        return repr(attempts)
    """,
        "cowboy_sdk",
    ),
    module(
        "sdk-actor-slots",
        "an actor whose attributes answer for the SDK's marks",
        """
        from cowboy_sdk import actor


        @actor
        class One:
            def __getattr__(self, name):
                return lambda *arguments: name

            def go(self, payload):
                return str(self.storage).encode()
    """,
    ),
    module(
        "sdk-class-changed",
        "a method of the SDK's class is replaced by way of a subclass",
        """
        import cowboy_sdk


        class Fake(cowboy_sdk.SortedMap):
            pass


        def go(payload):
            Fake.__bases__[0].__setitem__ = None
            return 1
    """,
    ),
    body(
        "sdk-list-changed",
        "a list of the SDK is changed",
        """
        cowboy_sdk.__all__.append("leak")
        return len(cowboy_sdk.__all__)
    """,
        "cowboy_sdk",
    ),
    module(
        "sdk-two-actors",
        "two actors in one module",
        """
        from cowboy_sdk import actor


        @actor
        class One:
            def go(self, payload):
                return b"one"


        @actor
        class Two:
            def go(self, payload):
                return b"two"
    """,
    ),
    body(
        "sorted-map-large",
        "a sorted map that moves all its keys each time",
        """
        table = cowboy_sdk.SortedMap()
        n = 0
        while True:
            n -= 1
            table[n] = n
    """,
        "cowboy_sdk",
    ),
    body(
        "sorted-map-own-keys",
        "a sorted map of keys that cannot decide",
        """
        class Key:
            def __lt__(self, other):
                return True
            __gt__ = __lt__
        table = cowboy_sdk.SortedMap()
        for n in range(300):
            table[Key()] = n
        return len(table)
    """,
        "cowboy_sdk",
    ),
    module(
        "storage-deep",
        "a value nested twenty thousand deep is stored",
        """
        from cowboy_sdk import actor


        @actor
        class One:
            def go(self, payload):
                deep = []
                for _ in range(20_000):
                    deep = [deep]
                self.storage["deep"] = deep
                return b""
    """,
    ),
    module(
        "storage-keys",
        "keys of the SDK's storage that are its own",
        """
        from cowboy_sdk import actor


        @actor
        class One:
            def go(self, payload):
                found = []
                for key in ("__INITIALIZED__", "cowboy.offchain.image.v1", "", "\\ud800", "a" * 10**5, 5, None):
                    try:
                        self.storage[key] = 1
                        found.append("kept")
                    except Exception as error:
                        found.append(type(error).__name__)
                return ",".join(found).encode()
    """,
    ),
    body(
        "tier-forged",
        "a tier that is no member of the enumeration",
        """
        class Fake:
            value = "fast"
        tier = object.__new__(trailboss.sdk.PriorityTier)
        tier._value_ = "urgent" * 1_000
        return trailboss.sdk.tier_tip(tier)
    """,
        "trailboss.sdk",
    ),
    body(
        "timer-handler-name",
        "handlers of timers by names that are none",
        """
        found = []
        for name in ("", "__init__", "a" * 10**5, "go.__globals__", None, go, 5):
            try:
                found.append(len(cowboy_sdk.timer.schedule(200, b"", handler=name)))
            except Exception as error:
                found.append(type(error).__name__)
        return found
    """,
        "cowboy_sdk",
    ),
    body(
        "verify-garbage",
        "answers to verify, nested and endless",
        """
        builder = cowboy_sdk.Verify.builder() if hasattr(cowboy_sdk.Verify, "builder") else cowboy_sdk.Verify
        return repr(builder)[:60]
    """,
        "cowboy_sdk",
    ),
)
