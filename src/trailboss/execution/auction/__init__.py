"""The GBA auction of the first CIP-1, as far as the state is concerned."""
