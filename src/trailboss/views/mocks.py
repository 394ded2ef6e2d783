"""The mocks of a development chain."""

from msgspec.structs import astuple

from trailboss.chain.reader import ChainReader
from trailboss.execution.development import mocks_in
from trailboss.model.transactions import SetMock
from trailboss.primitives.octets import Address


def mocks_of(chain: ChainReader) -> list[SetMock]:
    """Return the mocks in force, in the order in which they answer, as instructions that set what is left of each."""
    return [SetMock(Address(each.target), *astuple(each)[1:]) for each in mocks_in(chain.store.read)]
