"""What an agent can do with a chain: each method is a tool of `trailboss mcp`, with its docstring and its arguments.

Amounts go in as people write them, ``20cby``, and come out in base units, as everywhere in JSON. Accounts, actors and
timers are given as on the command line: in full, by their first digits, an account also by its number.
"""

from itertools import islice
from typing import Any, Final

from trailboss.cli.errors import Mistake, NotFound
from trailboss.cli.local_chains import CommandChain
from trailboss.cli.targets import find_actor, resolve_actor, resolve_execution, resolve_timer
from trailboss.cli.values import parse_amount, parse_payload
from trailboss.documentation import document_pages, documents_index, search_documents
from trailboss.lint import LintTerms, lint_source
from trailboss.model.transactions import ExecuteActor, Transfer
from trailboss.primitives.octets import Address, Hash32
from trailboss.testing import TestAccount
from trailboss.views.accounts import holder_of, known_names
from trailboss.views.records import TimerEntry
from trailboss.views.status import ChainStatus, status_of
from trailboss.views.timer_list import STATES, TimerFilter

LIMIT: Final = 20  # entries of a list
LIMIT_MAX: Final = 1_000
BLOCKS_MAX: Final = 100_000  # blocks that one call builds


class AgentTools:
    """The tools, on one chain."""

    def __init__(self, local: CommandChain) -> None:
        """Take the chain that all tools work on."""
        self.local = local
        self.chain = local.chain

    # Acting

    def deploy(self, source: str, value: str = "0", sender: str = "0", entitlements: list[str] | None = None) -> Any:
        """Deploy an actor and fund it. `source` is Python text, or a path ending in .py; `value` an amount, as 20cby.

        Gives the actor's address and the receipt. A public chain wants the entitlement timer.schedule for timers.
        """
        account, amount = self._account(sender), parse_amount(value)
        handle = self.local.deploy(source, sender=account, value=amount, entitlements=entitlements or ())
        return {"actor": handle.address, "receipt": handle.receipt}

    def call(self, actor: str, handler: str, payload: str = "", sender: str = "0") -> Any:
        """Call a handler of an actor, in a block of its own. `payload` is text, or 0x and hexadecimal digits.

        As `sender` an actor is impersonated: as itself it can call the handlers that are for its timers alone.
        """
        instruction, address = self._call_of(actor, handler, payload), resolve_actor(self.chain, sender)
        account = self._keys().get(address)
        if account is None:
            return self.local.impersonate(address, instruction)
        return self.local.send(instruction, sender=account)

    def simulate(self, actor: str, handler: str, payload: str = "", sender: str = "0") -> Any:
        """Give the receipt that a call would have in the next block; nothing changes."""
        return self.local.simulate(self._call_of(actor, handler, payload), sender=resolve_actor(self.chain, sender))

    def simulate_fire(self, timer: str) -> Any:
        """Give the receipt that the next fire of a live timer would have; nothing changes."""
        return self.local.simulate_fire(resolve_timer(self.chain, timer))

    def send_money(self, to: str, amount: str, sender: str = "0") -> Any:
        """Send money, as 1.5cby, from an account to an account or an actor, in a block of its own."""
        instruction = Transfer(resolve_actor(self.chain, to), parse_amount(amount))
        return self.local.send(instruction, sender=self._account(sender))

    def set_balance(self, who: str, amount: str) -> Any:
        """Set the balance of an account or an actor, as 1cby: a development call that changes the supply."""
        return self.local.set_balance(resolve_actor(self.chain, who), parse_amount(amount))

    def mine(self, blocks: int = 1) -> Any:
        """Build blocks; every due timer runs in its own block. Gives the height and the receipts of the fires."""
        _check_count("blocks", blocks, BLOCKS_MAX)
        before = self.local.height
        self.local.mine(blocks)
        fires = self.local.receipts(before + 1, origin="timer")
        return {"height": self.local.height, "fires": fires[-LIMIT:], "fires_in_all": len(fires)}

    def advance_to(self, height: int) -> Any:
        """Build blocks up to a height. Gives the height and the receipts of the fires."""
        before = self.local.height
        if height <= before:
            raise Mistake(f"height {height} is not ahead: the chain is at height {before}", "name a higher one")
        return self.mine(height - before)

    def next_fire(self, actor: str | None = None) -> Any:
        """Build blocks up to the next in which a timer fires, of one actor if given. Gives the height and the fires."""
        fires = self.local.mine_to_next_fire(actor=None if actor is None else find_actor(self.chain, actor))
        return {"height": self.local.height, "fires": fires}

    # Looking

    def status(self) -> ChainStatus:
        """Give the chain's height, mechanism, basefees, money and counts of timers."""
        return status_of(self.chain)

    def balances(self, who: list[str]) -> Any:
        """Give the balances of accounts and actors, base units: 1 CBY is 1,000,000,000 of them."""
        names = known_names(self.chain.genesis)
        return [holder_of(self.chain, resolve_actor(self.chain, each), names) for each in who]

    def timers(self, state: str = "live", actor: str | None = None, limit: int = LIMIT) -> list[TimerEntry]:
        """List timers: state is live, unfunded, expired, cancelled, fired, … or all; of one actor if given."""
        if state not in STATES:
            raise Mistake(f"{state!r} is no state of a timer", f"give one of {', '.join(STATES)}")
        _check_count("limit", limit, LIMIT_MAX)
        owner = None if actor is None else resolve_actor(self.chain, actor)
        return list(islice(self.chain.list_timers(TimerFilter(state=state, actor=owner)), limit))

    def explain(self, timer: str) -> str:
        """Explain a timer: its whole life, why it did or did not fire, and what comes next."""
        return str(self.chain.explain(resolve_timer(self.chain, timer)))

    def receipts(self, since: int = 0, actor: str | None = None, limit: int = LIMIT) -> Any:
        """Give the last receipts, oldest first, from a block on, of one actor if given."""
        _check_count("limit", limit, LIMIT_MAX)
        owner = None if actor is None else resolve_actor(self.chain, actor)
        return self.local.receipts(since, actor=owner)[-limit:]

    def events(self, name: str | None = None, since: int = 0, limit: int = LIMIT) -> Any:
        """Give the last events, oldest first, from a block on, with one name if given, as timer.fired."""
        _check_count("limit", limit, LIMIT_MAX)
        return self.local.events(name, since)[-limit:]

    def storage(self, actor: str) -> Any:
        """Give the slots of an actor: names and values in hexadecimal digits."""
        return self.chain.storage(find_actor(self.chain, actor))

    def trace(self, execution: str) -> str:
        """Show frames, host calls, cycles and money of a block (its height), a transaction or a timer's last fire."""
        found = resolve_execution(self.chain, execution)
        return str(self.local.trace(found) if isinstance(found, Hash32) else self.local.trace_block(found))

    # Reading

    def check(self, source: str) -> Any:
        """Check the text of an actor's source: what a deployment refuses, and what hurts later, by line and rule."""
        return lint_source(source.encode(), LintTerms(self.chain.params))

    def search_docs(self, query: str) -> Any:
        """Search the documentation; gives pages for `read_doc`, best first."""
        return [
            {"page": page.path, "title": page.title, "excerpt": excerpt} for page, excerpt in search_documents(query)
        ]

    def read_doc(self, page: str = "") -> str:
        """Read a page of the documentation, as tutorial/first-actor.md; without a page, their list."""
        if not page:
            return documents_index("")
        found = document_pages().get(page)
        if found is None:
            raise NotFound(f"there is no page {page!r}", "find one with search_docs, or read the list without a page")
        return found.text

    def _account(self, text: str) -> TestAccount:
        address = resolve_actor(self.chain, text)
        account = self._keys().get(address)
        if account is None:
            last = len(self.local.accounts) - 1
            raise Mistake(f"the key of {address} is not known", f"send from an account, 0 to {last}, or deployer")
        return account

    def _keys(self) -> dict[Address, TestAccount]:
        return {each.address: each for each in (*self.local.accounts, self.local.deployer)}

    def _call_of(self, actor: str, handler: str, payload: str) -> ExecuteActor:
        return ExecuteActor(find_actor(self.chain, actor), handler, parse_payload(payload))


def _check_count(name: str, count: int, most: int) -> None:
    if not 1 <= count <= most:
        raise Mistake(f"{name} {count:,} is out of range", f"give 1 to {most:,}")


TOOLS: Final = tuple(name for name in vars(AgentTools) if not name.startswith("_"))
"""Names of the tools."""
