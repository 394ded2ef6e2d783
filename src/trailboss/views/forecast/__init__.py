"""What a timer would cost, how soon it would run, and how long a balance lasts."""
