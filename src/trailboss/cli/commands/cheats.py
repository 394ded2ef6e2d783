"""State and calls that only a development chain lets people set: ``set-storage``, ``set-code``, ``mock``."""

from pathlib import Path
from typing import Annotated, Final

from trailboss.cli.command import Invocation, command
from trailboss.cli.commands.accounts import ENTITLEMENT, Cbor
from trailboss.cli.errors import Mistake
from trailboss.cli.options import PAYLOAD, Actor, Number, Text, Texts, Who, argument, flag, number, option
from trailboss.cli.output import Cell, columns, print_json, print_table
from trailboss.cli.targets import find_actor, resolve_actor
from trailboss.cli.values import parse_payload, read_file
from trailboss.model.actors import encode_manifest
from trailboss.model.transactions import ClearMocks, SetCode, SetMock, SetStorage
from trailboss.primitives.units import U32_MAX
from trailboss.views.mocks import mocks_of
from trailboss.views.text import words

COLUMNS: Final = columns("target | handler | payload | answer/20 | >times left")
NO_MOCKS: Final = "no call is mocked; `trailboss mock TARGET HANDLER --returns ANSWER` adds a mock"


@command()
def set_storage(
    run: Invocation,
    actor: Actor,
    slot: Annotated[str, argument("SLOT", "Name of the slot: text, or 0x… for bytes.")],
    value: Annotated[Text, argument("VALUE", f"Its value: {PAYLOAD}.", "deletes the slot")] = None,
    cbor: Annotated[bool, flag("--cbor", "The value is JSON; store it as CBOR.")] = False,
) -> None:
    """Set or delete a slot of an actor.

    Example: trailboss set-storage 0x044d2D5f rounds 12
    """
    address, name = find_actor(run.chain, actor), parse_payload(slot)
    octets = None if value is None else parse_payload(value, as_cbor=cbor)
    receipt = run.chain.interfere(SetStorage(address, name, octets))
    run.show_receipts({"instruction": receipt}, {"actor": address} if receipt.ok else None)


@command()
def set_code(
    run: Invocation,
    who: Who,
    file: Annotated[Path, argument("FILE", "Source of the actor.")],
    entitlement: Annotated[Texts, option("ID", ENTITLEMENT)] = None,
) -> None:
    """Put the code of a file at an address; its money and storage stay.

    An address without an actor becomes one. No creation call runs.

    Example: trailboss set-code 0x044d2D5f fixed_clock.py
    """
    code, address = read_file(file, "source"), resolve_actor(run.chain, who)
    receipt = run.chain.interfere(SetCode(address, code, encode_manifest(entitlement or ())))
    run.show_receipts({"instruction": receipt}, {"actor": address} if receipt.ok else None)


@command()
def mock(
    run: Invocation,
    target: Annotated[Text, argument("TARGET", "Actor, or address without one, that is called.", "list")] = None,
    handler: Annotated[Text, argument("HANDLER", "Its handler.", "list")] = None,
    payload: Annotated[Text, option("PAYLOAD", f"Only calls with this payload: {PAYLOAD}.", "all")] = None,
    returns: Annotated[Text, option("ANSWER", f"What the calls return: {PAYLOAD}.")] = None,
    reverts: Annotated[Text, option("MESSAGE", "Message that the calls fail with, instead.")] = None,
    times: Annotated[Number, number("How many calls it answers.", "all", least=1, most=U32_MAX)] = None,
    cbor: Cbor = False,
    clear: Annotated[bool, flag("--clear", "Remove all mocks.")] = False,
) -> None:
    """Answer calls of a handler by other actors, or list and clear such mocks.

    With --cbor the payload and the answer are JSON.

    Example: trailboss mock 0x044d2D5f price --returns 100 --cbor
    """
    if clear:
        if target is not None:
            raise Mistake("both TARGET and --clear are given", "`trailboss mock --clear` removes all mocks")
        run.show_receipts({"instruction": run.chain.interfere(ClearMocks())})
        return
    if target is None:
        _list_mocks(run)
        return
    if handler is None:
        raise Mistake(f"TARGET {target} is given without HANDLER", "name the handler whose calls are mocked")
    if (returns is None) == (reverts is None):
        raise Mistake("a mock either returns or reverts", "give one of --returns ANSWER and --reverts MESSAGE")
    address = resolve_actor(run.chain, target)
    wanted = None if payload is None else parse_payload(payload, as_cbor=cbor)
    answer = b"" if returns is None else parse_payload(returns, as_cbor=cbor)
    run.show_receipts({"instruction": run.chain.interfere(SetMock(address, handler, wanted, answer, reverts, times))})


def _list_mocks(run: Invocation) -> None:
    mocks = mocks_of(run.chain)
    if run.as_json:
        print_json(mocks)
    else:
        print_table("Mocks", COLUMNS, [_row(each) for each in mocks], NO_MOCKS)


def _row(mock: SetMock) -> tuple[Cell, ...]:
    payload = "any" if mock.payload is None else words(mock.payload)
    answer = f"returns {words(mock.returns)}" if mock.reverts is None else f"fails: {mock.reverts}"
    return mock.target, mock.handler, payload, answer, "all" if mock.times is None else str(mock.times)
