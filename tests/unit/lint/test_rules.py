"""Each rule finds what it is for, and lets pass what is meant."""

from textwrap import dedent

import pytest

from trailboss.lint import LintTerms, lint_source
from trailboss.params import load_params

PARAMS = load_params()


def found(text, terms=None):
    """Return line and rule of each finding but notes."""
    findings = lint_source(dedent(text).encode(), terms or LintTerms(PARAMS))
    return [(each.line, each.rule) for each in findings if each.severity != "note"]


def rules(text, preset="mainnet"):
    """Return the rules that a source breaks, notes among them."""
    return {each.rule for each in lint_source(dedent(text).encode(), LintTerms(load_params(preset)))}


GUARD = 'if pvm_host.context()["sender"] != pvm_host.self_address(): raise ValueError("not a timer")'
CLASS = """
from cowboy_sdk import OWNER, SELF, actor, callable_by, codec, public, runtime, send, timer

@actor
class A:
"""


def sdk_actor(body):
    """Return an actor of the public SDK with these methods."""
    return CLASS + "".join(f"    {line}\n" for line in dedent(body).strip().splitlines())


# What a deployment refuses


def test_all_refusals_are_found_with_line_and_column():
    """A deployment names the first of them only."""
    source = b'import random\n\ndef f(p):\n    a = "\xc3\xa9", {1}\n    return hash(a)\n'
    findings = lint_source(source, LintTerms(PARAMS))
    assert [(each.line, each.column, each.rule) for each in findings] == [
        (1, 1, "E1101"), (4, 14, "E1101"), (5, 12, "E1101"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        (b"def f(p):\n    retorn 1\n", 2, "invalid syntax"),
        (b"x = 1\nreturn x\n", 2, "outside function"),
        (b"x = 1\n# \xff\n", 2, "no UTF-8"),
        (b"#" * (PARAMS.limits.source_bytes_max + 1), 1, "the limit is"),
    ],
)
def test_source_that_is_none_is_refused_in_its_line(source, line, words):
    """E1213, where it is wrong."""
    [only] = lint_source(source, LintTerms(PARAMS), "a.py")
    assert (only.path, only.line, only.rule) == ("a.py", line, "E1213")
    assert words in only.message


def test_clean_source_has_no_findings():
    """Nor has an empty one."""
    assert lint_source(b"", LintTerms(PARAMS)) == []


# TB001


@pytest.mark.parametrize(
    "call",
    [
        'pvm_host.schedule_timer(9, b"")',
        'pvm_host.schedule_timer_ex(9, b"%d" % 7, gas_limit=50_000)',
        'pvm_host.set_timeout(9, b"", gba=pvm_host.self_address())',
        'pvm_host.set_timeout(pvm_host.self_address(), 9, b"")',
        'pvm_host.schedule_timer(9, json.dumps({"_handler": "tock", "_payload": ""}).encode())',
        'pvm_host.schedule_timer(9, b\'{"_handler": "tock", "_payload": ""}\')',
        'schedule_timer(9, b"")',
        'sdk_timer.schedule(9, handler="tock")',
        'sdk_timer.schedule(9, codec.encode({"_handler": NAME, "_payload": b""}))',
        'runtime.schedule_after(5, "tock")',
        'runtime.schedule_after(5, tack, b"")',
        'runtime.set_interval(5, "tick")',
        'later("tock")',
        'every("tock", 10)',
        'every("rent", 10, handler="tock")',
        'retry("tock", b"")',
    ],
)
def test_timer_is_found_when_its_handler_is_missing(call):
    """Every form of the call, and every way to name a handler."""
    source = f"""\
    import json
    from cowboy_sdk import codec, runtime, timer as sdk_timer
    from trailboss.sdk import every, retry, schedule_timer
    NAME = "tock"
    def later(name):
        sdk_timer.schedule(9, handler=name)
    def start(payload):
        {call}
    def tick(payload):
        return b""
    @sdk_timer(name="other")
    def tack(payload):
        return b""
    """
    assert "TB001" in [rule for _, rule in found(source)]


@pytest.mark.parametrize(
    "call",
    [
        'timer.schedule(9, handler="tick")',
        "timer.schedule(9, handler=tick)",
        'pvm_host.schedule_timer(9, json.dumps({"_handler": "tick", "_payload": ""}).encode())',
        "pvm_host.schedule_timer(9, payload)",  # it may name any handler
        'pvm_host.set_timeout(payload, 9, b"")',  # a timer of another actor
        "timer.schedule(9, handler=payload.decode())",
    ],
)
def test_timer_passes_when_its_handler_is_there_or_unknown(call):
    """What cannot be known is no finding."""
    source = f"""\
    import json
    from cowboy_sdk import timer
    def start(payload):
        {call}
    def tick(payload):
        return b""
    """
    assert found(source) == []


def test_timer_is_found_when_two_classes_have_its_handler():
    """The chain refuses such a call."""
    source = """\
    class A:
        def tick(self, payload): pass
    class B:
        def tick(self, payload): pass
    from cowboy_sdk import timer
    def start(payload):
        timer.schedule(9, handler="tick")
    """
    [only] = [each for each in lint_source(dedent(source).encode(), LintTerms(PARAMS)) if each.severity != "note"]
    assert (only.rule, only.line) == ("TB001", 7)
    assert "several classes: A, B" in only.message


# TB002


@pytest.mark.parametrize(
    ("methods", "severity"),
    [
        ("def init(self, payload): return b''", "error"),
        ("def handle_message(self, payload): return b''", "warning"),
        ("def stop(self, payload): return b''", "warning"),
        ("@public\ndef stop(self, who, what): return b''", "warning"),
        (
            "@public\ndef go(self, payload): return self.half(payload)\ndef half(self, payload): return payload",
            "warning",
        ),
    ],
)
def test_handler_is_found_when_those_it_is_for_cannot_call_it(methods, severity):
    """The SDK denies by default, also what a handler calls by itself."""
    assert [(each.rule, each.severity) for each in lint_source(sdk_actor(methods).encode(), LintTerms(PARAMS))] == [
        ("TB002", severity)
    ]


@pytest.mark.parametrize(
    "methods",
    [
        "@public\ndef init(self, payload): return b''",
        "@callable_by(OWNER)\ndef stop(self, payload): return b''",
        "@timer\ndef tick(self, payload): return b''",
        "@public\ndef go(self, payload): return self._half(payload)\ndef _half(self, payload): return payload",
        "@public\ndef go(self, p): return pvm_host.create_deferred_tx('rest', b'')\ndef rest(self, p): return b''",
    ],
)
def test_handler_passes_when_it_can_be_called(methods):
    """A permission, a timer, an underscore or a deferred call makes it so."""
    assert found(sdk_actor(methods)) == []


def test_creation_call_is_found_when_two_classes_have_it():
    """Neither runs."""
    source = "class A:\n    def init(self, p): pass\nclass B:\n    def init(self, p): pass\n"
    assert found(source) == [(4, "TB002")]


# TB003, TB004, TB012


def test_timer_without_ttl_is_noted_when_the_call_takes_one():
    """None is the same as nothing; an auction has no expiry."""
    body = "def handle_timer(payload):\n    {}\n"
    for call in ("pvm_host.schedule_timer(9, b'')", "pvm_host.schedule_timer_ex(9, b'', expires_at=None)"):
        assert "TB003" in rules(body.format(call))
    for call in (
        "pvm_host.schedule_timer(9, b'', expires_at=20)",
        "pvm_host.schedule_timer_ex(9, b'', b'', 0, 0, 20)",
        "pvm_host.schedule_timer_ex(9, b'', None, None, 20)",
        "pvm_host.schedule_timer_ex(9, b'', **payload)",
        "pvm_host.set_timeout(9, b'', gba=b'')",
    ):
        assert "TB003" not in rules(body.format(call))


@pytest.mark.parametrize(
    ("limit", "severity"),
    [("550_001", "error"), ("LIMIT * 2", "error"), ("5", "error"), ("250_001", "warning"), ("self.LIMIT", "warning")],
)
def test_gas_limit_is_found_when_no_fire_may_have_it(limit, severity):
    """By its value, through constants; above the timer lane's cap it is a warning."""
    source = f"""\
    LIMIT = 400_000
    class A:
        LIMIT = 300_000
        def start(self, payload):
            pvm_host.schedule_timer(9, b"", gas_limit={limit})
        def handle_timer(self, payload):
            return b""
    """
    findings = lint_source(dedent(source).encode(), LintTerms(PARAMS))
    assert [(each.line, each.severity) for each in findings if each.rule == "TB004"] == [(5, severity)]


@pytest.mark.parametrize("limit", ["250_000", "payload", "LIMIT // 2", "None"])
def test_gas_limit_passes_when_it_is_allowed_or_unknown(limit):
    """Up to the timer lane's cap."""
    source = f"LIMIT = 400_000\ndef start(payload):\n    pvm_host.schedule_timer(9, payload, gas_limit={limit})\n"
    assert found(source) == []
    assert found("def start(p):\n    pvm_host.schedule_timer_ex(9, p, b'', 0, 0, 0)\n") == []
    assert found("X = X + 1\ndef start(p):\n    pvm_host.schedule_timer(9, p, gas_limit=X)\n") == []


def test_entitlement_is_noted_when_the_preset_enforces_it():
    """The public one does."""
    source = "def start(payload):\n    pvm_host.schedule_timer(9, payload, expires_at=20)\n"
    assert rules(source) == set()
    assert rules(source, "public") == {"TB012"}
    assert rules("def start(payload):\n    pass\n", "public") == set()


# TB005


@pytest.mark.parametrize(
    "body",
    [
        'pvm_host.set_state(b"n", payload)',
        'pvm_host.set_state(b"who", pvm_host.context()["sender"])',  # it only keeps it
        "_pay()",
        'pvm_host.schedule_timer(9, b"")',
    ],
)
def test_timer_handler_is_found_when_anyone_can_call_it(body):
    """It changes something, here or in what it calls, and asks for no sender."""
    source = f"def handle_timer(payload):\n    {body}\ndef _pay():\n    pvm_host.transfer_balance(b'', 1)\n"
    assert found(source) == [(1, "TB005")]


@pytest.mark.parametrize(
    "body",
    [
        GUARD,
        'sender = pvm_host.context()["sender"]\n    if sender != pvm_host.self_address(): raise ValueError',
        "_check()",
        "_only(pvm_host.context().get('sender'))",
        "assert pvm_host.context()['sender'] == pvm_host.self_address()",
        'sender: bytes = pvm_host.context()["sender"]\n    if sender != pvm_host.self_address(): raise ValueError',
        'match pvm_host.context()["sender"]:\n        case b"": raise ValueError',
    ],
)
def test_timer_handler_passes_when_it_asks_who_calls(body):
    """By itself or through a helper."""
    source = (
        f"def handle_timer(payload):\n    {body}\n    pvm_host.set_state(b'n', payload)\n"
        f"def _check():\n    {GUARD}\ndef _only(who):\n    if who != pvm_host.self_address(): raise ValueError\n"
    )
    assert found(source) == []


def test_timer_handler_passes_when_it_changes_nothing():
    """Its caller learns what the storage says."""
    assert found("def handle_timer(payload):\n    return pvm_host.get_state(b'n')\n") == []


@pytest.mark.parametrize(
    ("decorators", "expected"),
    [("@timer", []), ("@timer\n@callable_by(SELF)", []), ("@timer\n@public", ["TB005"]), ("@public", ["TB005"])],
)
def test_timer_handler_of_the_sdk_is_found_when_it_is_public(decorators, expected):
    """The SDK lets in the actor itself alone, unless a decorator opens the handler."""
    source = sdk_actor(f"@public\ndef go(self, payload): timer.schedule(9, handler='tick')\n{decorators}\n"
                       "def tick(self, payload): self.storage['n'] = 1")  # fmt: skip
    assert [rule for _, rule in found(source)] == expected


# TB006, TB008


@pytest.mark.parametrize(
    "loop",
    [
        'for n in range(int(pvm_host.get_state(b"count"))):',
        "for n in _load():",
        'count = int(pvm_host.get_state(b"count"))\n    for n in range(count):',
        'count: int = int(pvm_host.get_state(b"count"))\n    for n in range(count):',
        'while pvm_host.get_state(b"next"):',
        'while True:\n        if pvm_host.get_state(b"next") is None: break',
        'while True:\n        job = pvm_host.get_state(b"next")\n        if job is None: return b""',
        'count = int(pvm_host.get_state(b"count"))\n    n = 0\n    while n < count:\n        n += 1',
        'count = int(pvm_host.get_state(b"count"))\n    while count > 0:\n        count -= 1',
        'for n in range(1, int(pvm_host.get_state(b"count")) + 1):',
    ],
)
def test_loop_is_found_when_the_storage_says_how_long_it_is(loop):
    """Whatever grows with use will not fit a fire's gas limit one day."""
    source = f"def go(payload):\n    {loop}\n        pvm_host.delete_state(b'x')\ndef _load():\n"
    source += "    stored = pvm_host.get_state(b'all')\n    return json.loads(stored)\nimport json\n"
    assert [rule for _, rule in found(source)] == ["TB006"]


@pytest.mark.parametrize(
    "loop",
    [
        'for n in range(min(5, int(pvm_host.get_state(b"count")))):',
        "for n in _load()[:10]:",
        "for n in range(10):",
        'for key, value in pvm_host.scan_state_prefix(b"p/", 20):',
        "for n in payload:",
        "while pvm_host.gas_left() > 10_000:",
        "n = 0\n    while True:\n        n += 1\n        if n == 5: break",
        'at = int(pvm_host.get_state(b"at"))\n    end = min(at + 5, len(_load()))\n    for n in range(at, end):',
        'at = int(pvm_host.get_state(b"at"))\n    end = min(at + 5, 9)\n    while at < end:\n        at += 1',
        'at = int(pvm_host.get_state(b"at"))\n    end = min(at + 5, len(_load()))\n    for n in range(end - at):',
    ],
)
def test_loop_passes_when_it_has_a_bound(loop):
    """A slice, a least of two, a limit of rows."""
    source = f"def go(payload):\n    {loop}\n        pvm_host.delete_state(b'x')\ndef _load():\n"
    source += "    return json.loads(pvm_host.get_state(b'all'))\nimport json\n"
    assert found(source) == []


def test_comprehension_is_found_when_each_turn_calls_the_host():
    """It is a loop."""
    source = "def go(p):\n    return [pvm_host.get_state(b'%d' % n) for n in range({})]\n"
    assert found(source.format("int(pvm_host.get_state(b'count'))")) == [(2, "TB006")]
    assert found(source.format("9")) == []


def test_loop_passes_when_it_costs_little():
    """A sum over a record of the storage is one read."""
    assert (
        found("def go(p):\n    t = 0\n    for n in pvm_host.get_state(b'l'):\n        t += n\n    return b'%d' % t\n")
        == []
    )


def test_call_of_an_actor_in_a_loop_is_found_unless_it_is_caught():
    """One that fails would take back the work for the others."""
    call = "pvm_host.call_actor(payload, 'pay', b'', 10_000)"
    loop = "def go(payload):\n    for n in range(3):\n        {}\n"
    caught = "try:\n            {}\n        except pvm_host.HostError:\n            pass"
    assert found(loop.format(call)) == [(3, "TB008")]
    assert found(loop.format(caught.format(call))) == []
    assert found(f"def go(payload):\n    {call}\n    for n in {call}: pass\n") == []
    assert found(loop.format(f"try:\n            {call}\n        finally:\n            pass")) == [(4, "TB008")]


# TB007

CONTINUATION = """\
from cowboy_sdk import actor, capture, public, runner
@actor
class A:
    @public
    @runner.continuation
    async def ask(self, msg):
"""


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("n = 1\nctx.a = await runner.llm('x')\nreturn n", [9]),
        ("ctx.a = await runner.llm('x')\nreturn msg", [8]),
        ("self.n = 1\nctx.a = await runner.llm('x')\nreturn self.n", [9]),
        ("n = await runner.llm('x')\nctx.b = await runner.llm('y')\nreturn n", [9]),
        ("n = 1\nctx.a = await runner.llm('x')\nctx.b = await runner.llm(n)\nreturn ctx", [9]),
        ("return await runner.llm('x')", [7]),
        ("if msg:\n    ctx.a = await runner.llm('x')\nreturn ctx", [8]),
        ("ctx.a = str(await runner.llm('x'))", [7]),
        ("\n".join(["ctx.a = await runner.llm('x')"] * 9), [6]),
    ],
)
def test_await_is_found_when_it_loses_something(body, lines):
    """What comes after it runs in another transaction."""
    source = CONTINUATION + "".join(f"        {line}\n" for line in body.splitlines())
    assert found(source) == [(line, "TB007") for line in lines]


@pytest.mark.parametrize(
    "body",
    [
        "ctx = capture()\nctx.n = 1\nctx.a = await runner.llm('x')\nreturn ctx.n",
        "n = 1\nctx.a = await runner.llm(n)\nn = 2\nreturn n",
        "n = await runner.llm(msg)\nreturn n.text",
        "ctx.a = await runner.llm('x')\nself.n = 1\nreturn self.n",
        "ctx.a = await runner.llm('x')\nreturn self.storage.get('n')",
        "return b''",
    ],
)
def test_await_passes_when_what_follows_has_what_it_needs(body):
    """The captured context, the storage, and what is made after the await."""
    assert found(CONTINUATION + "".join(f"        {line}\n" for line in body.splitlines())) == []


# TB009, TB010, TB011


def test_upgrade_is_found_when_live_timers_call_what_it_lacks():
    """The message says which timers."""
    terms = LintTerms(PARAMS, {"tick": "2 live timers, the next in block 9, call", "tock": "1 live timer calls"})
    [only] = lint_source(b"def tick(payload):\n    return b''\n", terms)
    assert (only.rule, only.line) == ("TB009", 1)
    assert only.message.startswith("1 live timer calls tock, which this source no longer has")


def test_finding_is_ignored_when_a_comment_names_its_rule():
    """At the end of its line, or alone above it."""
    line = "def handle_timer(payload):{}\n    pvm_host.set_state(b'n', payload)\n"
    assert found(line.format("  # trailboss: ignore[TB005] anyone may")) == []
    assert found("# trailboss: ignore[TB001, TB005] anyone may\n" + line.format("")) == [(1, "TB010")]
    assert found("# trailboss: ignore[TB005] anyone may\n# and more\n\n" + line.format("")) == []


@pytest.mark.parametrize(
    "comment", ["ignore[TB005]", "ignore", "ignore[]", "ignored[TB005]", "ignore[E1101]", "ignore[TB999]"]
)
def test_comment_is_found_when_it_ignores_nothing(comment):
    """Or cannot be read, or names what cannot be ignored."""
    assert found(f"x = 1\ny = 2  # trailboss: {comment}\n") == [(2, "TB010")]


def test_comment_about_an_upgrade_passes_when_no_upgrade_is_checked():
    """Nothing has been looked for."""
    source = "# trailboss: ignore[TB009] they are cancelled first\nx = 1\n"
    assert found(source) == []
    assert found(source, LintTerms(PARAMS, {})) == [(1, "TB010")]


def test_recurring_timer_is_found_when_nothing_dispatches_it():
    """Its fires come to ``handle_timer``, which has to hand them to ``dispatch``."""
    source = """\
    from trailboss.sdk import dispatch, every
    def init(payload):
        every("collect", 5)
    def handle_timer(payload):
        {}
        return b""
    def collect(payload):
        return b""
    """
    assert found(source.format("pass")) == [(3, "TB011")]
    assert {"TB001", "TB011"}.isdisjoint(rules(source.format("dispatch(payload)")))


def test_interval_is_found_when_nothing_sets_it_again():
    """The SDK's interval is a timer that fires once."""
    source = """\
    from cowboy_sdk import runtime
    def init(payload):
        runtime.set_interval(5, "collect")
    def handle_timer(payload):
        {}
        return b""
    """
    assert found(source.format("pass")) == [(3, "TB011")]
    assert "TB011" not in rules(source.format('runtime.dispatch_interval(payload, {"collect": print})'))
    assert "TB011" not in rules(
        source.format("_again(payload)") + "\n    def _again(p): runtime.reschedule_interval(p)\n"
    )
