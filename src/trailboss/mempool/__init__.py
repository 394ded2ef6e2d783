"""The mempool: what waits for a block, how it came in, and how its wait ended. Synchronous, for several threads.

Decision: D-71
"""

from trailboss.mempool.admission import verify
from trailboss.mempool.journal import Journal
from trailboss.mempool.pool import Mempool
from trailboss.mempool.records import (
    AdmissionOutcome,
    AdmissionStatus,
    End,
    Ending,
    MempoolLimits,
    Pooled,
    Recovery,
    Statistics,
)

__all__ = ["End", "Ending", "Journal", "Mempool", "MempoolLimits", "Pooled"]
__all__ += ["AdmissionOutcome", "AdmissionStatus", "Recovery", "Statistics", "verify"]
