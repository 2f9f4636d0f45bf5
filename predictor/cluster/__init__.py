"""The Kubernetes cluster: what runs, who owns the replica count, and where the number is written.

`workloads.py` implements the port, `inventory.py` reads a namespace once for all its targets, `owners.py` lists the
actuators from the highest owner down: a new kind of owner is one more file beside `hpa.py` and one more line there.
"""
