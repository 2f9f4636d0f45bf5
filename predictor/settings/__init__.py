"""What Floorcast can be told, how it is read, and what the core is given.

durations    "30s" -> seconds            section    what all sections share
sections     the machinery's keys        workloads  the targets' keys
forecasting  the forecast's keys
checks       what must hold between keys engines    what the signal catalogue must have
root         `Settings`, the whole
yamlfile, loading, problems              from a file, the environment and flags, or a line for each problem
convert      the core's own dataclasses  reference  the files generated from the keys
fields       what a key says of itself   summary    what a configuration comes to, for a person
"""
