"""Policies driven on the simulated fleet: the one place that knows both."""
