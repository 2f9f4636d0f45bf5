"""Every policy over every trace, in one table: `python -m benchmarks.scoreboard --help`."""
