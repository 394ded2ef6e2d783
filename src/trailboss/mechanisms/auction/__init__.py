"""The GBA auction: `trailboss.mechanisms.auction.mechanism` is the seam's side of it."""

from trailboss.mechanisms.auction.mechanism import NAME, Auction, build_auction

__all__ = ["NAME", "Auction", "build_auction"]
