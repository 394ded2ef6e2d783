"""An activation of the lane, tried on a copy of a chain."""
