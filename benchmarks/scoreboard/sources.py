"""Where the traces come from, to be cited with every result: they are other people's data, each under its licence."""

import dataclasses
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """Who published a trace.

    Attributes:
        name: of the publication's data.
        begins: how the names of its files begin.
        cited: authors, title, place.
        licence: SPDX name, and what was done to the data.
        real: what of it was recorded and what was drawn.
    """

    name: str
    begins: str
    cited: str
    licence: str
    real: str


SOURCES = (
    Source(
        "Azure", "azure_",
        "Patel et al., Splitwise (ISCA 2024); Stojkovic et al., DynamoLLM (HPCA 2025)", "CC-BY-4.0, converted",
        "the requests of 2023 are recorded; the week of 2024 is digitised from the published figure",
    ),
    Source("Mooncake", "mooncake_", "Qin et al., Mooncake (FAST 2025)", "Apache-2.0, converted", "recorded requests"),
    Source(
        "ServeGen", "servegen_", "Xiang et al., arXiv 2505.09999", "Apache-2.0, converted",
        "counts by ten minutes are recorded; what happens within them, and tokens, are drawn from the published fits",
    ),
    Source(
        "NAB", "nab_", "Numenta Anomaly Benchmark, (c) 2014-2024 Numenta Inc", "MIT, converted",
        "recorded counts of other things than LLM requests",
    ),
)  # fmt: skip


def of(traces: Iterable[str]) -> list[tuple[Source, list[str]]]:
    """Each source with those of these traces that are its own; a trace of one's own has none."""
    names = sorted(traces)
    found = [(source, [name for name in names if name.startswith(source.begins)]) for source in SOURCES]
    return [(source, mine) for source, mine in found if mine]


def written(traces: Iterable[str]) -> list[str]:
    """A Markdown list of the sources of these traces; empty where none is known."""
    return [
        f"- {source.name} (`{source.begins}*`): {source.cited}. {source.licence}; {source.real}."
        for source, _ in of(traces)
    ]
