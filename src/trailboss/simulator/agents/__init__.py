"""Who schedules timers, and why: each kind of agent in a module of its own."""
