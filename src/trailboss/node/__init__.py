"""The node: a chain that runs by itself, and can be asked and watched over HTTP.

Everything asynchronous lives here. The chain is changed by one thread; everybody else reads pictures of it.
"""
