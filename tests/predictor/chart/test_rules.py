from pathlib import Path

import pytest
import yaml

from predictor.chart import rules
from predictor.cluster import permissions
from predictor.cluster.permissions import Purpose

CHECKOUT = Path(__file__).parents[3]
GRANT = yaml.safe_load((CHECKOUT / "helm/floorcast/values.yaml").read_text())["rbac"]["grant"]


def templates() -> dict[str, set[tuple[str, str, str]]]:
    """(group, resource, verb) by name of the template."""
    found = {}
    for part in rules.templates().split('{{- define "floorcast.rules.')[1:]:
        name, _, body = part.partition('" -}}\n')
        granted = yaml.safe_load(body.removesuffix("{{- end }}\n")) or []
        found[name] = {(*rule["apiGroups"], *rule["resources"], verb) for rule in granted for verb in rule["verbs"]}
    return found


def test_all_templates_together_grant_the_table_and_nothing_else() -> None:
    in_table = {(one.resource.group, one.resource.rule_name, one.verb) for one in permissions.PERMISSIONS}
    assert set().union(*templates().values()) == in_table


def test_every_purpose_is_a_switch_of_the_chart_or_has_a_place_of_its_own() -> None:
    apart = {Purpose.OBSERVE, Purpose.LEAD}
    assert {rules.value_of(one) for one in Purpose if one not in apart} == set(GRANT)


@pytest.mark.parametrize("purpose", [one for one in Purpose if one is not Purpose.OBSERVE], ids=str)
def test_a_template_grants_its_purpose_and_no_other(purpose: Purpose) -> None:
    wanted = {
        (one.resource.group, one.resource.rule_name, one.verb)
        for one in permissions.PERMISSIONS
        if one.purpose is purpose
    }
    assert templates()[rules.value_of(purpose)] == wanted


def test_an_api_that_not_every_cluster_has_is_looked_at_only_with_its_own_switch() -> None:
    assert {group for group, _, _ in templates()["observe"]} <= set(rules.EVERYWHERE)
    assert templates()["observe.keda"] == {("keda.sh", "scaledobjects", verb) for verb in ("list", "watch")}
    assert templates()["observe.hpa"] == set()


def test_the_page_has_a_row_for_every_permission() -> None:
    page = rules.page()
    for one in permissions.PERMISSIONS:
        assert f"| {one.verb} | {one.resource.rule_name} | {one.resource.group or 'core'} | {one.why} |" in page
