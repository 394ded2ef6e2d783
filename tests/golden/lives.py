"""Every example actor on a chain of its own, in its own business; what each execution and line costs is pinned."""

import json
from pathlib import Path

from trailboss.codec.canonical import encode_canonical
from trailboss.testing import CBY, LocalChain
from trailboss.testing.costs.recorder import CostRecorder

ACTORS = Path(__file__).resolve().parents[2] / "examples" / "actors"
BLOCKS = 45


def heartbeat(chain, deploy):
    deploy("heartbeat", 100 * CBY)


def clock(chain, deploy):
    deploy("clock", 100 * CBY).call("ticks", encode_canonical(None), sender=chain.accounts[1], check=True)


def vesting(chain, deploy):
    terms = {"beneficiary": str(chain.accounts[1].address), "instalment": CBY, "count": 4, "every": 10}
    deploy("vesting", 20 * CBY, json.dumps(terms).encode())


def escrow(chain, deploy):
    terms = {"seller": str(chain.accounts[1].address), "price": 5 * CBY, "blocks": 30}
    deploy("escrow", 5 * CBY, json.dumps(terms).encode())
    confirmed = deploy("escrow", 5 * CBY, json.dumps(terms).encode())
    confirmed.call("confirm", b"", sender=chain.accounts[0], check=True)


def subscription(chain, deploy):
    merchant = bytes(chain.accounts[1].address)
    terms = {"merchant": merchant, "price": CBY, "every": 10, "mandate": 25}
    wallet = deploy("subscription", 100 * CBY, encode_canonical(terms))
    wallet.call("renew", encode_canonical(15), sender=chain.accounts[0], check=True)


def oracle(chain, deploy):
    feeders = chain.accounts[1:3]
    quotes = deploy("oracle", 0, encode_canonical([bytes(feeder.address) for feeder in feeders]))
    for feeder in feeders:
        quotes.call("report", encode_canonical(1_000), sender=feeder, check=True)
    return quotes


def liquidation_watch(chain, deploy):
    quotes = oracle(chain, deploy)
    watch = deploy("liquidation_watch", 1_000 * CBY, bytes(quotes.address))
    position = encode_canonical({"units": 1, "debt": 900})
    watch.call("open_position", position, sender=chain.accounts[3], check=True)


def liquidation_bot(chain, deploy):
    bot = deploy("liquidation_bot", 1_000 * CBY)
    loan = {"units": 10, "debt": 1_000, "reward": 100 * CBY}
    for handler, payload in (("report", b"200"), ("watch", json.dumps(loan).encode())):
        bot.call(handler, payload, sender=chain.accounts[0], check=True)
    chain.mine(10)
    bot.call("report", b"100", sender=chain.accounts[0], check=True)


def auction_liquidator(chain, deploy):
    liquidator = deploy("auction_liquidator", 1_000 * CBY)
    loan = {"units": 10, "debt": 1_000, "reward": 100 * CBY}
    for handler, payload in (("report", b"200"), ("watch", json.dumps(loan).encode())):
        liquidator.call(handler, payload, sender=chain.accounts[0], check=True)
    chain.mine(10)
    liquidator.call("report", b"100", sender=chain.accounts[0], check=True)


def price_feed(chain, deploy):
    feed = deploy("price_feed", 0)
    feed.call("report", b"150", sender=chain.accounts[0], check=True)
    assert feed.view("price").return_value == b"150"
    return feed


def stop_loss(chain, deploy):
    feed = price_feed(chain, deploy)
    deploy("stop_loss", 1_000 * CBY, json.dumps({"feed": str(feed.address), "stop": 100}).encode())
    for price in (b"105", b"99"):
        feed.call("report", price, sender=chain.accounts[0], check=True)


def game_loop(chain, deploy):
    game = deploy("game_loop", 100 * CBY)
    for side in (b"right", b"left", b"right"):
        game.call("pull", side, sender=chain.accounts[2], check=True)


def retry_backoff(chain, deploy):
    courier = deploy("retry_backoff", 100 * CBY)
    job = {"target": str(courier.address), "handler": "nobody", "payload": "parcel"}
    courier.call("deliver", json.dumps(job).encode(), sender=chain.accounts[0], check=True)


def rent(chain, deploy):
    terms = {"landlord": str(chain.accounts[1].address), "rent": 20 * CBY, "month": 10}
    lease = deploy("rent", 50 * CBY, json.dumps(terms).encode())
    chain.advance_to(25)
    assert json.loads(lease.view("account").return_value)["paid"] == 2


LIVES = {
    life.__name__: life
    for life in (
        clock, heartbeat, vesting, escrow, subscription, oracle, liquidation_watch, liquidation_bot, game_loop,
        retry_backoff, auction_liquidator, price_feed, stop_loss, rent,
    )
}  # fmt: skip
"""By the name of the file in ``examples/actors``."""
MECHANISMS = {"liquidation_bot": "lane", "auction_liquidator": "auction", "stop_loss": "globalbox"}
"""Mechanisms that some of them live under; the others live under FIFO."""


def run_life(name, recorder):
    """Run an example to its end on a chain whose costs are recorded; return its receipts and its last root."""

    class RecordedLife(LocalChain):
        chain_class = recorder.chain_class()

    with RecordedLife(mechanism=MECHANISMS.get(name, "fifo")) as chain:

        def deploy(file, value, payload=b""):
            source = ACTORS / f"{file}.py"
            return chain.deploy(source, sender=chain.accounts[0], value=value, init_payload=payload)

        LIVES[name](chain, deploy)
        chain.advance_to(BLOCKS)
        return chain.receipts(), chain.state_root


def measure_lives():
    """Return, by example, what everything that ran cost, the chain's last root, and the cycles of each line."""
    measured = {}
    for name in LIVES:
        recorder = CostRecorder(ACTORS)
        receipts, state_root = run_life(name, recorder)
        ran = [[receipt.origin, receipt.status, receipt.cycles_used] for receipt in receipts]
        measured[name] = {"ran": ran, "state_root": str(state_root), "lines": _lines(recorder.table)}
    return measured


def _lines(table):
    """Return the cycles of each line, 0 for those outside the source, by source and handler."""
    return {
        f"{source} {handler}": {str(line): cycles for line, cycles in sorted(costs.lines.items())}
        for source, code_hash in table.by_name()
        for handler, costs in sorted(table.of_handlers(code_hash).items())
    }
