"""The state transition: `block.apply_block` top to bottom, and what it stands on."""
