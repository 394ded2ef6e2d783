"""The node: a chain that runs by itself, and can be asked and watched over HTTP.

Everything asynchronous lives here. One thread at a time changes the chain; all others read views of it.
"""
