"""The node over HTTP: what it can be asked, in which form, and how it refuses."""
