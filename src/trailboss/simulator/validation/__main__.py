"""``python -m trailboss.simulator.validation``: print how known results compare, or write them as a page."""

import sys
from argparse import ArgumentParser
from pathlib import Path

from trailboss.simulator.validation.page import LAWS, page


def main() -> int:
    """Compute all laws; return 1 if one of them does not hold, 2 if the page cannot be written."""
    parser = ArgumentParser(prog="python -m trailboss.simulator.validation", description=main.__doc__)
    parser.add_argument("--page", type=Path, help="file to write the page to, in place of printing it")
    file: Path | None = parser.parse_args().page
    laws = [law() for law in LAWS]
    text = page(laws)
    if file is None:
        print(text, end="")
    else:
        try:
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            print(f"cannot write the page {file}: {error.strerror}", file=sys.stderr)
            return 2
    failing = [f"{law.name}: {reading.name}" for law in laws for reading in law.readings if not reading.holds]
    print(*failing, sep="\n", end="\n" if failing else "", file=sys.stderr)
    return int(bool(failing))


if __name__ == "__main__":
    sys.exit(main())
