"""URLs of nodes, and what goes with a request."""

import pytest

from trailboss.cli.errors import NotFound
from trailboss.cli.remote.client import Client, headers_for, split_url


@pytest.mark.parametrize(
    "url", ["ftp://localhost", "http://", "http://a:port", "http://a:0", "http://a:99999", "localhost"]
)
def test_url_is_refused_when_it_is_none_of_a_node(url: str) -> None:
    """Before anything is sent."""
    with pytest.raises(NotFound, match="no URL of a node"):
        Client(url)


@pytest.mark.parametrize("url", ["http://localhost:4000", "https://node.example/base", "http://[::1]:4000"])
def test_url_is_taken_when_it_names_a_host(url: str) -> None:
    """With a port, a path, an address of the sixth version."""
    assert Client(f"{url}/").url == url


def test_user_of_the_url_signs_in() -> None:
    """With what the URL escapes written out; without a user there is no such header."""
    target = split_url("https://al%40ice:p%3Aw@localhost/page")
    assert headers_for(target, "application/json") == {
        "Content-Type": "application/json",
        "Authorization": "Basic YWxAaWNlOnA6dw==",
    }
    assert headers_for(split_url("http://localhost"), None) == {}
