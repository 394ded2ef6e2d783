"""What runs inside the sandbox: the native engine, with the chain at the other end of one function."""
