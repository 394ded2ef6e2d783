"""The browser that shows the explorer to tests and to its photographer."""

import shutil
from typing import Final

CHROMIUM: Final = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Nothing that asks another host, and nothing that a machine without a screen lacks."""
