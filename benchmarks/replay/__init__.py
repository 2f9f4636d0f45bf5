"""Replays a request file on one simulated replica."""
