"""The back-test against a real Prometheus loaded with a generated past."""
