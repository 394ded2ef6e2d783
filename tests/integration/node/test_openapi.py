"""Requests made up from the node's own description: what fits it is answered as it says, what does not is refused.

The description is the contract: a request that fits it is never a bad request, one that does not always is, no answer
differs from its schema, and nothing makes the node fail.
"""

from collections.abc import Iterator

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.schemas import BaseSchema

from tests.integration.node.apis import Api, lively_chain, serve
from trailboss.primitives.octets import Address, Hash32
from trailboss.primitives.units import U64_MAX, U128_MAX

EXAMPLES = 2
ENDLESS = "/events"
SENT = ("/submit", "/submit_wait")
"""What their bodies must be, the chain's rules say, not the schema."""
CONFIGURATION = {
    "checks": {
        # 410 for what was lent, 422 for what the form allows and a rule of the chain forbids.
        "positive_data_acceptance": {"expected-statuses": ["2xx", "403", "404", "410", "422"]},
    },
    "operations": [
        {
            "include-path": path,
            "checks": {"positive_data_acceptance": {"enabled": False}},
            # A thousand transactions that lack a member each.
            "phases": {"coverage": {"enabled": False}},
        }
        for path in SENT
    ],
    "warnings": False,
}


def known(api: Api) -> tuple[list[str], list[str]]:
    """Return addresses and hashes that the chain knows."""
    view = api.node.view
    addresses = [str(Address(address)) for address, _ in view.accounts()]
    ids = [timer["timer_id"] for timer in api.get("/timers?state=all")["timers"]]
    blocks = [str(block.hash) for block in view.blocks]
    transactions = [str(Hash32(r.origin_hash)) for block in view.blocks for r in block.receipts if any(r.origin_hash)]
    return addresses, ids + transactions + blocks[:3]


def describe(api: Api, **configuration: object) -> BaseSchema:
    """Return the description of an API, with addresses and hashes that it knows among those that are made up."""
    addresses, hashes = known(api)
    made_up = st.binary(min_size=20, max_size=20).map(lambda octets: str(Address(octets)))
    schemathesis.openapi.format("address", st.sampled_from(addresses) | made_up)
    schemathesis.openapi.format(
        "hash32", st.sampled_from(hashes) | st.binary(min_size=32, max_size=32).map(lambda octets: octets.hex())
    )
    schemathesis.openapi.format("submission", st.binary(max_size=40).map(lambda octets: octets.decode("latin-1")))
    config = schemathesis.Config.from_dict(CONFIGURATION | configuration)
    return schemathesis.openapi.from_dict(api.get("/openapi.json"), config=config)


def send(api: Api, case: Case) -> httpx.Response:
    """Return the answer to a case, sent as it would be over the network."""
    prepared = requests.Request(**case.as_transport_kwargs(base_url="http://127.0.0.1:4000")).prepare()
    return api.request(prepared.method, prepared.url, headers=dict(prepared.headers), content=prepared.body)


def is_rounded(value: object) -> bool:
    """Return whether a value holds an integer that only floating point, as validators use it, takes for allowed."""
    if isinstance(value, dict):
        return any(map(is_rounded, value.values()))
    if isinstance(value, list):
        return any(map(is_rounded, value))
    return type(value) is int and any(value > most and float(value) == float(most) for most in (U64_MAX, U128_MAX))


def check(api: Api, case: Case) -> None:
    """Send a case, and hold the answer to the description."""
    if not is_rounded(case.body) and not is_rounded(case.query):
        case.validate_response(send(api, case))


bounded = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def fifo() -> Iterator[Api]:
    """A node that changes nothing but by transactions."""
    with serve(lively_chain("fifo")[0], development=False) as served:
        yield served


@pytest.fixture(scope="module", params=["lane", "auction", "globalbox"])
def other(request: pytest.FixtureRequest) -> Iterator[Api]:
    """A node of each of the other mechanisms."""
    with serve(lively_chain(request.param)[0], development=False) as served:
        yield served


@pytest.fixture(autouse=True)
def name_of_test(request: pytest.FixtureRequest) -> None:
    """Have Schemathesis find the name of the test where pytest had it before version 9."""
    request.node._nodeid = request.node.nodeid


@pytest.fixture
def description(fifo: Api) -> BaseSchema:
    """What the first node says of itself, with every boundary of it as a case."""
    return describe(fifo)


@pytest.fixture
def reading(other: Api) -> BaseSchema:
    """What another node says of itself."""
    return describe(other, phases={"coverage": {"enabled": False}})


everything = schemathesis.pytest.from_fixture("description").exclude(path=ENDLESS)
reads = schemathesis.pytest.from_fixture("reading").include(method="GET").exclude(path=ENDLESS)


@pytest.mark.slow
@everything.parametrize()
@bounded
def test_answer_is_as_described_when_a_request_is_made_up(fifo: Api, case: Case) -> None:
    """No 500, no undocumented status, no answer of another shape; what fits is accepted, what does not is refused."""
    check(fifo, case)


@pytest.mark.slow
@reads.parametrize()
@bounded
def test_look_up_is_as_described_under_every_mechanism(other: Api, case: Case) -> None:
    """What only one mechanism has, timers and lanes of its own, is described too."""
    check(other, case)
