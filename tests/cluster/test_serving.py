import pytest
import requests

from tests.cluster import load, manifests, serving
from tests.cluster.conftest import Serve
from tests.servers import waiting

QUICK = manifests.Workload(image_delay_s=0.5, model_delay_s=3)
CALM, BUSY = load.steady(2), load.steady(20)  # two replicas finish about 8 requests a second


def condition(served: serving.Serving, kind: str) -> tuple[str, str]:
    found = [one for one in served.hpa()["status"].get("conditions", []) if one["type"] == kind]
    return (found[0]["status"], found[0]["reason"]) if found else ("", "")


def addresses(served: serving.Serving) -> dict[str, bool]:
    """Pod address -> Ready."""
    listed = served.plane.kubectl.json("get", "pods", f"--namespace={served.workload.namespace}")
    return {
        pod["status"]["podIP"]: any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
        for pod in listed["items"]
        if "podIP" in pod["status"] and (conditions := pod["status"]["conditions"])
    }


def test_the_hpa_scales_on_the_queue_that_prometheus_scraped(serve: Serve) -> None:
    served = serve(CALM, QUICK)
    served.await_scrape(2)
    valid = ("True", "ValidMetricFound")
    waiting.until(lambda: condition(served, "ScalingActive") == valid, within_s=30, what="the HPA reads its metric")
    assert served.replicas() == 2
    served.load(BUSY)
    waiting.until(lambda: served.replicas() > 2, within_s=60, what="scaled up")
    served.await_ready(3)
    served.load(CALM)
    waiting.until(lambda: served.replicas() == 2, within_s=120, what="scaled down again", every_s=0.5)


def test_each_ready_pod_is_scraped_as_its_own_instance_with_namespace_and_pod(serve: Serve) -> None:
    served = serve(CALM, QUICK)
    served.await_scrape(2)
    namespace = served.workload.namespace
    series = served.prometheus.query(f'vllm:num_requests_running{{namespace="{namespace}"}}')
    assert {one["metric"]["instance"] for one in series} == {f"{address}:8000" for address in addresses(served)}
    listed = served.plane.kubectl("get", "pods", f"--namespace={namespace}", "--output=name").split()
    assert {f"pod/{one['metric']['pod']}" for one in series} == set(listed)


def test_a_pod_refuses_connections_until_it_is_ready(serve: Serve) -> None:
    served = serve(CALM, manifests.Workload(replicas=1, image_delay_s=0.5, model_delay_s=6))
    waiting.until(lambda: addresses(served), within_s=30, what="an address")
    ((address, ready),) = addresses(served).items()
    assert not ready
    with pytest.raises(requests.ConnectionError):
        requests.get(f"http://{address}:8000/metrics", timeout=5)
    served.await_ready(1)

    def page() -> str | None:
        try:
            return requests.get(f"http://{address}:8000/metrics", timeout=5).text
        except requests.ConnectionError:
            return None

    assert "vllm:num_requests_running" in waiting.until(page, within_s=10, what="its page")


def test_without_prometheus_the_hpa_has_no_metric_and_holds(serve: Serve) -> None:
    served = serve(CALM, QUICK)
    served.await_scrape(2)
    served.load(BUSY)
    waiting.until(lambda: served.replicas() > 2, within_s=60, what="scaled up")
    served.prometheus.stop()
    lost = ("False", "FailedGetExternalMetric")
    waiting.until(lambda: condition(served, "ScalingActive") == lost, within_s=30, what="the HPA lost its metric")
    before = served.replicas()
    served.load(CALM)
    with pytest.raises(TimeoutError):  # longer than the downscale stabilisation of 10 s
        waiting.until(lambda: served.replicas() != before, within_s=15, what="a change", every_s=1.0)
    served.prometheus.start()
    waiting.until(lambda: served.replicas() == 2, within_s=120, what="scaled down", every_s=0.5)


def test_the_scorecard_counts_what_was_served(serve: Serve) -> None:
    served = serve(CALM, QUICK)
    served.await_ready(2)
    card = waiting.until(
        lambda: (card := served.scorecard())["finished"] > 5 and card, within_s=60, what="some requests finished"
    )
    assert card["requests"] >= card["finished"]
    served.check()
