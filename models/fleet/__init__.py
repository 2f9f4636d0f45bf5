"""A simulated fleet of replicas that serve a language model; pure functions of arrivals, time and a seed.

It knows neither forecasts nor capacity maths nor policies, so that it cannot grade them with their own assumptions.
"""
