"""What a fire will cost, how likely a timer runs soon, and how far a balance reaches."""
