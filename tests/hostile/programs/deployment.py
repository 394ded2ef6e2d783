"""Sources that attack the parser, the compiler and the rules. Large ones are made by functions."""

from tests.hostile.program import HostileProgram, body

GO = "def go(payload):\n    return "
FITS = 60_000  # characters of the large sources that a deployment still accepts
LARGE = 2_000_000  # and of those that it refuses by size


def expression(name: str, reason: str, text: str) -> HostileProgram:
    """Return a program whose handler returns an expression."""
    return HostileProgram(name, reason, f"{GO}{text}\n")


def lines(name: str, reason: str, *texts: str) -> HostileProgram:
    """Return a program of lines before its handler."""
    return HostileProgram(name, reason, "\n".join((*texts, f"{GO}1\n")))


def chain_of_blocks(header: str, levels: int) -> str:
    """Return blocks within one another, with a statement in the innermost."""
    return "\n".join(" " * level + header for level in range(levels)) + "\n" + " " * levels + "pass"


PROGRAMS = (
    expression("attribute-chain", "attributes of attributes", "payload" + ".a" * 20_000),
    expression("await-chain", "awaits within one another", "await " * 5_000 + "1"),
    expression("binary-chain", "ten thousand additions, which nest to the left", "1" + " + 1" * 10_000),
    lines(
        "blocks-instrumented",
        "eleven managers within one another, to which the meter adds as many blocks",
        "def f(x):",
        *(" " * level + "with x:" for level in range(1, 12)),
        " " * 12 + "pass",
    ),
    lines("blocks-many", "fourteen thousand blocks, each of many steps for a compiler", "with x:x\n" * 9_000),
    expression("boolean-chain", "one operator with ten thousand operands", "1" + " and 1" * 10_000),
    expression("brackets-mixed", "brackets of three kinds within one another", "([{" * 500 + "}])" * 500),
    expression("brackets-open", "brackets that nothing closes", "(" * 50_000),
    lines("bytes-null", "a null byte in a comment", "# \0"),
    lines("bytes-null-code", "a null byte in the code", "x = 1\0"),
    lines("bytes-surrogate", "a lone surrogate in a text", "x = '\ud800'"),
    lines("bytes-surrogate-name", "a lone surrogate in a name", "x\ud800 = 1"),
    expression("call-chain", "calls of calls", "go" + "()" * 20_000),
    lines("class-bases", "a class with twenty thousand bases", f"class A({', '.join(['object'] * 7_000)}): pass"),
    lines("class-nested", "classes within classes", chain_of_blocks("class A:", 99)),
    lines("class-nested-deep", "classes within classes, too deep", chain_of_blocks("class A:", 250)),
    expression("comparison-chain", "one comparison of ten thousand operands", "1" + " < 1" * 10_000),
    expression(
        "comprehension-loops", "a comprehension of five thousand loops", "[1" + " for x in payload" * 3_000 + "]"
    ),
    expression("comprehension-nested", "comprehensions within one another", "[" * 90 + "1" + " for x in payload]" * 90),
    expression("conditional-chain", "conditional expressions to the right", "1 if payload else " * 5_000 + "1"),
    expression("constant-fold-list", "a compiler that folds a long tuple", "((1, 2) * 10**9)[0]"),
    expression("constant-fold-power", "a compiler that folds a power", "(2 ** 10**9) & 1"),
    expression("constant-fold-shift", "a compiler that folds a shift", "(1 << 10**9).bit_length()"),
    expression("constant-fold-text", "a compiler that folds a repetition", "len('a' * 10**9)"),
    expression(
        "constant-fold-tower", "a compiler that folds many powers", "(" + " + ".join(["9**9**5"] * 50) + ") & 1"
    ),
    lines(
        "constants-colliding",
        "constants of one hash in the guest, which a compiler compares with one another",
        f"X = [{','.join(str((2**31 - 1) * n) for n in range(1, 8_400))}]",
    ),
    lines("continuation-lines", "a line of fifty thousand continuations", "x = 1 +" + "\\\n" * 50_000 + "1"),
    lines("decorators", "ten thousand decorators of one function", *["@abs"] * 10_000, "def f(): pass"),
    lines("dedent-odd", "indentation that steps out to no level", "if 1:\n        x = 1\n    y = 2"),
    lines(
        "default-arguments",
        "a function of five thousand defaults",
        f"def f({', '.join(f'a{n}=1' for n in range(5_000))}): pass",
    ),
    lines(
        "dict-display",
        "a dict of ten thousand pairs in one line",
        f"X = {{{', '.join(f'{n}: {n}' for n in range(5_000))}}}",
    ),
    lines("elif-chain", "five thousand branches, which nest", "if 0: pass", *["elif 0: pass"] * 5_000),
    lines("encoding-bom", "a byte order mark in front", "\ufeffx = 1"),
    lines("encoding-comment", "a comment that states another encoding", "# -*- coding: rot13 -*-", "vzcbeg bf"),
    lines("encoding-form-feed", "form feeds, which set the column back", "if 1:\n\f    x = 1\n    \f y = 2"),
    lines(
        "encoding-homoglyph", "a name that Unicode makes equal to another", "\uff45\uff56\uff41\uff4c = 1", "X = eval"
    ),
    lines("encoding-homoglyph-attribute", "a refused attribute in other letters", "X = abs.__glo\U0001d44fals__"),
    lines(
        "encoding-homoglyph-call",
        "a refused name in other letters",
        "X = \U0001d452\U0001d463\U0001d44e\U0001d459('1')",
    ),
    lines(
        "encoding-line-separator",
        "separators that are lines to some tools alone",
        "x = '\u2028\u2029\x85'  # \x0b\x0c\x1c",
    ),
    lines("encoding-new-letters", "a name of letters that Unicode 15 added", "\U00031350 = 1"),
    lines("encoding-right-to-left", "marks that show code in another order", "x = 1 # \u202e ; import os"),
    expression(
        "escapes-many", "a text of ten thousand named characters", "'" + "\\N{LATIN SMALL LETTER A}" * 3_000 + "'"
    ),
    lines(
        "finally-chain",
        "try within finally within try",
        chain_of_blocks("try:", 40)
        + "\n"
        + "\n".join(" " * level + "finally:\n" + " " * level + " pass" for level in reversed(range(40))),
    ),
    lines(
        "finally-returns",
        "a thousand ways out, for each of which a compiler copies what stands after finally",
        "def f(x):\n try:\n" + "  if x:return\n" * 1_000 + " finally:\n" + "  x\n" * 2_000,
    ),
    lines(
        "finally-within-finally",
        "blocks after finally in blocks after finally, which a compiler doubles each time",
        *(f"{' ' * level}try:x\n{' ' * level}finally:" for level in range(30)),
        " " * 30 + "x",
    ),
    lines("findings-many", "ten thousand violations in one line", "set();" * 10_000),
    expression("float-exponent", "a float with an exponent of many digits", "1e" + "9" * 10_000),
    expression("float-long", "a float of fifty thousand digits", "0." + "3" * 50_000),
    expression("format-brackets", "brackets within a field", "f'{" + "(" * 300 + "1" + ")" * 300 + "}'"),
    expression("format-fields", "a formatted string of ten thousand fields", "f'" + "{payload}" * 5_000 + "'"),
    lines("format-many", "a formatted string in each of five thousand lines", "f'{x}'\n" * 5_000),
    expression("format-modern", "a formatted string that only later versions read", "f'{'a' + f'{1}'}'"),
    lines("format-nested", "formatted strings within one another", "X = f'{f\"{1}\"}'"),
    lines("format-nested-spec", "a format within a format within a format", "X = f'{1:{1:{1:{1}}}}'"),
    lines("functions-many", "ten thousand functions", *(f"def f{n}(): pass" for n in range(5_000))),
    lines("functions-nested", "functions within functions", chain_of_blocks("def f():", 95)),
    lines(
        "global-many",
        "global statements of ten thousand names",
        "def f():\n    global " + ", ".join(f"a{n}" for n in range(8_000)),
    ),
    lines("identifier-long", "a name of a hundred thousand letters", "a" * 100_000 + " = 1"),
    lines("import-star", "a star import", "from cowboy_sdk import *"),
    lines("imports-many", "ten thousand imports", *["import json"] * 8_000),
    expression(
        "integer-hexadecimal", "a number of a hundred thousand hexadecimal digits", "(0x" + "f" * 100_000 + ") & 1"
    ),
    expression("integer-long", "a number of a hundred thousand digits", "1" * 100_000),
    expression("integer-underscores", "a number of many underscores", "1" + "_1" * 2_000),
    lines("keyword-soft", "soft keywords as names", "match = type = case = _ = 1", "match (case):\n case case: pass"),
    expression("lambda-nested", "functions of functions", "lambda: " * 95 + "1"),
    expression("lambda-nested-deep", "functions of functions, too deep", "lambda: " * 5_000 + "1"),
    lines("lambdas-alike", "functions that differ in their lines alone", "lambda:x\n" * 12_000),
    lines("line-endings", "three kinds of line ends, mixed", "x = 1\r\ny = 2\rz = 3\n\r\n\r"),
    lines("line-long", "a line of a hundred thousand statements", "x = 1;" * 15_000),
    lines("lines-dense", "as many statements as a source may have", "x+x\n" * 12_000),
    expression("list-long", "a list of thirty thousand items", "[" + "1," * 30_000 + "]"),
    expression("list-nested", "lists within lists", "[" * 99 + "]" * 99),
    expression("list-nested-deep", "lists within lists, too deep", "[" * 30_000 + "]" * 30_000),
    lines(
        "match-alternatives",
        "a pattern of five thousand alternatives",
        "match 1:\n case " + " | ".join(["1"] * 5_000) + ": pass",
    ),
    lines("match-cases", "five thousand cases", "match 1:", *(f" case {n}: pass" for n in range(5_000))),
    lines("match-nested", "patterns within one another", "match 1:\n case " + "[" * 90 + "x" + "]" * 90 + ": pass"),
    lines(
        "match-nested-deep",
        "patterns within one another, too deep",
        "match 1:\n case " + "[" * 5_000 + "]" * 5_000 + ": pass",
    ),
    lines("names-many", "ten thousand names", *(f"a{n} = {n}" for n in range(8_000))),
    lines("null-source", "nothing but null bytes", "\0" * 100),
    expression("parentheses", "parentheses at the limit", "(" * 95 + "1" + ")" * 95),
    expression("parentheses-deep", "parentheses beyond the limit", "(" * 10_000 + "1" + ")" * 10_000),
    expression("power-chain", "a power of powers, which nests to the right", "1" + " ** 1" * 5_000),
    lines("quotes-open", "quotes that nothing closes, in every line", "\\'''\n" * 22_000),
    lines("quotes-open-line", "quotes that nothing closes, in one line", "\\'x" * 36_000),
    lines("return-outside", "a return outside a function", "return 1"),
    lines("size-comment", "two megabytes of comment", "# " + "x" * LARGE),
    lines("size-lines", "two megabytes of empty lines", "\n" * LARGE),
    expression("size-text", "a text of two megabytes", "'" + "x" * LARGE + "'"),
    lines(
        "slots-of-class",
        "slots of ten thousand names",
        f"class A:\n    __slots__ = ({', '.join(repr(f'a{n}') for n in range(8_000))})",
    ),
    lines("spaces-deep", "one statement in a column of fifty thousand", "if 1:\n" + " " * 50_000 + "x = 1"),
    expression("starred-many", "a call with five thousand unpacked arguments", "max(" + "*payload, " * 5_000 + "1)"),
    expression("string-adjacent", "ten thousand texts beside one another", "'a' " * 10_000),
    expression("string-open", "a text that nothing closes", "'''" + "x" * FITS),
    expression("subscript-chain", "subscripts of subscripts", "payload" + "[0]" * 20_000),
    lines("tabs-and-spaces", "indentation of tabs and spaces, mixed", "if 1:\n\tx = 1\n        y = 2"),
    lines("targets-many", "an assignment to ten thousand targets", "a = " * 10_000 + "1"),
    expression("ternary-nested", "conditions within conditions", "(1 if " * 90 + "1" + " else 2)" * 90),
    lines("try-nested", "try within try", chain_of_blocks("try:", 30)),
    lines("type-comment", "comments that a parser may read as types", "x = 1  # type: " + "[" * 5_000),
    expression("unary-chain", "ten thousand signs", "-" * 10_000 + "1"),
    expression("unary-not-chain", "ten thousand negations", "not " * 10_000 + "1"),
    lines(
        "unpack-many", "an unpacking of ten thousand names", ", ".join(f"a{n}" for n in range(8_000)) + " = range(8000)"
    ),
    expression("walrus-nested", "assignments within expressions", "(x := " * 90 + "1" + ")" * 90),
    lines("with-items", "a statement of five thousand managers", "with " + ", ".join(["payload"] * 5_000) + ": pass"),
    body(
        "with-nested",
        "with within with",
        "\n".join(" " * n + "with payload:" for n in range(25)) + "\n" + " " * 25 + "pass",
    ),
    lines("yield-at-module", "a yield outside a function", "yield 1"),
)
