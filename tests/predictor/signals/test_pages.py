import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictor.signals import pages, recipes
from tests.fakes import engines, exposition


def read(text: str, *names: str) -> dict[str, float]:
    return dict(zip(*pages.Reader(names).read(text), strict=True))


def test_reads_the_wanted_families_and_no_others() -> None:
    text = "# HELP a A.\n# TYPE a gauge\na 1\n# HELP b B.\n# TYPE b gauge\nb 2.5\n# TYPE c gauge\nc 3\n"
    assert read(text, "a", "c") == {"a": 1.0, "c": 3.0}


def test_keeps_names_as_written_where_the_clients_parser_adds_a_suffix() -> None:
    text = "# TYPE tgi_request_count counter\ntgi_request_count 42\n"
    assert read(text, "tgi_request_count") == {"tgi_request_count": 42.0}


def test_leaves_out_times_of_creation() -> None:
    text = (
        "# TYPE vllm:request_success_total counter\nvllm:request_success_total 3\n"
        "# TYPE vllm:request_success_created gauge\nvllm:request_success_created 1.79e9\n"
    )
    assert read(text, "vllm:request_success_total") == {"vllm:request_success_total": 3.0}


def test_reads_openmetrics_whose_families_lack_the_suffix() -> None:
    text = '# TYPE x counter\nx_total 3 # {trace_id="a b}"} 1.0 1788001000.5\nx_created 1.79e9\n# EOF\n'
    assert read(text, "x_total")["x_total"] == 3.0


def test_reads_a_page_without_types() -> None:
    assert read('a{x="1"} 1\nab 2\nb 3\n', "a", "b") == {'a{x="1"}': 1.0, "b": 3.0}


def test_reads_values_with_a_time_after_them() -> None:
    assert read('# TYPE a gauge\na{x="1"} 4 1788001000123\na 5 1788001000123\n', "a") == {'a{x="1"}': 4.0, "a": 5.0}


def test_reads_what_is_not_finite() -> None:
    values = read('# TYPE a gauge\na{x="1"} NaN\na{x="2"} +Inf\n', "a")
    assert math.isnan(values['a{x="1"}'])
    assert values['a{x="2"}'] == math.inf


def test_takes_labels_apart_that_hold_anything() -> None:
    one = pages.taken_apart('a{model_name="org/na me\\"}{,=\\\\",le="+Inf"}')
    assert one == pages.Labelled("a", {"model_name": 'org/na me"}{,=\\', "le": "+Inf"})


@pytest.mark.parametrize("text", ["", "# TYPE a gauge\na 1", "# TYPE a gauge\na 1\na{x=", "# TYPE a gauge\na x1\n"])
def test_a_page_cut_off_or_garbled_is_no_page(text: str) -> None:
    with pytest.raises(pages.PageError):
        pages.Reader(["a"]).read(text)


def test_a_page_of_something_else_has_no_series() -> None:
    assert pages.Reader(["a"]).read("<html>\n<body>not found</body>\n</html>\n") == ((), [])


LABEL_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r", exclude_categories=["Cs"]), max_size=12)


@given(st.dictionaries(st.from_regex(r"_?[a-z][a-z0-9_]{0,8}", fullmatch=True), LABEL_TEXT, max_size=4), st.floats())
def test_whatever_the_labels_and_the_value_they_come_back(labels: dict[str, str], value: float) -> None:
    escaped = {
        name: text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for name, text in labels.items()
    }
    line = exposition.level("wanted", value, **escaped)
    ((series,), (read_value,)) = pages.Reader(["wanted"]).read(exposition.page([line]))
    assert pages.taken_apart(series) == pages.Labelled("wanted", labels)
    assert read_value == value or (math.isnan(read_value) and math.isnan(value))


def test_half_a_millisecond_is_enough_for_a_page() -> None:
    padding = [exposition.level(f"other_{n}", n, engine="0", le=str(n)) for n in range(500)]
    text = exposition.page([*engines.vllm(renamed=True), *padding])
    reader = pages.Reader(["vllm:num_requests_running", "vllm:time_to_first_token_seconds_bucket"])
    start = time.process_time()
    for _ in range(50):
        reader.read(text)
    assert (time.process_time() - start) / 50 < 0.002  # 0.1 ms on an idle machine, and this one may be busy


def test_metrics_are_written_as_in_promql() -> None:
    recipe = recipes.recipe("r", {"rate": 'a{x="1",y!="2",z=~"a|b",w!~".*c"} or b'})
    metric, other = recipe.terms[0]
    assert metric.takes({"x": "1", "z": "a"})
    assert not metric.takes({"x": "1", "z": "ab"})
    assert not metric.takes({"x": "1", "y": "2", "z": "a"})
    assert not metric.takes({"x": "1", "z": "a", "w": "abc"})
    assert other == recipes.Metric("b")
