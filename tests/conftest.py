"""What holds for all tests: hypothesis takes no offence at a slow machine, and CI tries the same examples each time."""

import os

import hypothesis

# A noisy machine makes any limit on a single example a coin toss; pytest-timeout bounds the whole test instead.
hypothesis.settings.register_profile("developer", deadline=None)
# A failure found by luck belongs on the desk of who runs the tests, not between somebody's change and its landing.
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "developer")
