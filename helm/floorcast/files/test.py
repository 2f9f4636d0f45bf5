# ruff: noqa: INP001  (a program of its own, which travels in the chart)
"""What `helm test` runs in the image: python -c THIS http://floorcast.namespace:8080; exit code 0 when all is well."""

import json
import sys
import urllib.error
import urllib.request


def answer(page: str) -> str:
    """The page; what is wrong with it ends the program."""
    url = f"{sys.argv[1]}{page}"
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:  # noqa: S310  (the chart's own address)
            return str(reply.read().decode())
    except urllib.error.HTTPError as error:
        sys.exit(f"{url}: {error.code}: {error.read().decode()}")
    except OSError as error:
        sys.exit(f"{url}: {error}")


for one in ("/healthz", "/readyz"):
    sys.stdout.write(f"{one}: {answer(one)}\n")
if refused := json.loads(answer("/api/state"))["configuration"]["refused"]:
    sys.exit("the configuration is refused, the one before it counts:\n" + "\n".join(refused))
sys.stdout.write("the configuration is the one in use\n")
