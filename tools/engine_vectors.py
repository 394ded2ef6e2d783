"""Commits of a real engine, recorded into ``tests/vectors/engine_commits.json``.

It runs four validators of unequal power on addresses of 127.77.9.0/24, with the engine's own key-value application, and
stops one of them for a while, so that commits of later rounds and with missing votes appear. It keeps the documents as
the engine's RPC states them.

    python -m tools.engine_vectors .tools/cometbft
"""

import json
import signal
import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

VECTORS: Final = "tests/vectors/engine_commits.json"
CHAIN_ID: Final = "trailboss-7-0123456789ab"
POWERS: Final = (10, 30, 20, 20)
ADDRESS: Final = "127.77.9."
PAUSED: Final = 2  # the validator that stops: the others hold 60 of 80, more than two thirds
PAUSE_FROM: Final = 8
PAUSE_UNTIL: Final = 16
LAST: Final = 22
KEPT: Final = (1, 2, 3, 7, 20)  # heights that are kept besides those of later rounds
CONFIGURATION: Final = """
log_level = "error"
[consensus]
timeout_propose = "400ms"
timeout_propose_delta = "100ms"
timeout_prevote = "200ms"
timeout_precommit = "200ms"
timeout_commit = "200ms"
"""
Document = dict[str, Any]


def lay_out(engine: str, directory: Path) -> list[Document]:
    """Write the homes of four validators; return their keys and powers in the order of the genesis."""
    configuration = directory / "base.toml"
    configuration.write_text(CONFIGURATION, encoding="utf-8")
    options: tuple[str, ...] = ("--v", str(len(POWERS)), "--o", str(directory), "--home", str(directory / "unused"))
    options += ("--starting-ip-address", f"{ADDRESS}1", "--config", str(configuration))
    subprocess.run([engine, "testnet", *options], check=True, stdout=subprocess.DEVNULL)
    genesis = json.loads((directory / "node0/config/genesis.json").read_text(encoding="utf-8"))
    genesis["chain_id"] = CHAIN_ID
    for validator, power in zip(genesis["validators"], POWERS, strict=True):
        validator["power"] = str(power)
    for number in range(len(POWERS)):
        (directory / f"node{number}/config/genesis.json").write_text(json.dumps(genesis), encoding="utf-8")
    keys = (b64decode(validator["pub_key"]["value"]) for validator in genesis["validators"])
    return [{"public_key": f"0x{key.hex()}", "power": power} for key, power in zip(keys, POWERS, strict=True)]


@contextmanager
def running(engine: str, directory: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run the validators for the length of a block."""
    processes = []
    for number in range(len(POWERS)):
        address = f"tcp://{ADDRESS}{number + 1}"
        options: tuple[str, ...] = ("--home", str(directory / f"node{number}"), "--proxy_app", "kvstore")
        options += ("--p2p.laddr", f"{address}:26656", "--rpc.laddr", f"{address}:26657")
        processes.append(subprocess.Popen([engine, "start", *options], stdout=subprocess.DEVNULL))
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def ask(path: str) -> Any:
    """Return the result of a request to the first validator; None if it does not answer or has none yet."""
    try:
        with urlopen(f"http://{ADDRESS}1:26657/{path}") as answer:
            return json.load(answer).get("result")
    except (URLError, OSError):
        return None


def await_height(height: int) -> None:
    """Wait until the first validator has a block of a height."""
    while ask(f"commit?height={height}") is None:
        sleep(0.1)


def is_kept(document: Document) -> bool:
    """Return whether a commit shows something of its own."""
    commit = document["signed_header"]["commit"]
    return commit["round"] > 0 or int(commit["height"]) in KEPT


def record(processes: list[subprocess.Popen[bytes]]) -> Iterable[Document]:
    """Let the validators build blocks, one of them not always, and return the commits that are kept."""
    await_height(PAUSE_FROM)
    processes[PAUSED].send_signal(signal.SIGSTOP)
    await_height(PAUSE_UNTIL)
    processes[PAUSED].send_signal(signal.SIGCONT)
    await_height(LAST)
    return filter(is_kept, [ask(f"commit?height={height}") for height in range(1, LAST)])


def main(engine: str) -> None:
    """Record the commits, and write them."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        validators = lay_out(engine, directory)
        with running(engine, directory) as processes:
            kept = list(record(processes))
    version = subprocess.run([engine, "version"], check=True, capture_output=True, text=True).stdout.strip()
    document = {"engine": f"CometBFT {version}", "chain_id": CHAIN_ID, "validators": validators, "commits": kept}
    Path(VECTORS).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{len(kept)} commits in {VECTORS}")


if __name__ == "__main__":
    main(*sys.argv[1:])
