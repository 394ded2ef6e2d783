"""What eth-tester takes, for `benchmarks.in_process`; it runs where eth-tester is installed, not in our environment.

Reads the name of a sample from each line of its input, and answers with the seconds of one operation.
"""

import sys
import warnings
from time import perf_counter

warnings.simplefilter("ignore")

from eth_tester import EthereumTester, PyEVMBackend  # type: ignore[import-not-found]  # noqa: E402

GAS = 21_000  # of a transfer
PRICE = 10**10
COUNT = 20


def main() -> None:
    """Answer until the input ends."""
    chain = EthereumTester(PyEVMBackend())
    sender, receiver = chain.get_accounts()[:2]
    fields = {"from": sender, "to": receiver, "value": 1, "gas": GAS, "max_priority_fee_per_gas": 1}
    works = {
        "new": lambda: EthereumTester(PyEVMBackend()),
        "transfer": lambda: chain.send_transaction({**fields, "max_fee_per_gas": PRICE}),
        "empty": chain.mine_block,
    }
    for line in sys.stdin:
        began = perf_counter()
        for _ in range(COUNT):
            works[line.strip()]()
        print((perf_counter() - began) / COUNT, flush=True)


main()
