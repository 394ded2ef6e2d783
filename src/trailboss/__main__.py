"""The program: ``trailboss``, or ``python -m trailboss``."""

import gc
import sys
from typing import Final

INTERRUPTED: Final = 130  # exit status of a program that Ctrl-C ends


def main() -> None:
    """Run the program. Ctrl-C ends it without a traceback while its modules are imported, as it does later."""
    # What is imported stays, and looking for garbage in it would take a tenth of the start.
    gc.disable()
    try:
        from trailboss.cli.main import app  # noqa: PLC0415  # most of the start

        app(prog_name="trailboss")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        gc.freeze()  # or Python looks for garbage once more as it ends, for a tenth of the time that help takes


if __name__ == "__main__":
    main()
