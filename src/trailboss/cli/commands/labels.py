"""Labels of a chain's directory: ``label``."""

from typing import Annotated, Final

from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import Mistake, NotFound
from trailboss.cli.options import ANYONE, Text, argument, flag
from trailboss.cli.output import Cell, columns, print_facts, print_json, print_table
from trailboss.cli.targets import NAMES, label_path, resolve_actor, resolve_timer
from trailboss.primitives.octets import Address
from trailboss.views.label_file import write_labels
from trailboss.views.labels import LabelBook, id_text, labels_in_use

COLUMNS: Final = columns("label | what | id")
NO_LABELS: Final = "there are no labels; `trailboss label WHO NAME` gives one"


@command()
def label(
    run: Invocation,
    who: Annotated[Text, argument("WHO", f"Account or actor: {ANYONE}.", "list")] = None,
    name: Annotated[Text, argument("NAME", "Its label: 1 to 40 characters.")] = None,
    timer: Annotated[bool, flag("--timer", "WHO is a timer: its id, or the first digits.")] = False,
    remove: Annotated[bool, flag("--remove", "Remove the label.")] = False,
) -> None:
    """Give an address or a timer a label, or list the labels.

    Commands show labels and take them for addresses and ids; the explorer shows those of addresses. They are in the
    file labels.json in the chain's directory, or in the one that TRAILBOSS_LABELS names, and not in the chain.

    Example: trailboss label 0x044d2D5f oracle
    """
    chain, book = run.chain, labels_in_use()
    if who is None:
        _list_labels(run, book)
        return
    if remove == (name is not None):
        raise Mistake("a label is either given or removed", "give one of NAME and --remove")
    identity = resolve_timer(chain, who) if timer else resolve_actor(chain, who)
    if name is None:
        if not book.remove(identity):
            raise NotFound(f"{identity} has no label", "list the labels with `trailboss label`")
    else:
        _set_label(book, identity, name)
    write_labels(label_path(run.place), book)
    facts: dict[str, Cell] = {"of": identity, "label": name or "none"}
    if run.as_json:
        print_json(facts)
    else:
        print_facts(facts)


def _list_labels(run: Invocation, book: LabelBook) -> None:
    if run.as_json:
        print_json({name: id_text(identity) for identity, name in book})
        return
    # As text, or each would be shown by its label.
    rows = [(name, "account" if len(each) == Address.WIDTH else "timer", id_text(each)) for each, name in book]
    print_table("Labels", COLUMNS, rows, NO_LABELS)


def _set_label(book: LabelBook, identity: bytes, name: str) -> None:
    """Give a label; raises `Mistake` for none, and for what commands take for an account."""
    if name in NAMES or f"account {name}" in NAMES:
        raise Mistake(f"{name!r} is the name of a development account", "choose another label")
    try:
        book.set(identity, name)
    except ValueError as error:
        raise Mistake(str(error), "choose another label") from None
