"""The page of metrics, from what the node declares of them."""

from collections.abc import Iterator, Sequence
from typing import Final

from trailboss.node.metrics import Described, Metrics

INTRO: Final = """
# Metrics

`GET /metrics` answers in the text format of Prometheus, version 0.0.4. What the node counts begins with `trailboss_`;
what begins with `process_` (memory, processor time, open files) is the client library's own. No label is a hash or a
path that somebody made up, and addresses are labels of a bounded number of actors and payers, so there is a bounded
number of series. The page of the [watchtower](../tutorial/watchtower.md) has rules that alert when money runs out.

Counters begin at zero when the node starts. They do not go back with the chain: a block that is lost in a reorg, and
what it held, stays counted.
"""


def metrics_page() -> str:
    """Return the page, without the line that says who wrote it."""
    parts = [INTRO.lstrip()]
    for heading, metrics in Metrics().described.items():
        rows = "\n".join(_rows(metrics))
        parts.append(f"## {heading}\n\n| metric | what it is | labels |\n| --- | --- | --- |\n{rows}\n")
    return "\n".join(parts)


def _rows(metrics: Sequence[Described]) -> Iterator[str]:
    for each in metrics:
        labels = "; ".join(f"`{name}`: {meaning}" for name, meaning in each.labels.items())
        yield f"| `{each.name}` | {each.about} | {labels} |"
