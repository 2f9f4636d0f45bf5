"""The fleet that is believed: replicas that follow vLLM's scheduler step by step, compiled, and checked on real runs.

Its modules from `jit` on import numba, which is the extra `sim`; import them where they are used.
"""
