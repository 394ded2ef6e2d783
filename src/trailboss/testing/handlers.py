"""The handlers of an actor's source that anybody can call."""

from pathlib import Path

from trailboss.chain.development import development_genesis
from trailboss.crypto.digest import keccak256
from trailboss.execution.genesis import check_genesis
from trailboss.execution.host import CREATION_HANDLERS
from trailboss.primitives.errors import ConfigurationError, Rejection
from trailboss.sandbox.engines import new_engine
from trailboss.testing.outbox import read_source


def callable_handlers(source: str | Path) -> tuple[str, ...]:
    """Return the handlers of a source, a path ending in ``.py`` or text, in order of their names.

    Those of the creation call, ``init`` and ``deploy``, are not among them: the chain refuses them afterwards.

    Raises:
        ConfigurationError: If it cannot be read, is refused, or has no handler.
    """
    engine = new_engine(check_genesis(development_genesis(accounts=1)), b"", breakpoints=True)
    code = read_source(engine, source)
    shown = f"source {str(source).strip().splitlines()[0] if str(source).strip() else ''!r}"
    try:
        text, code_hash = code.decode(), keccak256(code)
        engine.check_source(text, code_hash)
    except (UnicodeDecodeError, Rejection) as error:
        raise ConfigurationError(f"{shown} is refused: {error}") from None
    names = tuple(sorted(engine.handlers(text, code_hash) - {*CREATION_HANDLERS}))
    if not names:
        raise ConfigurationError(f"{shown} has no handler to call: a public function, or a method of a class")
    return names
