"""A hook of mkdocs: the site has its pages as Markdown beside the HTML, and their index as ``llms.txt``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trailboss.documentation import INDEX, document_pages, documents_index


def on_post_build(config: Mapping[str, Any]) -> None:
    """Write them into the site that mkdocs has built."""
    site = Path(config["site_dir"])
    for page in document_pages().values():
        (site / page.path).write_text(page.text, encoding="utf-8")
    (site / INDEX).write_text(documents_index(""), encoding="utf-8")
