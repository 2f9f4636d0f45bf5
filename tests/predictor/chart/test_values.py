import pytest

from predictor.chart import values

TEXT = """
# The image to run.
image:
  # -- Where it is pushed to,
  # in two lines.
  repository: floorcast
  # -- When it is pulled.
  # @schema {enum: [Always, Never]}
  pullPolicy: Always
# -- A whole mapping.
# @schema {additionalProperties: {type: string}}
labels:
  a: b
# -- A list.
# @schema {items: {type: string}}
names: []
"""


def test_a_value_has_its_words_its_default_and_its_bounds() -> None:
    image, labels, names = values.read(TEXT)
    assert image.inner is not None
    repository, policy = image.inner
    assert (repository.name, repository.default) == ("image.repository", "floorcast")
    assert repository.text == "Where it is pushed to, in two lines."
    assert (policy.default, policy.schema) == ("Always", {"enum": ["Always", "Never"]})
    assert image.text == "The image to run."
    assert (labels.default, labels.inner) == ({"a": "b"}, None)
    assert names.default == []


def test_leaves_are_what_can_be_set() -> None:
    assert [leaf.name for value in values.read(TEXT) for leaf in value.leaves()] == [
        "image.repository",
        "image.pullPolicy",
        "labels",
        "names",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1", "a: no comment"),
        ("# no dashes\na: 1", "a: no comment"),
        ("a:\n  b: 1", r"a\.b: no comment"),
        ("# -- What.\na: []", "what is in the list"),
        ("# -- What.\na: null", "null says no type"),
        ("- a", "is no mapping"),
    ],
)
def test_a_value_that_does_not_say_what_it_is_is_refused(text: str, problem: str) -> None:
    with pytest.raises(values.ValuesError, match=problem):
        values.read(text)
