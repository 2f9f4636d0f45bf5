"""The simulated fleet: replicas that follow vLLM's scheduler step by step, compiled, and checked on real runs.

Pure functions of arrivals, time and a seed. It knows neither forecasts nor capacity maths nor policies, so that it
cannot grade them with their own assumptions. Only this package knows numba, and only `pool` and what it calls import
it: import that where it is used.
"""
