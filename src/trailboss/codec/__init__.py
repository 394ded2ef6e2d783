"""Codecs: the public transaction format (wire bytes and JSON) and canonical CBOR."""
