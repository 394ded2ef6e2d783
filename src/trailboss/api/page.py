"""The reference page: the OpenAPI description for people, one page of HTML without a script or outside requests."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid color-mix(in srgb, currentColor 30%, transparent); }
h3 { margin: 2rem 0 .3rem; font: 600 1rem/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
p { margin: .3rem 0; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; }
td { vertical-align: top; padding: .2rem .8rem .2rem 0; font-size: .92rem; }
code { font: .88rem/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
nav a { margin-right: 1rem; }
"""
EVERYWHERE: Final = ("400", "429", "503")  # statuses with which every path may refuse


def reference_page(document: Mapping[str, Any]) -> str:
    """Return the page of an OpenAPI description."""
    info = document["info"]
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}: the API</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}</style></head><body><main><h1>{escape(info['title'])} {escape(info['version'])}</h1>",
        f"<p>{_prose(info['description'])}</p><p>Every path may also refuse with {', '.join(EVERYWHERE)}.</p>",
        '<p><a href="/openapi.json">openapi.json</a></p><nav>',
        *(f'<a href="#{tag["name"]}">{tag["name"]}</a>' for tag in document["tags"]),
        "</nav>",
    ]
    for tag in document["tags"]:
        parts.append(f'<h2 id="{tag["name"]}">{tag["name"]}</h2><p>{_prose(tag["description"])}</p>')
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    parts.extend(_operation(path, method, operation))
    parts.append("<h2>schemas</h2>")
    for name, schema in sorted(document["components"]["schemas"].items()):
        members = schema.get("properties", {}).items()
        rows = (_row(member, schema_words(each), each.get("description", "")) for member, each in members)
        parts.append(f'<h3 id="schema-{name}">{name}</h3><p>{_prose(schema.get("description", ""))}</p>')
        parts.append(f"<table>{''.join(rows)}</table>")
    return "".join((*parts, "</main></body></html>"))


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f'<h3 id="{operation["operationId"]}">{method.upper()} {escape(path)}</h3>'
    yield f"<p>{_prose(operation['summary'])}</p><p>{_prose(operation.get('description', ''))}</p><table>"
    for each in operation.get("parameters", ()):
        words = schema_words(each["schema"]) + (", required" if each.get("required") else "")
        yield _row(f"{each['name']} ({each['in']})", words, each["description"])
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = content["schema"]
        for name, each in schema.get("properties", {media: schema}).items():
            words = schema_words(each) + (", required" if name in schema.get("required", ()) else "")
            yield _row(name, words, each.get("description", ""))
    yield "</table>"
    for status, response in operation["responses"].items():
        if status not in EVERYWHERE:
            about = "" if status == "200" else response["description"]
            answers = (schema_words(content["schema"]) for content in response["content"].values())
            yield f"<p><code>{status}</code> {' or '.join(answers)} {_prose(about)}</p>"


def _row(name: str, words: str, about: str) -> str:
    return f"<tr><td><code>{escape(name)}</code></td><td>{words}</td><td>{_prose(about)}</td></tr>"


def schema_words(schema: Mapping[str, Any]) -> str:
    """Return what a schema says, as a few words of HTML."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}">{name}</a>'
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(schema_words, schema[several])))
    if "enum" in schema:
        return ", ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    found = schema.get("type", "anything")
    if found == "array" and "items" in schema:
        return f"list of {schema_words(schema['items'])}"
    words = " or ".join(found) if isinstance(found, list) else str(found)
    if "maximum" in schema:
        words += f", {schema['minimum']} to {schema['maximum']}"
    if "default" in schema:
        words += f", {schema['default']} by default"
    return escape(words)


def _prose(text: str) -> str:
    """Return text as HTML, with code between backticks."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{each}</code>" if at % 2 else each for at, each in enumerate(pieces))
