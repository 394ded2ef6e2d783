"""Traces: what an execution did, frame by frame and call by call, as people and programs read it."""
