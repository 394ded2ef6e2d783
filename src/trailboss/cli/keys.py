"""Private keys in files: where they are looked for, and their two forms. Unreadable ones raise `Mistake`.

The order is: what ``--private-key`` or COWBOY_PRIVATE_KEY says, the ``key_file`` of the active environment of
``.cowboy/config.json``, and ``.cowboy/key``. The directory ``.cowboy`` is the nearest one, from the working directory
upwards, as for the public command line.

Source: cowboy-facts §9. Decision: D-77
"""

import json
import stat
from base64 import b64decode
from os.path import isfile
from pathlib import Path
from typing import Any, Final

from trailboss.cli.errors import Mistake, NotFound
from trailboss.cli.output import note
from trailboss.cli.values import parse_private_key
from trailboss.crypto.digest import sha256

ACTIVE: Final = ("active_environment", "active")
BEGIN: Final = "-----BEGIN COWBOY PRIVATE KEY-----"
END: Final = "-----END COWBOY PRIVATE KEY-----"
CURVE: Final = "secp256k1"
CHECKSUM_DIGITS: Final = 4
FILE_BYTES_MAX: Final = 65_536
OF_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
GIVE_OR_CORRECT: Final = "give the key with --private-key, or correct the file"


def find_key(directory: Path) -> bytes | None:
    """Return the key of a project, looking from a directory upwards; None if there is none."""
    for parent in (directory, *directory.parents):
        folder = parent / ".cowboy"
        path = _configured(folder)
        if path is None and (folder / "key").is_file():
            path = folder / "key"
        if path is not None:
            key = read_key_file(path)
            if path.stat().st_mode & OF_OTHERS:
                note(f"{path} can be read by others: chmod 600 it")
            return key
    return None


def read_key(text: str) -> bytes:
    """Return a private key given as 64 hexadecimal digits, or as the path of a file that holds one."""
    return read_key_file(Path(text)) if isfile(text) else parse_private_key(text)


def read_key_file(path: Path) -> bytes:
    """Return the private key in a file: in the envelope of the public command line, or as hexadecimal digits."""
    try:
        text = path.read_bytes()[:FILE_BYTES_MAX].decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise NotFound(f"the key file {path} cannot be read: {reason}", GIVE_OR_CORRECT) from None
    if text.startswith(BEGIN):
        return _read_envelope(path, text)
    try:
        return parse_private_key(text)
    except Mistake:
        raise _no_key(path, "64 hexadecimal digits, or an envelope that begins with " + BEGIN) from None


def _read_envelope(path: Path, text: str) -> bytes:
    lines = [line.strip() for line in text.splitlines()]
    if lines[-1] != END:
        raise _no_key(path, f"{END} at its end")
    headers = dict(line.split(":", 1) for line in lines[1:-1] if ":" in line)
    body = "".join(line for line in lines[1:-1] if ":" not in line)
    curve = headers.get("Curve", CURVE).strip()
    if curve != CURVE:
        raise _no_key(path, f"a key of the curve {CURVE}")
    try:
        key = b64decode(body, validate=True)
    except ValueError:
        raise _no_key(path, "its key in base64") from None
    checksum = headers.get("Checksum", "").strip().lower()
    if checksum[:CHECKSUM_DIGITS] != sha256(key).hex()[:CHECKSUM_DIGITS]:
        raise _no_key(path, "a key that its checksum is of: it is damaged")
    return parse_private_key(key.hex())


def _configured(folder: Path) -> Path | None:
    """Return the key file that a project's active environment names, if one does."""
    path = folder / "config.json"
    if not path.is_file():
        return None
    try:
        document: Any = json.loads(path.read_bytes()[:FILE_BYTES_MAX])
    except (OSError, ValueError, RecursionError) as error:
        raise Mistake(f"{path} cannot be read: {error}", "correct it, or give the key with --private-key") from None
    environments = document.get("environments") if isinstance(document, dict) else None
    if not isinstance(environments, dict):
        return None
    active = next((document[name] for name in ACTIVE if isinstance(document.get(name), str)), None)
    environment = environments.get(active)
    if not isinstance(environment, dict):
        known = ", ".join(map(str, environments)) or "none"
        raise Mistake(f"{path} has no environment {active!r}; there are: {known}", "name one of them as the active one")
    named = environment.get("key_file")
    return folder / named if isinstance(named, str) else None


def _no_key(path: Path, rule: str) -> Mistake:
    return Mistake(f"the file {path} holds no private key: it must have {rule}", GIVE_OR_CORRECT)
