"""What people look at, put together from one view of the chain and from the index: for REST and for the explorer."""
