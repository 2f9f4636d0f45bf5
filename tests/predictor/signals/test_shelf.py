from pathlib import Path

import pytest

from models.signals import Signal
from predictor.signals import catalog, recipes, shelf
from tests.fakes import cluster_objects

GOOD = """
model: model_name
select: server=""
queries:
  in_flight:
    running: sum by ($by) (max by ($each) (x:running{$sel}))
pages:
  in_flight:
    running: {sum: x:running}
"""


def load(folder: Path, text: str, **others: str) -> catalog.Catalog:
    for name, content in {"mine": text, **others}.items():
        (folder / f"{name}.yaml").write_text(content)
    return shelf.load(folders=[folder])


def test_the_shipped_catalogue_knows_the_engines_of_the_field() -> None:
    shipped = shelf.load()
    assert {"vllm", "sglang", "tgi", "trtllm", "triton", "lmdeploy", "llamacpp", "dynamo", "llm_d"} <= set(shipped)
    for name in ("vllm", "sglang", "tgi"):
        assert {*shipped[name].queries, Signal.COMPLETIONS} == set(Signal)
        assert {*shipped[name].pages, Signal.REPORTING, Signal.COMPLETIONS} == set(Signal)


def test_sizes_are_told_only_where_tokens_are_counted_as_they_come() -> None:
    """Tokens that are counted when a request ends would make a surge look like short requests."""
    shipped = shelf.load().items()
    asked = {name for name, engine in shipped if Signal.COMPLETIONS in engine.queries}
    assert asked == {"vllm", "llm_d", "gateway_api", "ray_vllm", "sglang"}
    assert {name for name, engine in shipped if Signal.COMPLETIONS in engine.pages} == asked - {"sglang"}


def test_ways_to_ask_keep_the_order_of_the_file() -> None:
    ways = [way.name for way in shelf.load()["vllm"].queries[Signal.ARRIVALS]]
    assert ways == ["router", "first_tokens", "completions"]


def test_no_query_asks_for_a_rate_of_created_series_or_matches_names_by_pattern() -> None:
    text = " ".join(way.query for engine in shelf.load().values() for ways in engine.queries.values() for way in ways)
    assert "_created" not in text
    assert "__name__" not in text


def test_a_query_is_written_for_label_names_windows_and_more_matchers(tmp_path: Path) -> None:
    engine = load(tmp_path, GOOD)["mine"]
    labels = catalog.Labels(namespace="ns", pod="p", model="m")
    asking = catalog.Asking(labels, catalog.Windows.for_interval(15), 'cluster="a"')
    assert engine.render(engine.queries[Signal.IN_FLIGHT][0].query, asking) == (
        'sum by (ns, m) (max by (ns, p, m) (x:running{server="",cluster="a"}))'
    )


@pytest.mark.parametrize(
    ("interval", "rate", "long"),
    [(5, 40, 100), (15, 120, 300), (30, 240, 600), (60, 300, 1200), (120, 480, 2400), (0.5, 4, 10)],
)
def test_windows_hold_at_least_four_scrapes(interval: float, rate: int, long: int) -> None:
    assert catalog.Windows.for_interval(interval) == catalog.Windows(rate, long)
    assert rate >= 4 * interval


def test_an_engine_without_a_model_label_is_keyed_by_namespace_alone(tmp_path: Path) -> None:
    engine = load(tmp_path, GOOD.replace("model: model_name\n", ""))["mine"]
    assert engine.key_of(cluster_objects.target(model="any")) == ("llm", "")
    assert engine.render("sum by ($by) (x)", catalog.Asking()) == "sum by (namespace) (x)"


def test_a_configured_model_label_leaves_engines_alone_that_call_it_otherwise() -> None:
    triton = shelf.load()["triton"]
    assert triton.model_label(catalog.Labels(model="modelname")) == "model"
    assert shelf.load()["vllm"].model_label(catalog.Labels(model="modelname")) == "modelname"


def test_model_names_match_whatever_their_case_where_the_engine_folds_it() -> None:
    dynamo = shelf.load()["dynamo"]
    target = cluster_objects.target(engine="dynamo", model="Org/Model")
    assert dynamo.key_of(target) == dynamo.key_in({"namespace": "llm", "model": "org/model"}, catalog.Labels())


def test_an_engine_may_extend_another_and_is_asked_its_own_way_first(tmp_path: Path) -> None:
    own = "extends: mine\nqueries: {in_flight: {gateway: 'sum by ($by) (gw)'}}\n"
    engine = load(tmp_path, GOOD, other=own)["other"]
    assert [way.name for way in engine.queries[Signal.IN_FLIGHT]] == ["gateway", "running"]
    assert engine.model == "model_name"
    assert engine.pages[Signal.IN_FLIGHT][0].kind is recipes.Kind.SUM


def test_an_engine_may_rename_what_it_extends(tmp_path: Path) -> None:
    engine = load(tmp_path, GOOD, other="extends: mine\nrename: {'x:': y_}\n")["other"]
    assert "y_running" in engine.queries[Signal.IN_FLIGHT][0].query
    assert engine.pages[Signal.IN_FLIGHT][0].terms[0][0].name == "y_running"


def test_files_of_a_later_folder_replace_those_of_the_same_name(tmp_path: Path) -> None:
    load(tmp_path, GOOD)
    (tmp_path / "vllm.yaml").write_text(GOOD)
    engines = shelf.load(folders=[shelf.SHIPPED, tmp_path])
    assert set(engines["vllm"].queries) == {Signal.IN_FLIGHT}
    assert "sglang" in engines


def test_an_override_takes_the_place_of_every_way_for_that_signal_only() -> None:
    engines = shelf.load(overrides={"vllm": {"arrivals": "sum by ($by) (own)"}})
    assert [way.name for way in engines["vllm"].queries[Signal.ARRIVALS]] == [shelf.OVERRIDE]
    assert len(engines["vllm"].queries) == len(Signal)


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ({"vlm": {"arrivals": "x"}}, r"signals\.vlm: no such engine; did you mean vllm\?"),
        ({"vllm": {"arrivalz": "x"}}, r"signals\.vllm\.arrivalz: no such signal; did you mean arrivals\?"),
        ({"vllm": {"arrivals": "sum(x)"}}, r"signals\.vllm\.arrivals: lacks \$by"),
        ({"vllm": {"arrivals": "sum by ($by) (x[$window])"}}, r"\$window is no placeholder"),
        ({"vllm": {"arrivals": 'sum by ($by) (label_replace(x, "a", "$1", "b", "c"))'}}, r"write \$\$ for a dollar"),
        ({"vllm": {"arrivals": " "}}, "must be a query"),
    ],
)
def test_an_override_that_cannot_be_used_is_named_with_its_remedy(
    overrides: dict[str, dict[str, str]], told: str
) -> None:
    with pytest.raises(shelf.CatalogError, match=told):
        shelf.load(overrides=overrides)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("queries: [", r"mine\.yaml: is no YAML"),
        ("- a", r"mine\.yaml: is \['a'\]: must be a mapping"),
        ("queriez: {}", r"mine\.yaml: queriez: no such key; did you mean queries\?"),
        (
            "queries: {in_flihgt: {a: 'sum by ($by) (x)'}}",
            r"queries\.in_flihgt: no such signal; did you mean in_flight",
        ),
        ("queries: {in_flight: 'sum by ($by) (x)'}", r"queries\.in_flight: is 'sum .* must be a mapping"),
        ("queries: {in_flight: {a: 3}}", r"queries\.in_flight\.a: is 3: must be a query"),
        ("queries: {in_flight: {a: 'sum(x)'}}", r"queries\.in_flight\.a: lacks \$by"),
        ("queries: {in_flight: {a: 'sum by ($by) (x{$select})'}}", r"\$select is no placeholder; did you mean"),
        ("fresh: 'timestamp(x)'", r"mine\.yaml: fresh: lacks \$by"),
        ("model: [a]", r"mine\.yaml: model: is \['a'\]: must be text"),
        ("ranks: engine", r"mine\.yaml: ranks: is 'engine': must be a list of labels"),
        ("folds_case: 1", r"mine\.yaml: folds_case: is 1: must be true or false"),
        ("extends: nobody", r"mine\.yaml: extends: 'nobody' is no file of the catalogue"),
        ("extends: mine", r"mine\.yaml: extends: mine -> mine goes round in a circle"),
        ("pages: {in_flight: {a: {sun: x}}}", r"pages\.in_flight\.a: has sun: known are"),
        ("pages: {in_flight: {a: {sum: x, mean: y}}}", r"pages\.in_flight\.a: needs exactly one of"),
        ("pages: {in_flight: {a: {sum: 3}}}", r"pages\.in_flight\.a: sum is 3: must be a metric"),
        ("pages: {in_flight: {a: {sum: 'x y'}}}", r"'x y' is no metric"),
        ("pages: {in_flight: {a: {sum: 'x{y=z}'}}}", r"cannot read the labels from 'y=z'"),
        ("pages: {in_flight: {a: {sum: x, change: y}}}", "change and optional belong to a rate"),
        ("pages: {in_flight: {a: {share: x}}}", "share needs two metrics"),
        ("pages: {in_flight: {a: {sum: x, scale: -1}}}", "scale is -1: must be a positive number"),
        ("pages: {in_flight: {a: 3}}", r"pages\.in_flight\.a: is 3: must be a mapping"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_key(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(shelf.CatalogError, match=told):
        load(tmp_path, text)


def test_a_catalogue_that_is_missing_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(shelf.CatalogError, match="the signal catalogue is missing"):
        shelf.load(folders=[tmp_path])


def test_targets_whose_series_cannot_be_told_apart_are_found() -> None:
    one, other, third = (cluster_objects.target(name) for name in ("a", "b", "c"))
    elsewhere = cluster_objects.target("d", namespace="elsewhere")
    groups = catalog.shared([one, other, third, elsewhere], shelf.load()["vllm"])
    assert groups == {("llm", "llama"): (one, other, third)}
