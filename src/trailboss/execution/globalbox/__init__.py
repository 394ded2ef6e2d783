"""Globalbox, the first draft of CIP-5, as far as the state is concerned."""
