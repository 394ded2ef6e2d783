"""Labels for addresses and timers, by a call of a local chain."""

from typing import TypeVar

from trailboss.testing.base_chain import BaseChain
from trailboss.testing.parties import ActorHandle, Party, TestAccount
from trailboss.views import TimerView
from trailboss.views.labels import use_labels

Labelled = TypeVar("Labelled", bound=Party | TimerView)


class LabelCalls(BaseChain):
    """The call that gives labels. Decision: D-121."""

    def label(self, what: Labelled, name: str) -> Labelled:
        """Give an account, an actor, an address or a timer (or its id) a label, and return it.

        It stands for the address or id, with its first digits, in ``repr``, messages, printed lines and explanations.
        The accounts have theirs, as ``account 0`` and ``deployer``; a later label replaces an earlier one. The chain
        does not hold it.

        Raises:
            TypeError: For anything else.
            ValueError: For another width of bytes, a label that is not 1 to 40 printable characters or begins with
                ``0x``, and one that stands for something else already.
        """
        if isinstance(what, TestAccount | ActorHandle):
            identity: bytes = what.address
        elif isinstance(what, TimerView):
            identity = what.timer_id
        elif isinstance(what, bytes):
            identity = what
        else:
            raise TypeError(f"label({what!r}): give an account, an actor, a timer, an address or an id of a timer")
        if not isinstance(name, str):
            raise TypeError(f"label(…, {name!r}): a label is text")
        try:
            self.labels.set(identity, name)
        except ValueError as error:
            raise ValueError(f"label(…, {name!r:.80}): {error}") from None
        use_labels(self.labels)
        return what
