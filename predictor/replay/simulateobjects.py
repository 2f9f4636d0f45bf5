"""A HorizontalPodAutoscaler (autoscaling/v2) and a ScaledObject (keda.sh/v1alpha1), field by field as they are written.

A field that is not here is refused. Those that say what is scaled, or how a metric is fetched, are taken and not looked
at: they change nothing in a simulation.
"""

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

import pydantic
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from models.peers.behavior import PolicyKind, Select
from models.peers.keda import FallbackBehavior
from models.peers.metrics import Kind

SUFFIXES = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9}  # powers of ten
LONGEST_PERIOD, LONGEST_WINDOW = 1800, 3600  # seconds, as the API server validates


def quantity(value: object) -> float:
    """A Kubernetes quantity: "20", "500m", "2k", 0.8. A pydantic error for anything that is none, or is not positive.

    Binary suffixes are left out: nothing that is measured here is counted in bytes.
    """
    text = "" if isinstance(value, bool) else str(value).strip()
    match = re.fullmatch(rf"(\d+(?:\.\d*)?|\.\d+)([{''.join(SUFFIXES)}]?|[eE][+-]?\d+)", text)
    if match is None:
        raise PydanticCustomError("quantity", "must be a quantity, as 20, 500m or 0.8")
    number, suffix = match.groups()
    if suffix not in SUFFIXES:
        return float(text)
    return float(Decimal(number).scaleb(SUFFIXES[suffix]))


def _positive(value: float) -> float:
    if not value > 0:
        raise PydanticCustomError("positive", "must be above 0")
    return value


Share = Annotated[float, pydantic.BeforeValidator(quantity)]
Target = Annotated[float, pydantic.BeforeValidator(quantity), pydantic.AfterValidator(_positive)]
Count = Annotated[int, pydantic.Field(ge=0, strict=True)]
AtLeastOne = Annotated[int, pydantic.Field(ge=1, strict=True)]


class Shape(pydantic.BaseModel):
    """A mapping whose fields are all known."""

    model_config = pydantic.ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


# ------------------------------------------------------------------------------------------------------------ behaviour
class Policy(Shape):
    """So many pods or percent in a period."""

    type: PolicyKind
    value: AtLeastOne
    period_seconds: Annotated[int, pydantic.Field(ge=1, le=LONGEST_PERIOD, strict=True)]


class Direction(Shape):
    """scaleUp or scaleDown."""

    stabilization_window_seconds: Annotated[int, pydantic.Field(ge=0, le=LONGEST_WINDOW, strict=True)] | None = None
    select_policy: Select = Select.MAX
    policies: Annotated[tuple[Policy, ...], pydantic.Field(min_length=1)] | None = None
    tolerance: Share | None = None


class Behavior(Shape):
    """Both."""

    scale_up: Direction | None = None
    scale_down: Direction | None = None


# ------------------------------------------------------------------------------------------------------------------ HPA
class Selector(Shape):
    """Labels of a metric's series."""

    match_labels: dict[str, str] = pydantic.Field(default_factory=dict)
    match_expressions: tuple[dict[str, Any], ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Their names."""
        return (*self.match_labels, *(str(one.get("key")) for one in self.match_expressions))


class MetricName(Shape):
    """Which metric."""

    name: str
    selector: Selector = Selector()


class MetricTarget(Shape):
    """One of value and averageValue."""

    type: Kind
    value: Target | None = None
    average_value: Target | None = None

    @pydantic.model_validator(mode="after")
    def _of_its_type(self) -> "MetricTarget":
        given = {Kind.VALUE: self.value, Kind.AVERAGE: self.average_value}
        others = [kind for kind in given if kind is not self.type and given[kind] is not None]
        if given[self.type] is None or others:
            name = {Kind.VALUE: "value", Kind.AVERAGE: "averageValue"}[self.type]
            raise PydanticCustomError("target", "must have {name}, and no other, with this type", {"name": name})
        return self

    @property
    def aimed(self) -> float:
        """The number."""
        found = self.value if self.type is Kind.VALUE else self.average_value
        assert found is not None  # noqa: S101  (validated above)
        return found


class Measured(Shape):
    """What External, Object and Pods metrics have in common."""

    metric: MetricName
    target: MetricTarget
    described_object: dict[str, Any] | None = None


class HpaMetric(Shape):
    """One entry of spec.metrics."""

    type: Literal["External", "Object", "Pods", "Resource", "ContainerResource"]
    external: Measured | None = None
    object: Measured | None = None
    pods: Measured | None = None
    resource: dict[str, Any] | None = None
    container_resource: dict[str, Any] | None = None


class HpaSpec(Shape):
    """spec of a HorizontalPodAutoscaler."""

    scale_target_ref: dict[str, Any]
    min_replicas: Count = 1
    max_replicas: AtLeastOne
    metrics: tuple[HpaMetric, ...] = ()
    behavior: Behavior | None = None


# ----------------------------------------------------------------------------------------------------------------- KEDA
class Fallback(Shape):
    """spec.fallback."""

    failure_threshold: Count
    replicas: Count
    behavior: FallbackBehavior = FallbackBehavior.STATIC


class HpaConfig(Shape):
    """advanced.horizontalPodAutoscalerConfig."""

    name: str = ""
    behavior: Behavior | None = None


class Advanced(Shape):
    """spec.advanced."""

    horizontal_pod_autoscaler_config: HpaConfig = HpaConfig()
    restore_to_original_replica_count: bool = False
    scaling_modifiers: dict[str, Any] = pydantic.Field(default_factory=dict)


class Trigger(Shape):
    """One entry of spec.triggers."""

    type: str
    name: str = ""
    metadata: dict[str, Annotated[str, pydantic.Field(strict=True)]]
    metric_type: Literal["AverageValue", "Value", "Utilization"] = "AverageValue"
    use_cached_metrics: bool = False
    authentication_ref: dict[str, Any] | None = None


class ScaledObjectSpec(Shape):
    """spec of a ScaledObject."""

    scale_target_ref: dict[str, Any]
    polling_interval: AtLeastOne = 30
    cooldown_period: Count = 300
    initial_cooldown_period: Count = 0
    idle_replica_count: Count | None = None
    min_replica_count: Count = 0
    max_replica_count: AtLeastOne = 100
    fallback: Fallback | None = None
    advanced: Advanced = Advanced()
    triggers: Annotated[tuple[Trigger, ...], pydantic.Field(min_length=1)]


class PrometheusMetadata(pydantic.BaseModel):
    """Metadata of a prometheus trigger; all are texts, and those on how to reach the server change nothing."""

    model_config = pydantic.ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)

    query: str
    threshold: Target
    activation_threshold: Share = 0.0
    ignore_null_values: bool = True
    server_address: str = ""
    metric_name: str = ""
    namespace: str = ""
    auth_modes: str = ""
    unsafe_ssl: str = ""
    custom_headers: str = ""
    query_parameters: str = ""
    cortex_org_id: str = pydantic.Field(default="", alias="cortexOrgID")
    timeout: str = ""
