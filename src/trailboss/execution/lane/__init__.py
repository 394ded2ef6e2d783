"""The timer lane of the third CIP-1 in the state: its market, its fairness window, the fees that timers offer."""
