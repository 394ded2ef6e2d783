"""Write the reference pages from the code, the pictures, and what the program prints into the pages that show it.

``python -m tools.reference`` rewrites them all. A test holds what is committed to what this writes, and what the pages
say of events and prices to what a chain does.
"""

import inspect
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import fields
from typer.testing import CliRunner

from tools.api_page import api_page
from tools.cli_page import cli_page
from tools.host_stub import STUB, host_stub
from tools.metrics_page import metrics_page
from tools.pictures import FOLDER, pictures
from tools.plugin_page import plugin_page
from tools.reference_text import (
    CALLS,
    CALLS_BY_MECHANISM,
    CALLS_IMPORTS,
    CALLS_INTRO,
    CALLS_MISSING,
    ERRORS_INSIDE,
    ERRORS_INTRO,
    EVENTS,
    EVENTS_INTRO,
    PARAMS_INTRO,
)
from tools.scaffold_costs import scaffold_costs
from tools.sessions import with_sessions
from tools.tidy import field_facts
from tools.wording import WORDING, wording
from trailboss.cli.main import app
from trailboss.mechanisms.registry import MECHANISMS, build_mechanism
from trailboss.model import events
from trailboss.params import ChainParams, load_params, records
from trailboss.params.loader import PRESETS, SUBJECTS
from trailboss.primitives.errors import RejectionReason
from trailboss.sandbox import cache
from trailboss.sandbox import image as image_package
from trailboss.sandbox.engines import EngineName
from trailboss.sandbox.image.builder import build_image
from trailboss.sandbox.stage import on_stage
from trailboss.vm.call_parameters import parameters
from trailboss.vm.guest_api import UNSUPPORTED, host_code
from trailboss.vm.rules import ACTOR_MODULES

ROOT: Final = Path(__file__).resolve().parents[1]
MADE: Final = "<!-- Written by `python -m tools.reference`; do not edit. -->\n\n"
OTHER_PRESETS: Final = PRESETS[1:]
"""Presets that change what their files say of mainnet's."""
DECISION: Final = re.compile(r"\bD-(\d{2,3})\b")
FACTS: Final = re.compile(r"cowboy-facts(?:\.md)? §((\d+)(?:\.\d+)?)")


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of Markdown."""
    lines = [_row(headings), _row("---" for _ in headings)]
    lines.extend(_row(cell.replace("|", "\\|") for cell in row) for row in rows)
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def linked(text: str) -> str:
    """Return text with its decisions and facts as links."""
    pages = {f"{int(path.name[:4]):02}": path.name for path in sorted((ROOT / "docs/decisions").glob("0*.md"))}
    text = DECISION.sub(lambda match: f"[D-{match[1]}](../decisions/{pages[match[1]]})", text)
    return FACTS.sub(lambda match: f"[cowboy-facts §{match[1]}](../spec/sources.md#facts-{match[2]})", text)


def params_page() -> str:
    """Return the page of parameters: one table a subject."""
    mainnet = load_params("mainnet")
    changed = {name: _preset(name) for name in OTHER_PRESETS}
    explained = field_facts(inspect.getsource(records))
    parts = [PARAMS_INTRO.lstrip()]
    for subject, record in SUBJECTS.items():
        parts.append(f"## {subject}\n")
        parts.append(linked(" ".join((record.__doc__ or "").split())) + "\n")
        others = {name: tables[subject] for name, tables in changed.items() if subject in tables}
        parts.append(_params_table(subject, record, mainnet, others, explained))
    return MADE + "\n".join(parts)


def _params_table(
    subject: str,
    record: type,
    mainnet: ChainParams,
    others: Mapping[str, Mapping[str, int]],
    explained: Mapping[str, str],
) -> str:
    meanings = any(f"{record.__name__}.{field.name}" in explained for field in fields(record))
    rows = []
    for field in fields(record):
        row = [f"`{subject}.{field.name}`", f"{getattr(getattr(mainnet, subject), field.name):,}"]
        row += [f"{changed[field.name]:,}" if field.name in changed else "" for changed in others.values()]
        # A construct of the source needs no words: its field has its name.
        row += [linked(explained.get(f"{record.__name__}.{field.name}", ""))] if meanings else []
        rows.append(row)
    return table(["parameter", "mainnet", *others, *(["meaning"] if meanings else [])], rows)


def _preset(name: str) -> dict[str, dict[str, Any]]:
    path = ROOT / "src/trailboss/params/presets" / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def errors_page() -> str:
    """Return the page of errors: what each refusal means and what to do about it."""
    rows = (
        (f"E{reason.code}", str(host_code(reason)), f"`{reason.slug}`", reason.value.why, reason.value.fix)
        for reason in sorted(RejectionReason, key=lambda each: each.code)
    )
    inside = ERRORS_INSIDE.format(
        other=RejectionReason.PVM_ERROR,
        cycles=RejectionReason.OUT_OF_CYCLES,
        cells=RejectionReason.OUT_OF_CELLS,
        memory=RejectionReason.OUT_OF_MEMORY,
    )
    return MADE + ERRORS_INTRO.lstrip() + table(("code", "inside", "slug", "the rule", "what to do"), rows) + inside


def events_page() -> str:
    """Return the page of events, in the order in which the code lists them."""
    rows = (
        (f"`{name}`", entry.place, entry.emitter, entry.when, ", ".join(f"`{field}`" for field in entry.fields))
        for name, entry in ((name, EVENTS[name]) for name in event_names())
    )
    intro = EVENTS_INTRO.lstrip().format(endings=", ".join(f"`{name}`" for name in events.TIMER_ENDINGS))
    return MADE + intro + table(("event", "part of", "emitter", "when", "fields"), rows)


def event_names() -> Iterator[str]:
    """Yield the name of every event of the protocol, in the order of the code."""
    for constant, value in vars(events).items():
        if constant.isupper() and isinstance(value, str):
            yield value


def calls_page() -> str:
    """Return the page of host calls."""
    costs = load_params("mainnet").costs
    rows = []
    for name, entry in CALLS.items():
        price = " + ".join(f"{getattr(costs, each):,}" for each in entry.prices) or "`amount`"
        forms = [(entry.other, entry.other_what)] if entry.other else []
        for names, what in (*forms, (parameters(name), entry.what)):
            rows.append((f"`{name}({', '.join(names)})`", price, linked(what)))
    missing = CALLS_MISSING.format(names=", ".join(f"`{name}`" for name in UNSUPPORTED))
    calls = table(("call", "cycles", "what it gives or does"), rows)
    imports = table(
        ("module", "names"),
        ((f"`{name}`", ", ".join(f"`{each}`" for each in names)) for name, names in ACTOR_MODULES.items()),
    )
    parts = (CALLS_INTRO.lstrip(), calls, CALLS_BY_MECHANISM, _calls_by_mechanism(), missing, CALLS_IMPORTS, imports)
    return MADE + "".join(parts)


def _calls_by_mechanism() -> str:
    params = load_params("mainnet")
    had = {name: build_mechanism(name, params).policy.calls for name in MECHANISMS}
    forms = sorted({form for calls in had.values() for form in calls})
    rows = ([f"`{form}`", *("yes" if form in calls else "" for calls in had.values())] for form in forms)
    return table(("call", *had), rows)


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "params": params_page,
    "errors": errors_page,
    "events": events_page,
    "host-calls": calls_page,
    "cli": lambda: MADE + cli_page(),
    "api": lambda: MADE + api_page(),
    "metrics": lambda: MADE + metrics_page(),
    "pytest-plugin": lambda: MADE + linked(plugin_page()),
}
SESSIONS: Final = (
    "docs/mechanisms.md",
    "docs/tutorial/activation.md",
    "docs/tutorial/chain-directory.md",
    "docs/tutorial/other-mechanisms.md",
    "docs/tutorial/watchtower.md",
)
"""Pages that show sessions of the program."""


DEMO_WIDTH: Final = "132"
DEMO_BLOCK: Final = re.compile(r"(?<=`make demo` prints:\n\n```text\n).*?(?=```\n)", re.DOTALL)


def readme() -> str:
    """Return the README with what the demo prints now."""
    printed = CliRunner().invoke(app, ["demo"], env={"COLUMNS": DEMO_WIDTH}, catch_exceptions=False).stdout
    lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    return DEMO_BLOCK.sub(lambda _: lines, (ROOT / "README.md").read_text(encoding="utf-8"))


def write_image() -> None:
    """Build the sandbox's image from this tree, keep it, and write its digest, which a genesis states."""
    image = on_stage(build_image)
    cache.keep(image)
    Path(image_package.__file__).with_name("digest.txt").write_text(f"{image.digest().hex()}\n", encoding="utf-8")


def main() -> None:
    """Rewrite the image's digest, every page, the pictures, the stub, the README and the sessions."""
    write_image()
    # What the pages show of new chains does not depend on what this machine has.
    os.environ["TRAILBOSS_VM"] = EngineName.NATIVE
    folder = ROOT / "docs/reference"
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (folder / f"{name}.md").write_text(page(), encoding="utf-8")
    (ROOT / FOLDER).mkdir(exist_ok=True)
    for name, picture in pictures().items():
        (ROOT / name).write_text(picture, encoding="utf-8")
    (ROOT / STUB).write_text(host_stub(), encoding="utf-8")
    for name, text in scaffold_costs().items():
        (ROOT / name).write_text(text, encoding="utf-8")
    (ROOT / "README.md").write_text(readme(), encoding="utf-8")
    (ROOT / WORDING).write_text(wording(ROOT / "src/trailboss"), encoding="utf-8")
    for name in SESSIONS:
        (ROOT / name).write_text(with_sessions((ROOT / name).read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
