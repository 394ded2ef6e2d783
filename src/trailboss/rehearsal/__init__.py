"""An activation of the timer lane, tried on a copy of a chain."""
