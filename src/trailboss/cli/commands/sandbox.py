"""``sandbox``: the image in which a chain for strangers runs its actors."""

from pathlib import Path
from typing import Annotated, Final

import typer

from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import Mistake, NotFound
from trailboss.cli.lazy import group
from trailboss.cli.options import argument
from trailboss.cli.output import Cell, columns, note, print_table, progress
from trailboss.sandbox import cache

sandbox = group("Build, show, export, import and remove the sandbox: the image that runs strangers' actors.")

BUILD_STEPS: Final = 6  # lines that a build reports
IMAGES: Final = columns("image of another version | >size")
File = Annotated[Path, argument("FILE", "File of the image.")]


def build_if_missing(image: bytes | None = None) -> None:
    """Build the image unless it is here, with a bar that shows how far it is.

    Raises:
        ConfigurationError: If a chain states an image that this version of Trailboss does not run.
    """
    if image is not None:
        cache.check_version(image)
    if not cache.is_built():
        with progress("building the sandbox", BUILD_STEPS) as advance:
            cache.build(advance)


@sandbox.command()
@command(on_chain=False)
def build(run: Invocation) -> None:
    """Build the image and compile it for this machine. It takes half a minute, once.

    The image is the same on every machine; it is checked against the digest that belongs to this version. What an
    interrupted build has left is removed, and machine code that this wasmtime cannot use; other images stay.

    Example: trailboss sandbox build
    """
    if cache.status().has_code:
        cache.remove_leftovers()
        note("the sandbox is built already")
    else:
        with progress("building the sandbox", BUILD_STEPS) as advance:
            cache.build(advance)
    _show_status(run)


@sandbox.command()
@command(on_chain=False)
def status(run: Invocation) -> None:
    """Show whether the sandbox is built, the digest that a genesis states, and the images that are kept.

    Example: trailboss sandbox status
    """
    _show_status(run)


@sandbox.command()
@command(on_chain=False)
def export(run: Invocation, file: File) -> None:
    """Write the image to a file of 6 MB, for machines that cannot build it.

    Example: trailboss sandbox export sandbox.image
    """
    cache.export_image(file)
    _show_file(run, cache.released_digest(), file)


@sandbox.command(name="import")
@command(on_chain=False)
def import_(run: Invocation, file: File) -> None:
    """Take the image from a file that `trailboss sandbox export` wrote; its digest is checked.

    Example: trailboss sandbox import sandbox.image
    """
    _show_file(run, cache.import_image(file), file)


@sandbox.command()
@command(on_chain=False)
def remove(
    run: Invocation, digest: Annotated[str, argument("DIGEST", "Digest of the image, or its first digits.")]
) -> None:
    """Remove an image, its machine code and the actors compiled for it from this machine.

    A chain that states it cannot run until it is built or imported again, by the version of Trailboss that it belongs
    to. A node that runs it goes on.

    Example: trailboss sandbox remove 0x26fd
    """
    digits = digest.lower().removeprefix("0x")
    found = [each for each in cache.kept_images() if digits and each.digest.startswith(digits)]
    if not found:
        raise NotFound(f"no image that is kept begins with {digest}", "list them with: trailboss sandbox status")
    if len(found) > 1:
        raise Mistake(f"{len(found)} images begin with {digest}", "give more digits of one of them")
    removed, image = cache.remove_image(found[0].digest), f"0x{found[0].digest}"
    run.show({"image": image, "bytes": removed}, {"image": image, "removed": _megabytes(removed)})


def _show_file(run: Invocation, image: bytes, file: Path) -> None:
    facts: dict[str, Cell] = {"image": f"0x{image.hex()}", "file": str(file)}
    run.show(facts, facts)


def _megabytes(octets: int) -> str:
    return f"{octets / 1e6:.0f} MB"


def _show_status(run: Invocation) -> None:
    found = cache.status()
    missing = "no; run: trailboss sandbox build"
    run.show(
        {
            "image": f"0x{found.digest}", "directory": found.directory, "has_image": found.has_image,
            "has_code": found.has_code,
            "images": [
                {"digest": f"0x{each.digest}", "bytes": each.bytes, "is_released": each.is_released}
                for each in found.images
            ],
        },
        {
            "image": f"0x{found.digest}",
            "built": "yes" if found.has_image else missing,
            "compiled": "yes, for this processor" if found.has_code else "on its first use",
            "directory": found.directory,
        },
    )  # fmt: skip
    others = [each for each in found.images if not each.is_released]
    if others and not run.as_json:
        typer.echo()
        rows = [(f"0x{each.digest}", _megabytes(each.bytes)) for each in others]
        print_table("images of other versions", IMAGES, rows)
