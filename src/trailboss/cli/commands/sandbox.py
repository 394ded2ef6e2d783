"""``sandbox``: the image in which a chain for strangers runs its actors."""

from pathlib import Path
from typing import Annotated, Final

from trailboss.cli.command import Invocation, command
from trailboss.cli.lazy import group
from trailboss.cli.options import argument
from trailboss.cli.output import note, progress
from trailboss.sandbox import cache

sandbox = group("Build, show, export and import the sandbox: the image that runs strangers' actors.")

BUILD_STEPS: Final = 6  # lines that a build reports
File = Annotated[Path, argument("FILE", "File of the image.")]


def build_if_missing() -> None:
    """Build the image unless it is here, with a bar that shows how far it is."""
    if not cache.is_built():
        with progress("building the sandbox", BUILD_STEPS) as advance:
            cache.build(advance)


@sandbox.command()
@command(on_chain=False)
def build(run: Invocation) -> None:
    """Build the image and compile it for this machine. It takes half a minute, once.

    The image is the same on every machine; it is checked against the digest that belongs to this version.

    Example: trailboss sandbox build
    """
    if cache.status().has_code:
        note("the sandbox is built already")
    else:
        with progress("building the sandbox", BUILD_STEPS) as advance:
            cache.build(advance)
    _show_status(run)


@sandbox.command()
@command(on_chain=False)
def status(run: Invocation) -> None:
    """Show whether the sandbox is built, where it is kept, and the digest that a genesis states.

    Example: trailboss sandbox status
    """
    _show_status(run)


@sandbox.command()
@command(on_chain=False)
def export(_run: Invocation, file: File) -> None:
    """Write the image to a file of 6 MB, for machines that cannot build it.

    Example: trailboss sandbox export sandbox.image
    """
    cache.export_image(file)
    note(f"{file} holds the image {cache.released_digest().hex()}")


@sandbox.command(name="import")
@command(on_chain=False)
def import_(_run: Invocation, file: File) -> None:
    """Take the image from a file that `trailboss sandbox export` wrote; its digest is checked.

    Example: trailboss sandbox import sandbox.image
    """
    note(f"the image {cache.import_image(file).hex()} is here")


def _show_status(run: Invocation) -> None:
    found = cache.status()
    missing = "no; run: trailboss sandbox build"
    run.show(
        {
            "image": f"0x{found.digest}", "directory": found.directory, "has_image": found.has_image,
            "has_code": found.has_code,
        },
        {
            "image": f"0x{found.digest}",
            "built": "yes" if found.has_image else missing,
            "compiled": "yes, for this processor" if found.has_code else "on its first use",
            "directory": found.directory,
        },
    )  # fmt: skip
