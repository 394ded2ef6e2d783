"""One room per mechanism: all that people see, pay or ask differently under it; `registry` finds a room by name."""
