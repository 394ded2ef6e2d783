"""Four validators with the real engine: what they agree on while their parts are killed, stopped and cut off."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Final

import pytest
from msgspec.structs import replace

from tests.faults.node_crash import BEACON, Sender
from tests.faults.node_process import NodeProcess
from tests.network.testnets import WAIT_SECONDS, Islands, Testnet, engine_lack, verify
from trailboss.chain.development import account_name, development_account
from trailboss.crypto.digest import keccak256
from trailboss.fees import Settlement, settle
from trailboss.model.transactions import DeployActor, ExecuteActor, FundActor, Transfer, derive_actor_address
from trailboss.network.halts import HALTED_STATUS, Halt
from trailboss.network.testnet import add_node
from trailboss.primitives.units import BASE_UNITS_PER_CBY

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(engine_lack()), reason=engine_lack())]
MEMORY: Final = Path("/dev/shm")  # a kill harms no file there that it would not harm on a disk, and nothing is flushed
ALICE, BOB = (development_account(account_name(number)) for number in range(2))
SHORT: Final = 2
PARTED_SECONDS: Final = 5  # twenty times the time between blocks
FIRES: Final = 3  # timers that the beacon schedules when it is lit


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Return a directory with a short path, in memory where that can be."""
    with TemporaryDirectory(prefix="tb", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder, "net")


@pytest.fixture
def net(directory: Path) -> Iterator[Testnet]:
    """Return a network of four validators that nobody has started."""
    found = Testnet.create(directory)
    yield found
    found.close()


class Load:
    """Two accounts that send, and an actor that schedules three timers whenever it is called."""

    def __init__(self, net: Testnet) -> None:
        self.net = net
        self.alice, self.bob = Sender(ALICE.private_key), Sender(BOB.private_key)
        self.beacon = derive_actor_address(ALICE.address, b"", keccak256(BEACON))

    def deploy(self, number: int) -> None:
        """Deploy the actor through one node."""
        deploy = self.alice.next(DeployActor(BEACON, b""), 1_000_000, 10_000)
        fund = self.alice.next(FundActor(self.beacon, 50_000 * BASE_UNITS_PER_CBY))
        assert self.net.submit(number, [deploy, fund]) == [True, True]

    def light(self, number: int, payload: bytes) -> None:
        """Have the actor schedule its timers, through one node."""
        call = self.alice.next(ExecuteActor(self.beacon, "light", payload), 100_000, 10_000)
        assert self.net.submit(number, [call]) == [True]

    def pay(self, number: int, count: int = 5) -> None:
        """Send payments through one node."""
        batch = [self.bob.next(Transfer(ALICE.address, 1)) for _ in range(count)]
        assert self.net.submit(number, batch) == [True] * count


def test_network_outlives_its_parts(net: Testnet) -> None:
    """One history after each fault, each accepted transaction and each timer in it once, and no money lost."""
    net.start()
    net.wait_height(SHORT)
    assert len({net.block_at(number, SHORT) for number in range(4)}) == 1
    load = Load(net)
    timers_fire_everywhere(net, load)
    second_process_is_refused(net)
    application_dies(net, load, 1)
    engine_dies(net, load, 2)
    both_die_while_others_go_on(net, load, 3)
    one_sleeps(net, load, 0)
    net.wait_included()
    verdict = net.verify()
    assert verdict.fires == FIRES * 5
    assert verdict.transactions > 30


def timers_fire_everywhere(net: Testnet, load: Load) -> None:
    """What one node was sent fires in blocks without transactions, of the same height on every node."""
    load.deploy(0)
    load.light(0, b"first")
    net.wait_included()

    def fires(number: int) -> list[tuple[int, str]]:
        found = net.ask(number, "/timers?state=fired&limit=50")
        return sorted((each["ended_at"], each["timer_id"]) for each in found["timers"])

    for number in range(4):
        net.wait(f"fires on node{number}", lambda number=number: len(fires(number)) == FIRES)
    assert len({tuple(fires(number)) for number in range(4)}) == 1
    for height, _ in fires(0):
        assert net.ask(2, f"/block/{height}")["transaction_count"] == 0


def second_process_is_refused(net: Testnet) -> None:
    """Two processes on one home would sign twice: the second one ends, with the first one's number."""
    second = NodeProcess("node", "--network", str(net.homes[1].directory), log=net.directory / "second.log")
    assert not second.is_ready
    assert second.wait() == 1
    assert f"in use by process {net.nodes[1].pid}" in (net.directory / "second.log").read_text()
    net.wait_blocks(SHORT)


def application_dies(net: Testnet, load: Load, number: int) -> None:
    """The engine below it ends with it; started again, both go on where the network is."""
    engine = net.engine_of(number)
    load.pay(number)
    load.light(0, b"second")
    assert net.kill(number) == -signal.SIGKILL
    net.wait("end of the engine of a dead application", lambda: not Path(f"/proc/{engine}/cwd").exists())
    net.wait_blocks(SHORT)
    net.start(number)
    net.wait_height(max(net.heights()))
    load.pay(number)
    net.wait_included()


def engine_dies(net: Testnet, load: Load, number: int) -> None:
    """The application stays, takes another engine, and has no block twice."""
    application = net.nodes[number].pid
    load.light(number, b"third")
    engine = net.kill_engine(number)
    load.pay(number)
    net.wait("another engine", lambda: net.engine_of(number) != engine)
    net.wait_blocks(SHORT)
    assert net.nodes[number].pid == application
    net.wait_included()


def both_die_while_others_go_on(net: Testnet, load: Load, number: int) -> None:
    """Three of four agree without it; it catches up by blocks."""
    engine = net.engine_of(number)
    os.kill(engine, signal.SIGKILL)
    net.kill(number)
    load.light(0, b"fourth")
    load.pay(1, 20)
    net.wait_blocks(20)
    net.start(number)
    net.wait_height(max(net.heights()), number)
    net.wait_included()


def one_sleeps(net: Testnet, load: Load, number: int) -> None:
    """A validator that is stopped for a while is missed by none, and follows when it wakes."""
    sleepers = (net.nodes[number].pid, net.engine_of(number))
    for each in sleepers:
        os.kill(each, signal.SIGSTOP)
    try:
        load.light(1, b"fifth")
        net.wait_blocks(15, 1, 2, 3)
    finally:
        for each in reversed(sleepers):
            os.kill(each, signal.SIGCONT)
    net.wait_height(max(net.heights((1, 2, 3))), number)


@pytest.mark.skipif(bool(Islands.lack()), reason=Islands.lack())
def test_network_waits_while_it_is_parted(directory: Path) -> None:
    """No half of it goes on alone, three of four do; healed, all have one history, and what each half was sent."""
    with Islands(4) as islands:
        net = Testnet.in_islands(directory, islands)
        try:
            net.start()
            net.wait_height(SHORT)
            load = Load(net)
            load.pay(0)
            net.wait_included()
            halves(net, load, islands)
            three_and_one(net, load, islands)
            verdict = net.verify()
        finally:
            net.close()
    assert verdict.transactions == 25


def halves(net: Testnet, load: Load, islands: Islands) -> None:
    """Two and two: nobody has two thirds, so no block comes, whatever either half is sent."""
    islands.part(2, 3)
    before = max(net.heights())
    load.pay(0)
    net.watch_heights(before + 1, PARTED_SECONDS)
    islands.heal()
    net.wait_height(before + 4)
    net.wait_included()


def three_and_one(net: Testnet, load: Load, islands: Islands) -> None:
    """Three go on without the fourth, which follows when it is back, with what it was sent meanwhile."""
    islands.part(3)
    before = net.height(3)
    net.wait_height(before + 10, 0, 1, 2)
    load.pay(0, 10)
    net.wait_included(0, 1, 2)
    assert net.height(3) <= before + 1
    # Its own client is answered, and nothing is lost.
    load.pay(3)
    islands.heal()
    net.wait_height(max(net.heights((0, 1, 2))) + 2)
    net.wait_included()


def test_node_that_comes_to_another_root_stops_and_names_what_differs(
    net: Testnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Height, transaction and key, from the other nodes, before it stops; the others go on. Later a command says so."""
    net.start(0, 1, 2)

    def cheaper(*arguments: Any) -> Settlement:
        found = settle(*arguments)
        return replace(found, burned=found.burned - 1, refund=found.refund + 1)

    with monkeypatch.context() as planted:
        planted.setattr("trailboss.execution.paid_execution.settle", cheaper)
        net.start(3)
    net.wait_height(SHORT)
    Load(net).pay(0, 1)
    net.nodes[3].kill_after(WAIT_SECONDS)
    assert net.nodes.pop(3).wait() == HALTED_STATUS
    [transaction], home = net.accepted, net.homes[3]
    receipt = net.wait("block with the payment", lambda: net.ask(0, f"/transaction/{transaction}/receipt"))
    height = receipt["block_height"]
    again = [sys.executable, "-m", "trailboss", "replay", "--chain", str(home.chain_directory)]
    found = subprocess.run([*again, "--diff", net.homes[0].api_url], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    for said in (home.node_log.read_text().replace("\\n", "\n"), found.stdout):
        assert f"part at block {height}:" in said
        assert f"receipt 0 (transaction {transaction}): fee_burned" in said
        assert f"account {BOB.address}, the first of 2 keys that differ" in said
    assert Halt.STATE_DIFFERS.slug in home.node_log.read_text()
    net.wait_blocks(SHORT)
    net.stop()
    assert verify(net.homes[:3], net.accepted).height > height


def test_supervised_network(directory: Path) -> None:
    """The program itself: started, one node killed and back, one added by blocks, one halted by its name, all ended."""
    net = Testnet.create(directory, validators=4)
    program = [sys.executable, "-m", "trailboss", "testnet"]
    with (directory / "notes").open("wb") as notes:
        started = subprocess.Popen([*program, "start", str(directory), "--json"], stdout=subprocess.PIPE, stderr=notes)
    said = directory / "notes"
    try:
        assert started.stdout is not None
        document = json.loads(read_document(started.stdout))
        assert document["agree"]
        processes = [node["process_id"] for node in document["nodes"]]
        os.kill(processes[1], signal.SIGKILL)
        net.wait("note of a death", lambda: "node1 has died, and is started again" in said.read_text())
        added = add_node(net.homes)
        net.homes.append(added)
        net.wait("node that follows", lambda: net.height(4) >= SHORT)
        net.wait("node that is back", lambda: net.height(1) >= max(net.heights((0, 2, 3))) - 1)
        home = net.homes[3]
        replace(home, genesis=replace(home.genesis, chain_id=2)).write()
        os.kill(processes[3], signal.SIGKILL)
        net.wait("note of a halt", lambda: "node3 has halted, and is not started again" in said.read_text())
        assert Halt.OTHER_GENESIS.slug in said.read_text()
        status = subprocess.run([*program, "status", str(directory), "--json"], capture_output=True, check=False)
        found = json.loads(status.stdout)
        assert (status.returncode, found["agree"]) == (0, True)
        assert [node["height"] is not None for node in found["nodes"]] == [True, True, True, False, True]
        ended = subprocess.run([*program, "stop", str(directory), "--json"], capture_output=True, check=True)
        assert json.loads(ended.stdout) == {"supervisor": started.pid, "nodes": []}
        assert started.wait() == 0
    finally:
        started.kill()
        started.wait()
        net.close()
    assert verify(net.homes, net.accepted).height >= SHORT


def read_document(output: IO[bytes]) -> str:
    """Return the one JSON document that a program prints while it goes on."""
    text = ""
    while not text.endswith("\n}\n"):
        text += output.readline().decode()
    output.close()
    return text
