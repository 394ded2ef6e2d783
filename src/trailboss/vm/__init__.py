"""Programs: what actor code may say, what it costs, and the engines that run it."""
