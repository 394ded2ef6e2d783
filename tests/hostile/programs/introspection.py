"""Ways by the language itself from a program to the interpreter, the process and other programs."""

from tests.hostile.program import body

SINK = """
        seen = []
        class Sink:
            def __setattr__(self, name, value):
                seen.append(value)
"""

PROGRAMS = (
    body(
        "annotations-of-builtin",
        "attributes of built-in functions are read by text",
        """
        return [getattr(len, name, None) is None for name in ("__wrapped__", "__annotations__", "__kwdefaults__")]
    """,
    ),
    body(
        "async-function",
        "a coroutine is made and looked into",
        """
        async def later():
            return 1
        return later().cr_frame
    """,
    ),
    body(
        "async-object",
        "an asynchronous generator in a comprehension",
        """
        return [x async for x in payload]
    """,
    ),
    body(
        "base-subclasses",
        "all classes of the process, the classical way",
        """
        return len(().__class__.__base__.__subclasses__())
    """,
    ),
    body(
        "builtins-by-import",
        "__import__ by name",
        """
        return __import__("os").getpid()
    """,
    ),
    body(
        "builtins-by-module",
        "the built-ins as a name of the module",
        """
        return list(__builtins__)
    """,
    ),
    body(
        "call-exec",
        "exec of text",
        """
        exec("while True: pass")
    """,
    ),
    body(
        "cell-contents",
        "the cell of a closure",
        """
        x = 1
        return (lambda: x).__closure__[0].cell_contents
    """,
    ),
    body(
        "class-assignment",
        "__class__ of an instance is replaced by one with another layout",
        """
        class A:
            __slots__ = ("a",)
        class B:
            __slots__ = ("b",)
        a = A()
        a.a = [1]
        a.__class__ = B
        return a.b
    """,
    ),
    body(
        "class-assignment-module",
        "__class__ of a shared module is replaced",
        """
        class Evil(type(pvm_host)):
            def __getattribute__(self, name):
                return lambda *_: 666
        pvm_host.__class__ = Evil
        return pvm_host.block_height()
    """,
    ),
    body(
        "class-cell",
        "__class__ as a name within a method",
        """
        class A:
            def method(self):
                return __class__.__mro__[-1].__subclasses__
        return A().method()
    """,
    ),
    body(
        "code-replace",
        "a code object is replaced by one of the program's bytes",
        """
        code = go.__code__
        return type(go)(code.replace(co_code=b"\\x00" * 64), {})()
    """,
    ),
    body(
        "compile-text",
        "compile of text",
        """
        return compile("1", "x", "eval")
    """,
    ),
    body(
        "decorator-returns-host",
        "a decorator replaces the handler by a host call",
        """
        @pvm_host.keccak256
        def inner():
            pass
        return inner
    """,
    ),
    body(
        "dict-of-object",
        "__dict__ of a shared module by vars",
        """
        return len(vars(json))
    """,
        "json",
    ),
    body(
        "dir-of-host",
        "dir of a function of the host",
        """
        return dir(pvm_host.get_state)
    """,
    ),
    body(
        "error-object",
        "AttributeError keeps the object that was asked",
        """
        try:
            pvm_host.nothing
        except AttributeError as error:
            return [type(error.obj).__name__, error.name]
    """,
    ),
    body(
        "eval-text",
        "eval of text",
        """
        return eval("1+1")
    """,
    ),
    body(
        "format-attribute",
        "a format string reads attributes without a rule",
        """
        return "{0.__globals__}".format(go)
    """,
    ),
    body(
        "format-attribute-chain",
        "a format string walks from a function to the built-ins",
        """
        return "{0.__globals__[__builtins__][getattr]}".format(go)
    """,
    ),
    body(
        "format-host-error",
        "a format string walks from the host's error to the engine",
        """
        return "{0.__init__.__globals__}".format(pvm_host.HostError)
    """,
    ),
    body(
        "format-host-function",
        "a format string reads the engine through a host call's closure",
        """
        return "{0.__closure__[0].cell_contents}".format(pvm_host.get_state)
    """,
    ),
    body(
        "format-map-attribute",
        "the same by format_map",
        """
        return "{f.__code__.co_consts}".format_map({"f": go})
    """,
    ),
    body(
        "frame-of-generator",
        "the frame of a generator",
        """
        return (x for x in ()).gi_frame.f_back.f_globals
    """,
    ),
    body(
        "getattr-computed",
        "a refused name, put together when it runs",
        """
        return getattr(go, "__glo" + "bals__")
    """,
    ),
    body(
        "getattr-str-subclass",
        "a refused name in a str of the program's own class",
        """
        class Name(str):
            def __eq__(self, other):
                return False
            def startswith(self, *_):
                return False
        return getattr(go, Name("__globals__"))
    """,
    ),
    body(
        "getattribute-by-super",
        "super().__getattribute__",
        """
        class A:
            def read(self, name):
                return super().__getattribute__(name)
        return A().read("__dict__")
    """,
    ),
    body(
        "getattribute-of-object",
        "object.__getattribute__ itself",
        """
        return object.__getattribute__(go, "__globals__")
    """,
    ),
    body(
        "match-code",
        "a class pattern reads a code object, and makes another of it",
        """
        match go:
            case object(__code__=code):
                return type(go)(code.replace(co_consts=(None, 5)), {})()
    """,
    ),
    body(
        "match-format",
        "a class pattern reads the method that formats, past its check",
        """
        match "{0!r:.60}":
            case str(format=method):
                return method(object())
    """,
    ),
    body(
        "match-globals",
        "a class pattern reads a refused attribute by keyword",
        """
        match go:
            case object(__globals__=names):
                return len(names)
    """,
    ),
    body(
        "match-positional",
        "a class pattern reads a refused attribute by position",
        """
        class Every(type):
            def __instancecheck__(cls, other):
                return True
        class Spy(metaclass=Every):
            __match_args__ = ("__glo" + "bals__",)
        match go:
            case Spy(names):
                return len(names)
    """,
    ),
    body(
        "match-setattr",
        "a class pattern reads the method that sets attributes of a shared module",
        """
        match pvm_host:
            case object(__setattr__=put):
                put("block_height", lambda: 666)
        return pvm_host.block_height()
    """,
    ),
    body(
        "match-subclasses",
        "a class pattern reads all classes of the process",
        """
        match object:
            case type(__subclasses__=subclasses):
                return len(subclasses())
    """,
    ),
    body(
        "metaclass-call",
        "a metaclass that answers in place of a class",
        """
        class Meta(type):
            def __call__(cls, *arguments):
                return arguments
            def __getattribute__(cls, name):
                return type(name)
        class A(metaclass=Meta):
            pass
        return [A(1, 2), A.anything is str]
    """,
    ),
    body(
        "metaclass-prepare",
        "__prepare__ answers with a namespace of the program's own",
        """
        class Space(dict):
            def __setitem__(self, name, value):
                if name.startswith("_vm"):
                    raise ValueError(name)
                dict.__setitem__(self, name, value)
            def __getitem__(self, name):
                return dict.get(self, name, 7)
        class Meta(type):
            def __prepare__(name, bases):
                return Space()
        class A(metaclass=Meta):
            x = undefined
        return A.x
    """,
    ),
    body(
        "mro-entries",
        "__mro_entries__ answers with other bases",
        """
        class Fake:
            def __mro_entries__(self, bases):
                return (type(pvm_host),)
        class A(Fake()):
            pass
        return A("x").__name__
    """,
    ),
    body(
        "new-of-function-type",
        "a function is made of another function's type",
        """
        return type(go)(go, {})
    """,
    ),
    body(
        "new-of-module-type",
        "a module of the name of a shared one",
        """
        fake = type(pvm_host)("cowboy_sdk")
        fake.x = 1
        return fake.x
    """,
    ),
    body(
        "object-reduce",
        "__reduce_ex__ shows how to copy an object",
        """
        return go.__reduce_ex__(2)
    """,
    ),
    body(
        "property-of-shared",
        "a property is set on a shared class",
        """
        pvm_host.HostError.code = property(lambda self: 0)
        return 1
    """,
    ),
    body(
        "refusal-by-setattr",
        "the refusal that is kept with the host's error, replaced by object.__setattr__",
        """
        error = pvm_host.HostError("mine")
        object.__setattr__(error, "_vm_" + "refusal", "forged")
        raise error
    """,
    ),
    body(
        "reserved-name",
        "a name of the instruments, assigned by the program",
        """
        global _vm_charge
        _vm_charge = lambda cycles: None
    """,
    ),
    body(
        "reserved-name-class",
        "a name of the instruments in the namespace of a class",
        """
        Space = type("Space", (), {"_vm_charge": lambda self, cycles: None})
        return [name for name in ("_vm_" + "charge",) if hasattr(Space, name)]
    """,
    ),
    body(
        "reserved-name-global",
        "a name of the instruments, written through a namespace",
        """
        match go:
            case object(__globals__=names):
                names["_vm_" + "charge"] = lambda cycles: None
                names["_vm_" + "turn"] = lambda cycles, here: None
        while True:
            pass
    """,
    ),
    body(
        "setattr-dunder",
        "setattr of a method that Python itself calls",
        """
        class A:
            pass
        setattr(A, "__class__", property(lambda self: int))
        return isinstance(A(), int)
    """,
    ),
    body(
        "slots-weakref",
        "a class with __weakref__ among its slots",
        """
        class A:
            __slots__ = ("__weakref__", "__dict__")
        return getattr(A(), "__weakref__")
    """,
    ),
    body(
        "traceback-by-exit",
        "__exit__ gets the traceback as an argument",
        """
        frames = []
        class Spy:
            def __enter__(self):
                return self
            def __exit__(self, kind, error, trace):
                frames.append(getattr(trace, "tb_" + "frame"))
                return True
        with Spy():
            pvm_host.get_state(5)
        return len(frames)
    """,
    ),
    body(
        "traceback-frames",
        "the traceback of an exception leads to frames",
        """
        try:
            pvm_host.get_state(5)
        except TypeError as error:
            return error.__traceback__.tb_frame
    """,
    ),
    body(
        "traceback-match",
        "a class pattern reads the frame of a traceback that __exit__ got",
        """
        found = []
        class Spy:
            def __enter__(self):
                return self
            def __exit__(self, kind, error, trace):
                match trace:
                    case object(tb_frame=object(f_back=object(f_globals=names))):
                        found.append(names["__name__"])
                return True
        with Spy():
            pvm_host.get_state(5)
        return found
    """,
    ),
    body(
        "type-of-type",
        "a class above type",
        """
        class Meta(type(type)):
            def mro(cls):
                return [cls, object]
        class A(dict, metaclass=Meta):
            pass
        return len(A.__mro__)
    """,
    ),
    body(
        "type-three-arguments",
        "type() makes a class with any attributes",
        """
        A = type("A", (), {"__getattr__": lambda self, name: name, "__slots__": ()})
        return A().__anything__
    """,
    ),
)
