"""Claims that an address has signed a digest, answered as a stream."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from trailboss.crypto.claims import READY, answer_claims
from trailboss.crypto.digest import sha256
from trailboss.crypto.signatures import address_of, sign

KEYS = [bytes((number,)) * 32 for number in (1, 2)]
DIGESTS = [sha256(bytes((number,))) for number in range(3)]
RIGHT = [digest + sign(digest, key) + address_of(key) for digest in DIGESTS for key in KEYS]
WRONG = [
    RIGHT[0][:-20] + address_of(KEYS[1]),
    DIGESTS[1] + RIGHT[0][32:],
    RIGHT[0][:96] + b"\x02" + RIGHT[0][97:],
    bytes(len(RIGHT[0])),
]


@given(claims=st.lists(st.sampled_from([*RIGHT, *WRONG]), max_size=8), cuts=st.lists(st.integers(1, 300)))
def test_each_claim_gets_its_verdict_however_the_stream_is_cut(claims: list[bytes], cuts: list[int]) -> None:
    """In order, after the word that it is ready; a signature of zeros does not pass for the address of zeros."""

    def pieces() -> Iterator[bytes]:
        left = b"".join(claims)
        for cut in cuts:
            yield left[:cut]
            left = left[cut:]
            if not left:
                return
        yield left

    stream = pieces()
    written: list[bytes] = []
    answer_claims(lambda _: next(stream, b""), written.append)
    assert b"".join(written) == READY + bytes(claim in RIGHT for claim in claims)
