"""README.md of the chart: how to install it, and every value."""

import json
from collections.abc import Iterable

from predictor.chart.values import Value

START = """\
# Chart of Floorcast

Made from `values.yaml` by `python -m predictor.generate`; do not edit.

```sh
helm install floorcast helm/floorcast --namespace floorcast --create-namespace --values values.yaml
helm test floorcast --namespace floorcast        # is the configuration valid, does the service answer?
helm uninstall floorcast --namespace floorcast   # gives every floor back first
```

[docs/installing.md](../../docs/installing.md) goes from shadow to control, and back;
[docs/permissions.md](../../docs/permissions.md) has every permission and what it is for. A key that is not in this
table is refused, also below `config`.

| value | default | what it is for |
|---|---|---|
"""


def text(values: Iterable[Value]) -> str:
    """The file."""
    rows = "\n".join(_row(leaf) for value in values for leaf in value.leaves())
    return f"{START}{rows}\n"


def _row(value: Value) -> str:
    default = json.dumps(value.default).replace("|", "\\|")
    choices = value.schema.get("enum")
    bound = f" One of {', '.join(choices)}." if choices else ""
    return f"| `{value.name}` | `{default}` | {value.text}{bound} |"
