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
        if not gc.isenabled():
            # Only help was asked for. Python looks for garbage as it ends, and would find none.
            gc.freeze()


if __name__ == "__main__":
    main()
