"""A chain behind a node: read key by key, acted on by requests."""
