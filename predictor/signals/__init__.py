"""Where readings come from: a Prometheus, or the pods' own metrics pages; what to ask for is data in config/signals."""
