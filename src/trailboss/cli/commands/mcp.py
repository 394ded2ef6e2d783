"""``mcp``: a chain for agents, by the Model Context Protocol."""

import inspect
import json
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final

from trailboss import __version__
from trailboss.cli.agent_tools import TOOLS, AgentTools
from trailboss.cli.command import Invocation, command
from trailboss.cli.errors import installed
from trailboss.cli.local_chains import open_local_chain
from trailboss.cli.options import Mechanism, Preset, Text, option
from trailboss.documentation import document_pages
from trailboss.primitives.errors import TrailbossError
from trailboss.views.json_values import to_json_value

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

INSTALL: Final = "pip install 'trailboss[agents]'"
ABOUT: Final = """A local chain for Cowboy actors, which schedule their own calls with protocol timers. Blocks are built
by your calls alone: deploy and call build one each, mine, advance_to and next_fire as many as you say. When a timer did
not fire, ask explain. Before you write an actor, read_doc tutorial/first-actor.md and check its source."""


@command(on_chain=False, has_json=False)
def mcp(
    run: Invocation,
    place: Annotated[Text, option("DIR", "Directory of the chain.", "a fresh chain in memory", "--chain")] = None,
    preset: Preset = None,
    mechanism: Mechanism = None,
) -> None:
    """Serve a chain to an agent, over the Model Context Protocol on standard input and output.

    Example: trailboss mcp --chain play
    """
    with installed("`trailboss mcp`", INSTALL):
        import mcp.server.mcpserver  # noqa: F401, PLC0415  # an extra
    chain = run.stack.enter_context(open_local_chain(place, preset=preset, mechanism=mechanism))
    server_of(AgentTools(chain)).run("stdio")


def server_of(tools: AgentTools) -> "MCPServer[Any]":
    """Return a server with the tools, and the documentation's pages as resources."""
    from mcp.server.mcpserver import MCPServer  # noqa: PLC0415  # an extra
    from mcp.server.mcpserver.resources import TextResource  # noqa: PLC0415

    server: MCPServer[Any] = MCPServer("trailboss", instructions=ABOUT, version=__version__, log_level="ERROR")
    for name in TOOLS:
        server.add_tool(_tool(getattr(tools, name)), structured_output=False)
    for page in document_pages().values():
        uri = f"docs://trailboss/{page.path}"
        about = f"{page.title}: {page.summary}"
        resource = TextResource(uri=uri, name=page.path, description=about, mime_type="text/markdown", text=page.text)
        server.add_resource(resource)
    return server


def _tool(method: Callable[..., Any]) -> Callable[..., Awaitable[str]]:
    """Return a method as the server calls it: in the server's own thread, and with errors that an agent can read."""
    from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415

    @wraps(method)
    async def tool(**arguments: Any) -> str:
        try:
            answer = method(**arguments)
        except TrailbossError as error:
            raise ToolError(str(error)) from None
        return answer if isinstance(answer, str) else json.dumps(_brief(to_json_value(answer)))

    signature = inspect.signature(method)
    tool.__signature__ = signature.replace(return_annotation=str)  # type: ignore[attr-defined]
    tool.__doc__ = inspect.getdoc(method)
    return tool


def _brief(document: Any) -> Any:
    """Return a JSON document without the bytes of events, which an agent reads in full and makes nothing of."""
    if isinstance(document, dict):
        return {name: _brief(value) for name, value in document.items() if name != "raw"}
    return list(map(_brief, document)) if isinstance(document, list) else document
