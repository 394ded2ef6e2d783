"""What a timer would cost and how soon it would run, and how long a purse lasts."""
