"""Ways by the library from a program to the interpreter, the process and other programs."""

from tests.hostile.program import body, module

SINK = """
        seen = []
        class Sink:
            def __setattr__(self, name, value):
                seen.append(value)
"""

PROGRAMS = (
    module(
        "abc-dump-registry",
        "a method of ABCMeta writes addresses of classes to a file of the program's",
        """
        import abc


        class File:
            text = ""

            def write(self, text):
                self.text += text


        class A(abc.ABC):
            pass


        A.register(int)


        def go(payload):
            file = File()
            A._dump_registry(file=file)
            return file.text
    """,
    ),
    module(
        "abc-register-mapping",
        "a registration makes every int a Mapping, for the host too",
        """
        import collections.abc


        def go(payload):
            collections.abc.Mapping.register(int)
            return pvm_host.block_height()
    """,
    ),
    module(
        "abc-register-shared",
        "registration with a shared abstract class outlives the frame",
        """
        import collections.abc


        def go(payload):
            before = isinstance(1, collections.abc.AsyncGenerator)
            collections.abc.AsyncGenerator.register(int)
            return [before, isinstance(1, collections.abc.AsyncGenerator)]
    """,
    ),
    body(
        "attrgetter-path",
        "operator.attrgetter walks to the globals",
        """
        return len(operator.attrgetter("__init__.__globals__")(pvm_host.HostError))
    """,
        "operator",
    ),
    body(
        "dataclass-fields",
        "a class with forged fields makes astuple read any attribute",
        """
        @dataclasses.dataclass
        class Probe:
            a: int = 1
        field = Probe.__dataclass_fields__["a"]
        field.name = "__reduce" + "_ex__"
        return [type(each).__name__ for each in dataclasses.astuple(Probe())]
    """,
        "dataclasses",
    ),
    body(
        "dataclass-text",
        "make_dataclass writes a function of text: a field name that is code",
        """
        return dataclasses.make_dataclass("A", ["x=__import__('os')"])
    """,
        "dataclasses",
    ),
    body(
        "descriptor-get",
        "__get__ of a function binds a shared method to the program's object",
        """
        class Fake:
            pass
        return json.JSONEncoder.encode.__get__(Fake())({})
    """,
        "json",
    ),
    body(
        "descriptor-set-name",
        "__set_name__ gets classes before they are complete",
        """
        kept = []
        class Spy:
            def __set_name__(self, owner, name):
                kept.append(owner)
                owner.__bases__ = (dict,)
        class A:
            spy = Spy()
        return [each.__name__ for each in kept[0].__mro__]
    """,
    ),
    body(
        "enum-functional",
        "the functional interface of Enum looks into the caller's frame",
        """
        return enum.Enum("E", "a b").__module__
    """,
        "enum",
    ),
    module(
        "forward-reference",
        "a forward reference of typing evaluates text with the process's own built-ins",
        """
        import typing


        def go(payload):
            reference = typing.List["().__class__.__base__.__subclasses__()"].__args__[0]
            reference.__forward_is_class__ = True
            try:
                return len(reference._evaluate({}, {}, recursive_guard=frozen))
            except TypeError as error:
                return str(error)


        frozen = {}.keys()
    """,
    ),
    body(
        "import-computed",
        "the machinery of imports, found in a module of the SDK",
        """
        return models.importlib.import_module("os").getpid()
    """,
        "cowboy_sdk.models as models",
    ),
    module(
        "import-dunder-builtins",
        "an import statement reads the built-ins of a module of the SDK",
        """
        from cowboy_sdk.codec import __builtins__ as names


        def go(payload):
            return len(names)
    """,
    ),
    module(
        "import-dunder-dict",
        "an import statement reads the dict of a shared module",
        """
        from pvm_host import __dict__ as names


        def go(payload):
            names["block_height"] = lambda: 666
            return pvm_host.block_height()
    """,
    ),
    module(
        "import-os",
        "a module of the process",
        """
        import os


        def go(payload):
            return os.getpid()
    """,
    ),
    module(
        "import-private-sdk",
        "a private module of the SDK, by a from-import",
        """
        from cowboy_sdk import _compiler


        def go(payload):
            return _compiler.__name__
    """,
    ),
    module(
        "import-relative",
        "a relative import",
        """
        from . import native


        def go(payload):
            return native
    """,
    ),
    module(
        "init-subclass-hook",
        "__init_subclass__ gets classes that the SDK makes",
        """
        from cowboy_sdk import CowboyModel

        kept = []


        class Spy(CowboyModel):
            def __init_subclass__(cls, **options):
                kept.append(cls)
                super().__init_subclass__(**options)


        def go(payload):
            class Inner(Spy):
                x: int = 1

            return [each.__name__ for each in kept]
    """,
    ),
    body(
        "json-encoder-default",
        "a function of the standard library gets the program's method and its own globals",
        """
        class Spy(json.JSONEncoder):
            def default(self, value):
                return getattr(self.iterencode, "__globals__")
        return json.dumps(go, cls=Spy)
    """,
        "json",
    ),
    body(
        "lru-cache-wrapped",
        "__wrapped__ leads back to the function",
        """
        return functools.lru_cache(go).__wrapped__ is go
    """,
        "functools",
    ),
    body(
        "methodcaller",
        "operator.methodcaller with a refused name",
        """
        return operator.methodcaller("__subclasses__")(object)
    """,
        "operator",
    ),
    body(
        "namedtuple-field",
        "namedtuple makes code of field names",
        """
        return collections.namedtuple("A", "x, y=__import__('os')")
    """,
        "collections",
    ),
    body(
        "partial-of-getattr",
        "functools.partial of getattr",
        """
        return functools.partial(getattr, go)("__globals__")
    """,
        "functools",
    ),
    body(
        "sdk-inspect",
        "a module of the SDK shows inspect, which evaluates annotations",
        """
        def probe(x: "().__class__.__base__.__subclasses__()"):
            pass
        return len(models.inspect.get_annotations(probe, eval_str=True)["x"])
    """,
        "cowboy_sdk.models as models",
    ),
    body(
        "sdk-sys-modules",
        "a module of the SDK shows its modules",
        """
        return list(runtime.sys.modules)
    """,
        "cowboy_sdk.runtime as runtime",
    ),
    module(
        "singledispatch-annotation",
        "singledispatch evaluates the annotation of a registered function",
        """
        import functools

        seen = []


        @functools.singledispatch
        def shown(x):
            pass


        def go(payload):
            def probe(x: "seen.append(().__class__.__base__.__subclasses__())"):
                pass

            try:
                shown.register(probe)
            except TypeError:
                pass
            return len(seen[0])
    """,
    ),
    module(
        "singledispatch-endless",
        "the annotation of a registered function is a loop that nothing charges",
        """
        import functools


        @functools.singledispatch
        def shown(x):
            pass


        def go(payload):
            def probe(x: "[1 for _ in iter(int, 1)]"):
                pass

            shown.register(probe)
    """,
    ),
    body(
        "super-of-shared",
        "super reads methods past the program's own class",
        """
        return super(type(json), json).__setattr__("x", 1)
    """,
        "json",
    ),
    body(
        "update-wrapper-code",
        "functools.update_wrapper reads any attribute into an object of the program's",
        SINK
        + """
        functools.update_wrapper(Sink(), go, assigned=("__globals__", "__code__", "__closure__"), updated=())
        return [type(each).__name__ for each in seen]
    """,
        "functools",
    ),
    body(
        "update-wrapper-dict",
        "functools.update_wrapper hands out the dict of a shared module",
        """
        kept = []
        class Sink:
            def update(self, names):
                kept.append(names)
        class Wrapper:
            __dict__ = Sink()
        functools.update_wrapper(Wrapper(), json, assigned=())
        kept[0]["dumps"] = lambda value: "666"
        return json.dumps({})
    """,
        "functools, json",
    ),
    body(
        "update-wrapper-engine",
        "the globals of a function of the engine, and so the process",
        SINK
        + """
        functools.update_wrapper(Sink(), pvm_host.get_state, assigned=("__globals__",), updated=())
        return seen[0]["sys"].version
    """,
        "functools",
    ),
    body(
        "update-wrapper-kill",
        "the process's own os, to end the node",
        SINK
        + """
        functools.update_wrapper(Sink(), json.JSONEncoder.encode, assigned=("__globals__",), updated=())
        return seen[0]["__builtins__"]["__import__"]("os").getpid() > 0
    """,
        "functools, json",
    ),
    body(
        "wraps-closure",
        "the same by wraps",
        SINK
        + """
        functools.wraps(pvm_host.get_state, assigned=("__closure__",), updated=())(Sink())
        return len(seen[0])
    """,
        "functools",
    ),
)
