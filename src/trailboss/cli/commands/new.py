"""``new``: a folder to begin with."""

import re
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, Final

from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import Mistake
from trailboss.cli.options import argument, completing, one_of, option
from trailboss.cli.values import SHOWN_MAX

TEMPLATES: Final = ("clock", "sdk")
COMMON: Final = "common"
LAYOUT: Final = {
    "actor.py": "actors/{}.py",
    "test_actor.py": "tests/test_{}.py",
    "costs.json": "costs.json",
    "README.md": "README.md",
    "requirements.txt": "requirements.txt",
    "gitignore": ".gitignore",
    "workflow.yml": ".github/workflows/check.yml",
}
"""Where each file of a template goes; the braces stand for the name of the actor."""
SHARED: Final = ("README.md", "requirements.txt", "gitignore", "workflow.yml")
"""Files that all templates have alike."""
_NAME: Final = re.compile(r"(?!test_)[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*(?<![_-]test)", re.ASCII)


@command(on_chain=False)
def new(
    run: Invocation,
    name: Annotated[str, argument("NAME", "Name of the actor, and of the folder.")],
    template: Annotated[
        str,
        option(
            "NAME",
            "clock, on the host's calls alone; or sdk, a clock on the public SDK.",
            parser=one_of(TEMPLATES),
            autocompletion=completing(TEMPLATES),
        ),
    ] = TEMPLATES[0],
) -> None:
    """Make a folder with an actor, its tests, what they cost, and a workflow.

    The actor passes `trailboss check`, its tests pass, and costs.json has the cycles of each handler in each test.

    Example: trailboss new my-clock
    """
    if len(name) > SHOWN_MAX or _NAME.fullmatch(name) is None:
        raise Mistake(
            f"{name[:SHOWN_MAX]!r} is no name for an actor",
            "write small letters and digits, with a hyphen between words, as my-clock; test_ and _test are for tests",
        )
    folder = Path(name)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise Mistake(f"{folder} exists already", "give another name, or remove what is there")
    written = _files(name, template)
    for path, text in written.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    steps = f"cd {name} && trailboss check actors && pytest"
    run.show({"folder": name, "files": list(written)}, {"made": name, "files": ", ".join(written), "next": steps})


def _files(name: str, template: str) -> dict[str, str]:
    """Return the text of each file of a new folder, by its path there."""
    module = name.replace("-", "_")
    found = {}
    for source, place in LAYOUT.items():
        folder = COMMON if source in SHARED else template
        text = files("trailboss.cli").joinpath("templates", folder, f"{source}.template").read_text(encoding="utf-8")
        found[place.format(module)] = Template(text).substitute(name=name, module=module)
    return found
