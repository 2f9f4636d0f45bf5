"""How good, how fast and how large the forecast is: `python -m benchmarks.forecast --help`."""
