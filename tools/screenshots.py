"""Pictures of every page of the explorer, of a lively chain: light and dark, wide and narrow.

python -m tools.screenshots DIRECTORY           all pages in full, PNG: to look at
python -m tools.screenshots --docs              the seven main pages, WebP: into docs/pictures/explorer
"""

import argparse
import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct
from playwright.sync_api import Browser, Page, sync_playwright

from tools.browser import CHROMIUM, FLAGS
from tools.explorer_scene import Scene, open_scene
from trailboss.explorer import links
from trailboss.model.blocks import Block

STEPS: Final = {"lane": 330, "auction": 40, "globalbox": 60}
WIDTHS: Final = {"wide": (1280, 960), "narrow": (390, 844)}
THEMES: Final = ("light", "dark")
DOCS: Final = Path("docs/pictures/explorer")
MAIN_PAGES: Final = ("overview", "block", "timer", "calendar", "actor", "payers", "fees")
"""Those that the documentation shows."""
QUALITY: Final = 78
END_SECONDS: Final = 30


class Shot(Struct, frozen=True):
    """A picture to take.

    Attributes:
        name: Of its file.
        path: Of the page.
    """

    name: str
    path: str


def shots_of(scene: Scene) -> list[Shot]:
    """Return the pages worth a picture: all main ones, and one of each thing that there is."""
    chain = scene.chain.chain
    main = {
        "overview": links.OVERVIEW,
        "blocks": links.BLOCKS,
        "timers": links.TIMERS,
        "timers-fired": f"{links.TIMERS}?state=fired",
        "calendar": links.CALENDAR,
        "accounts": links.ACCOUNTS,
        "payers": links.PAYERS,
        "fees": links.FEES,
        "lane": links.MECHANISM,
        "events": links.EVENTS,
        "mempool": links.MEMPOOL,
        "search": links.search("0x04"),
        "search-nothing": links.search("no such thing"),
        "not-found": f"{links.ROOT}/nowhere",
    }
    found = [Shot(name, path) for name, path in main.items()]
    full = _block(scene, lambda block: block.decisions is not None and block.decisions.outranked > 1)
    if full is not None:
        found.append(Shot("block", links.block(full.height)))
    failed = _block(scene, lambda block: any(receipt.error is not None for receipt in block.receipts))
    if failed is not None:
        receipt = next(each for each in failed.receipts if each.error is not None)
        found.append(Shot("transaction", links.transaction(receipt.origin_hash)))
    names = {handle.address: name for name, handle in scene.actors.items()}
    looping = [timer for timer in chain.timers() if timer.actor in names]
    found.append(Shot("timer", links.timer(looping[0].timer_id)))
    actor = next(iter(name for name in scene.actors if name.startswith(("ledger", "bidders 0", "stop"))))
    found.append(Shot("actor", links.actor(scene.actors[actor].address)))
    found.append(Shot("account", links.account(scene.chain.accounts[2].address)))
    return found


def _block(scene: Scene, holds: Callable[[Block], bool]) -> Block | None:
    """Return the last block of which something holds."""
    return next((block for block in reversed(scene.chain.chain.blocks[1:]) if holds(block)), None)


@contextmanager
def serving(mechanism: str) -> Iterator[tuple[str, list[Shot]]]:
    """Serve a scene from a node of its own; gives the node's address and the pages worth a picture."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "chain"
        scene = open_scene(mechanism, STEPS[mechanism], data_dir=directory)
        shots = shots_of(scene)
        scene.chain.close()
        arguments = ["dev", "--pace", "manual", "--port", "0", "--chain", str(directory), "--json"]
        node = subprocess.Popen([sys.executable, "-m", "trailboss", *arguments], stdout=subprocess.PIPE, text=True)
        try:
            text = ""
            while node.stdout is not None and not text.endswith("\n}\n"):
                text += node.stdout.readline()
            document = json.loads(text)
            yield f"http://{document['host']}:{document['port']}", shots
        finally:
            node.terminate()
            node.wait(timeout=END_SECONDS)


def open_page(browser: Browser, theme: str, width: str) -> Page:
    """Return a fresh page with a theme and a width; a narrow one is a telephone's."""
    across, down = WIDTHS[width]
    narrow = width == "narrow"
    context = browser.new_context(
        viewport={"width": across, "height": down},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        has_touch=narrow,
        is_mobile=narrow,
    )
    return context.new_page()


def show(page: Page, address: str) -> None:
    """Open a page."""
    page.goto(address)
    page.locator("main h1").wait_for()


def save_webp(page: Page, path: Path) -> None:
    """Store what the window shows as WebP, which Chromium writes and Playwright does not offer."""
    session = page.context.new_cdp_session(page)
    answer = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    path.write_bytes(base64.b64decode(answer["data"]))
    session.detach()


def take(browser: Browser, base: str, shots: Sequence[Shot], directory: Path, *, for_docs: bool) -> None:
    """Take the pictures in every theme and width."""
    for theme in THEMES:
        for width in WIDTHS:
            page = open_page(browser, theme, width)
            for shot in shots:
                show(page, base + shot.path)
                path = directory / f"{shot.name}-{theme}-{width}"
                if for_docs:
                    save_webp(page, path.with_suffix(".webp"))
                else:
                    page.screenshot(path=path.with_suffix(".png"), full_page=True)
            page.context.close()


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, help="where pictures of every page go")
    parser.add_argument("--docs", action="store_true", help="take those of the documentation instead")
    parser.add_argument("--mechanism", default="lane", choices=sorted(STEPS), help="of the chain")
    options = parser.parse_args()
    if options.directory is None and not options.docs:
        parser.error("name a directory, or say --docs")
    directory: Path = DOCS if options.docs else options.directory
    directory.mkdir(parents=True, exist_ok=True)
    with serving(options.mechanism) as (base, shots), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        wanted = [shot for shot in shots if shot.name in MAIN_PAGES] if options.docs else shots
        take(browser, base, wanted, directory, for_docs=options.docs)
        browser.close()
    pictures = sorted(directory.glob("*.webp" if options.docs else "*.png"))
    print(f"{len(pictures)} pictures, {sum(path.stat().st_size for path in pictures):,} bytes, in {directory}")


if __name__ == "__main__":
    main()
