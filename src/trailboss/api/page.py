"""The reference page: what the OpenAPI description says, for people, as one page of HTML without a script.

Nothing in it comes from elsewhere than this node.
"""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid color-mix(in srgb, currentColor 30%, transparent); }
h3 { margin: 2rem 0 .3rem; font: 600 1rem/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
h3 a { color: inherit; text-decoration: none; }
p { margin: .3rem 0; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; }
td, th { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; font-size: .92rem; }
code { font: .88rem/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
nav a { margin-right: 1rem; }
"""
REFUSAL: Final = {"$ref": "#/components/schemas/Refusal"}
EVERYWHERE: Final = ("400", "429", "503")
"""Statuses with which every path may refuse."""


def reference_page(document: Mapping[str, Any]) -> str:
    """Return the page.

    Args:
        document: The OpenAPI description.
    """
    title = escape(document["info"]["title"])
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: the API</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}</style></head><body><main><h1>{title} {escape(document['info']['version'])}</h1>",
        f"<p>{_prose(document['info']['description'])}</p>",
        f"<p>Every path may refuse with {', '.join(EVERYWHERE)}, besides what is named with it.</p>",
        '<p><a href="/openapi.json">openapi.json</a></p>',
        f"<nav>{''.join(_link(tag['name']) for tag in document['tags'])}</nav>",
    ]
    for tag in document["tags"]:
        parts.append(f'<h2 id="{escape(tag["name"])}">{escape(tag["name"])}</h2><p>{_prose(tag["description"])}</p>')
        parts.extend(_operations(document, tag["name"]))
    parts.append("<h2>schemas</h2>")
    parts.extend(_schema(name, schema) for name, schema in sorted(document["components"]["schemas"].items()))
    parts.append("</main></body></html>")
    return "".join(parts)


def _link(name: str) -> str:
    return f'<a href="#{escape(name)}">{escape(name)}</a>'


def _operations(document: Mapping[str, Any], tag: str) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if tag in operation["tags"]:
                yield "".join(_operation(path, method, operation))


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    name = escape(operation["operationId"])
    yield f'<h3 id="{name}"><a href="#{name}">{method.upper()} {escape(path)}</a></h3>'
    yield f"<p>{_prose(operation['summary'])}</p><p>{_prose(operation.get('description', ''))}</p>"
    rows = [
        (f"{each['name']} ({each['in']})", each["schema"], each["description"], each.get("required", False))
        for each in operation.get("parameters", [])
    ]
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = content["schema"]
        required = schema.get("required", [])
        members = schema.get("properties", {media: schema})
        rows.extend((key, each, each.get("description", ""), key in required) for key, each in members.items())
    if rows:
        yield "<table><tr><th>parameter</th><th>is</th><th>means</th></tr>"
        for label, schema, about, is_required in rows:
            needed = "" if is_required else ", may be left out"
            yield _row(label, _words(schema) + needed, about)
        yield "</table>"
    for status, response in operation["responses"].items():
        for content in response.get("content", {}).values():
            if status in EVERYWHERE and content.get("schema") == REFUSAL:
                continue
            about = "" if status == "200" else f" {_prose(response['description'])}"
            yield f"<p><code>{escape(status)}</code> {_words(content.get('schema', {}))}{about}</p>"


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    members = schema.get("properties", {}).items()
    rows = "".join(_row(member, _words(each), each.get("description", "")) for member, each in members)
    return (
        f'<h3 id="schema-{escape(name)}">{escape(name)}</h3><p>{_prose(schema.get("description", ""))}</p>'
        f"<table>{rows}</table>"
    )


def _row(name: str, what: str, about: str) -> str:
    return f"<tr><td><code>{escape(name)}</code></td><td>{what}</td><td>{_prose(about)}</td></tr>"


def _words(schema: Mapping[str, Any]) -> str:
    """Return what a schema says, in a few words."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}">{name}</a>'
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(_words, schema[several])))
    if "enum" in schema:
        return ", ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    found = schema.get("type", "anything")
    if found == "array" and "items" in schema:
        return f"list of {_words(schema['items'])}"
    words = " or ".join(found) if isinstance(found, list) else str(found)
    if "minimum" in schema:
        words += f", {schema['minimum']} to {schema['maximum']}"
    if "default" in schema:
        words += f", {schema['default']} by default"
    return escape(words)


def _prose(text: str) -> str:
    """Return text as HTML, what stands between backticks as code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{each}</code>" if at % 2 else each for at, each in enumerate(pieces))
