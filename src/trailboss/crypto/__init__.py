"""Digests and signatures: bytes in, bytes out."""
