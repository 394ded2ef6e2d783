"""Looking at chains of the auction and of Globalbox, typed as a person types it."""

import re
from pathlib import Path
from shutil import copytree

import pytest

from tests.e2e.conftest import Ask, Run
from tests.integration import auctions, boxes
from trailboss.testing import CBY, LocalChain

BOX = {
    "globalbox.max_fires_per_block": 3,
    "globalbox.max_fires_per_target": 2,
    "timers.max_cycles_per_fire": 100_000,
    "timers.lane_cycles_per_block": 100_000,
}
"""A block moves three fires to the mailbox, two of them for one target, and runs one of them."""
AUCTION = {"auction.delays_max": 2, "auction.budget_cycles": 600_000}
DUE = 14


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a chain on which five timers are due at 14 and a state watch is hit at 15; three wait in the mailbox."""
    path = tmp_path_factory.mktemp("box") / "chain"
    with LocalChain(data_dir=path, mechanism="globalbox", preset="minimal", params=BOX) as chain:
        one, two = boxes.deploy_box(chain), boxes.deploy_box(chain, chain.accounts[1])
        watch = boxes.watch(one, boxes.key(two, b"rate:"), bid_fp=7 * boxes.BID)
        for number in range(5):
            boxes.set_timeout(one, DUE, b"%d" % number, target=two.address, bid_fp=number * boxes.BID)
        chain.advance_to(DUE)
        boxes.put(two, b"rate:usd", b"2")
        assert len(chain.mailbox()) == 3
        assert chain.explain(watch).state == "live"
    return path


@pytest.fixture(scope="module")
def auction(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a chain on which one timer fires at 14 and one waits for money, late from 17 on."""
    path = tmp_path_factory.mktemp("auction") / "chain"
    with LocalChain(data_dir=path, mechanism="auction", preset="minimal", params=AUCTION) as chain:
        rich, poor = auctions.bidder(chain, "1000000 9"), auctions.bidder(chain, "1000000 5", value=CBY)
        auctions.arm(rich, "rich", height=DUE)
        auctions.arm(poor, "poor", height=DUE)
        chain.advance_to(DUE + 4)
    return path


def test_status_tells_the_numbers_of_globalbox(run: Run, ask: Ask, box: Path) -> None:
    """What is queued, what is in the mailbox, and which governance epoch it is; nothing of other mechanisms."""
    document = ask("status", "--chain", box)
    assert document["mechanism"] == "globalbox"
    assert (document["globalbox"]["queued"], document["globalbox"]["mailbox"]) == (1, 3)
    assert document["auction"] is None
    said = run("status", "--chain", box, columns=200).stdout
    shown = dict(re.split(r"  +", line, maxsplit=1) for line in said.splitlines())
    assert (shown["queued"], shown["mailbox"][:1], shown["remembered"][:1]) == ("1 fire", "3", "2")
    # Two fires ran, both of height timers, and the timers ended with them.
    assert (document["timers"]["fires"], document["timers"]["fired"]) == (2, 2)
    assert "4 live; of 6 scheduled 2 fired" in said
    assert "governance epoch" in said


def test_status_tells_the_numbers_of_the_auction(run: Run, ask: Ask, auction: Path) -> None:
    """Epoch, who waits, and the budget."""
    document = ask("status", "--chain", auction)
    assert document["auction"] == {
        "epoch": 4, "next_epoch_at": 20, "waiting": 1, "actors": 2, "budget_cycles": 600_000
    }  # fmt: skip
    assert document["globalbox"] is None
    said = run("status", "--chain", auction, columns=200).stdout
    shown = dict(re.split(r"  +", line, maxsplit=1) for line in said.splitlines())
    assert (shown["epoch"][:1], shown["waiting"], shown["budget"]) == ("4", "1 timer", "600,000 cycles a block")


def test_mailbox_lists_entries_in_the_order_of_delivery(run: Run, ask: Ask, box: Path) -> None:
    """And with --queued the fires behind them; --limit cuts, and says so; a target has its own."""
    document = ask("mailbox", "--chain", box)
    assert document["total"] == 3
    watched, first, second = document["mailbox"]
    assert [entry["deliver_seq"] for entry in document["mailbox"]] == [2, 3, 4]
    assert first["trigger"] == {"kind": "HEIGHT", "due_height": DUE, "matched_keys": []}
    assert (watched["trigger"]["kind"], watched["trigger"]["due_height"]) == ("STATE_WATCH", None)
    assert watched["trigger"]["matched_keys"] == [first["target"].lower() + b"rate:usd".hex()]
    assert (first["bid"], second["bid"]) == (2, 1)
    queued = ask("mailbox", "--queued", "--chain", box)
    assert [fire["place"] for fire in queued["globalbox"]] == [1]
    assert queued["total"] == 1
    said = run("mailbox", "--chain", box, "--limit", 2, columns=160)
    assert "these are the first 2 of 3; --limit 0 shows all" in said.output
    assert "height 14" in said.stdout
    own = ask("mailbox", first["owner"], "--chain", box)
    assert (own["total"], ask("mailbox", first["target"], "--chain", box)["total"]) == (1, 2)
    said = run("mailbox", "--queued", first["owner"], "--chain", box).output
    assert "No fire stands in Globalbox" in said


SLOT = "def put(payload):\n    pvm_host.set_state(b'price', payload)\n\ndef handle_timer(payload):\n    put(payload)\n"


@pytest.fixture
def feed(run: Run, ask: Ask) -> str:
    """Return the address of an actor with a slot, on a chain with Globalbox in the present folder."""
    run("init", "--mechanism", "globalbox")
    Path("feed.py").write_text(SLOT, encoding="utf-8")
    return ask("deploy", "feed.py")["actor"]


def test_fires_of_a_watch_are_counted_though_no_timer_ends(run: Run, ask: Ask, feed: str) -> None:
    """By `mine`, which builds their blocks, and by `status`, apart from what has ended."""
    run("watch", feed, "--slot", "price", "--bid", "2.5")
    run("call", feed, "put", "1")
    run("schedule", "--height", 6, "--payload", "2", "--target", feed)
    said = run("mine", "--to", 7).stdout
    assert "2 fired; 1 live" in said
    timers = ask("status")["timers"]
    assert (timers["fires"], timers["fired"], timers["live"]) == (3, 1, 1)
    said = " ".join(run("status", columns=200).stdout.split())
    assert "1 live, 3 fires; of 2 scheduled 1 fired, 0 expired, 0 unfunded, 0 cancelled" in said
    assert "bid 2.5" in run("events", "--name", "timer.scheduled", columns=200).stdout
    assert "2.5" in run("timers", columns=200).stdout


def test_client_nonce_is_said_to_be_taken_when_it_finds_a_timer(run: Run, ask: Ask, feed: str) -> None:
    """A live one stays as it is; one that has ended is refused, with until when."""
    order = ("watch", feed, "--slot", "price", "--client-nonce", "first")
    assert "nothing has changed" not in run(*order).output
    again = run(*order)
    assert "has the client nonce already: nothing has changed" in " ".join(again.stderr.split())
    timer = ask("timers")["timers"][0]["timer_id"]
    run("cancel", timer)
    refused = run(*order, status=1, columns=200)
    ended = ask("status")["height"] - 1
    assert (
        f"timer {timer} has the client nonce and has ended: it was cancelled in block {ended}, and " in refused.stderr
    )
    assert f"the nonce is taken until block {ended + 3_600}" in refused.stderr


def test_order_is_refused_when_it_could_never_fire(run: Run) -> None:
    """In the auction, for a cap below every basefee; a bid is refused with its rule."""
    run("init", "--mechanism", "auction")
    refused = run("schedule", "--height", 9, "--max-fee", 5, status=1, columns=200)
    assert "max_fee_per_cycle is 5, and the cycle basefee of timers does not fall below 10000" in refused.stderr
    refused = run("schedule", "--height", 9, "--bid", "-1", status=2, columns=200)
    assert "bid from 0 to below 2**32 base units per cycle" in refused.stderr


def test_timers_have_the_columns_of_their_mechanism(run: Run, ask: Ask, box: Path, auction: Path) -> None:
    """And states that only one has filter by what its records hold."""
    said = run("timers", "--chain", box, columns=200).stdout
    assert "state watch" in said
    assert "in-mailbox" in said
    assert [entry["state"] for entry in ask("timers", "--state", "queued", "--chain", box)["timers"]] == ["queued"]
    in_mailbox = ask("timers", "--state", "in-mailbox", "--chain", box)["timers"]
    assert [entry["globalbox"]["in_mailbox"] for entry in in_mailbox] == [1, 1, 1]
    target = in_mailbox[0]["globalbox"]["target"]
    assert len(ask("timers", "--target", target, "--chain", box)["timers"]) == 3
    (late,) = ask("timers", "--state", "late", "--chain", auction)["timers"]
    assert (late["auction"]["is_late"], late["auction"]["delay_count"], late["fees"]) == (True, 5, "standing")
    assert "asked in" in run("timers", "--chain", auction, columns=200).stdout


@pytest.mark.parametrize("columns", [80, 160])
def test_blocks_tell_how_they_chose(run: Run, ask: Ask, box: Path, auction: Path, columns: int) -> None:
    """Under Globalbox who was queued, moved and delivered; in the auction by which tip and weight."""
    for path, words in (
        (box, ("queued", "put into the mailbox", "fired")),
        (auction, ("fired", "payer could not pay")),
    ):
        lines = run("block", DUE, "--lane", "--chain", path, columns=columns).stdout
        for word in words:
            assert word in " ".join(lines.split())
        assert max(map(len, lines.splitlines())) <= columns
    assert ask("block", DUE, "--lane", "--chain", box)["lane"]["order"] == "standing"
    bids = ask("block", DUE, "--lane", "--chain", auction)["lane"]["bids"]
    assert [(bid["max_fee"], bid["max_priority_fee"]) for bid in bids] == [(10**6, 9), (10**6, 5)]


def test_activation_is_refused_by_name(run: Run, box: Path, auction: Path) -> None:
    """The timer lane succeeds FIFO and nothing else."""
    for path, name in ((box, "globalbox"), (auction, "the auction")):
        for command in ("rehearse", "propose"):
            said = " ".join(run("activation", command, "--height", 60, "--chain", path, status=1).output.split())
            assert f"the lane succeeds fifo, and this chain has {name}" in said
        said = " ".join(run("activation", "status", "--chain", path, status=1).output.split())
        assert "this chain has no timer lane and will have none" in said


def test_governance_sets_what_only_one_mechanism_has(
    run: Run, ask: Ask, box: Path, auction: Path, tmp_path: Path
) -> None:
    """At once in the auction, with the next governance epoch in Globalbox; decimal weights; no weights elsewhere."""
    bids = copytree(auction, tmp_path / "bids")
    run("govern", "set", "auction.decay", "0.25", "--chain", bids)
    assert ask("params", "auction.decay", "--chain", bids)["parameters"][0]["value"] == 250_000_000
    run("govern", "set", "auction.rescale_weights", "0.5", "--chain", bids)
    queue = copytree(box, tmp_path / "queue")
    assert "E1601" in run("govern", "set", "auction.rescale_weights", "0.5", "--chain", queue, status=1).output
    refused = run("govern", "set", "auction.decay", "0.25", "--chain", queue, status=1)
    assert "this chain has no auction" in " ".join(refused.output.split())
    run("govern", "set", "globalbox.watch_keys_max", 3, "--chain", queue)
    begins = ask("status", "--chain", queue)["globalbox"]["next_governance_epoch_at"]
    said = " ".join(run("events", "--name", "parameter.set", "--chain", queue, columns=200).stdout.split())
    assert f"globalbox.watch_keys_max is 3 from height {begins} on" in said
    assert ask("params", "globalbox.watch_keys_max", "--chain", queue)["parameters"][0]["value"] != 3
