"""What the documents say is so: where links lead, which commands, flags, metrics, keys and reasons there are."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer.main
import yaml

from predictor import cli
from predictor.cluster import errors, marks
from predictor.settings import convert, discovered, loading, reference
from predictor.telemetry import table

CHECKOUT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    path.relative_to(CHECKOUT).as_posix()
    for place in ("*.md", "docs/**/*.md", "helm/**/*.md")
    for path in CHECKOUT.glob(place)
)
# What was measured and decided once is told as it was then.
PRESENT = [page for page in PAGES if not page.startswith(("CHANGELOG", "docs/decisions/", "docs/benchmarks"))]

FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`]+)`")
EXTERNAL = ("http://", "https://")
FOREIGN = {"--no-hooks", "--state"}  # flags of Helm and of ./dev rig that stand alone in a sentence


def text(page: str) -> str:
    return (CHECKOUT / page).read_text(encoding="utf-8")


def prose(page: str) -> str:
    return FENCE.sub("", text(page))


def fences(page: str, language: str) -> list[str]:
    return [body for kind, body in FENCE.findall(text(page)) if kind == language]


def spans(page: str) -> Iterator[str]:
    """Code within a sentence, in one line."""
    return (" ".join(span.split()) for span in SPAN.findall(prose(page)))


def anchor(heading: str) -> str:
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", LINK.sub(r"\1", heading).strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {anchor(line.lstrip("#")) for line in prose(str(page)).splitlines() if line.startswith("#")}


def leads(page: str) -> Iterator[tuple[str, Path, str]]:
    """The links of a page to files: as written, the file, the anchor in it or nothing."""
    for _, link in LINK.findall(prose(page)):
        if not link.startswith(EXTERNAL):
            path, _, place = link.partition("#")
            yield link, (CHECKOUT / page).parent.joinpath(path).resolve() if path else CHECKOUT / page, place


def commands(page: str) -> Iterator[list[str]]:
    """What a page says to type of `floorcast`, without that word."""
    lines = "\n".join(body for _, body in FENCE.findall(text(page))).replace("\\\n", " ").splitlines()
    for line in [*lines, *spans(page)]:
        typed = line.rpartition(" -- ")[2].removeprefix("$ ").strip()
        if re.match(r"(\S*/)?floorcast \w", typed):
            yield shlex.split(typed, comments=True)[1:]


def options() -> dict[str, set[str]]:
    """Flags by command; `config validate` is one."""
    root = typer.main.get_command(cli.app)
    found = dict(root.commands)  # type: ignore[attr-defined]
    group = found.pop("config")
    found |= {f"config {name}": one for name, one in group.commands.items()}
    return {
        name: {"--help"} | {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
        for name, command in found.items()
    }


def keys() -> set[str]:
    """Keys of the configuration as they may be written (with and without defaults and targets), and the chart's."""
    rows = re.findall(r"^\| (?:\*\*)?`([\w.\[\]]+)`", reference.document(), re.MULTILINE)
    plain = {row.replace("[]", "") for row in rows}
    plain |= {key.removeprefix(section) for key in plain for section in ("defaults.", "targets.")}
    plain |= {f"targets.{key}" for key in plain}
    chart = set(places(yaml.safe_load(text("helm/floorcast/values.yaml"))))
    return plain | {f"config.{key}" for key in plain} | chart


def places(section: dict[str, Any], before: str = "") -> Iterator[str]:
    """Every key of nested mappings, with dots."""
    for name, value in section.items():
        yield f"{before}{name}"
        if isinstance(value, dict):
            yield from places(value, f"{before}{name}.")


def named(page: str) -> Iterator[str]:
    """What looks like a key of more than one part, without the value that it may be given."""
    for span in spans(page):
        if re.fullmatch(r"[a-z_]\w*(\[\])?(\.[a-z_]\w*(\[\])?)+([:=] ?\S*)?", span) and not re.search(r"\.\w+\(", span):
            yield re.split(r"[:=]", span)[0].replace("[]", "")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_what_is_there(page: str) -> None:
    broken = [
        link
        for link, path, place in leads(page)
        if not path.exists() or (place and path.suffix == ".md" and place not in anchors(path))
    ]
    assert broken == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached, ahead = set[str](), ["README.md"]
    while ahead:
        page = ahead.pop()
        if page not in reached:
            reached.add(page)
            found = {path for _, path, _ in leads(page) if path.suffix == ".md"}
            ahead += [path.relative_to(CHECKOUT).as_posix() for path in found]
            folders = [path for _, path, _ in leads(page) if path.is_dir()]
            ahead += [one.relative_to(CHECKOUT).as_posix() for folder in folders for one in folder.glob("*.md")]
    assert sorted(set(PAGES) - reached) == []


def test_anchors_are_those_of_github() -> None:
    assert anchor(" `--hpa`: your own HPA, or [KEDA's](keda.md)") == "--hpa-your-own-hpa-or-kedas"
    assert anchor(" Over a restart") == "over-a-restart"


@pytest.mark.parametrize("page", PRESENT)
def test_commands_and_their_flags_exist(page: str) -> None:
    known = options()
    wrong = []
    for words in commands(page):
        name = " ".join(words[:2] if words[0] == "config" else words[:1])
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)}
        if name not in known or used - known[name]:
            wrong.append(" ".join(words))
    every = FOREIGN.union(*known.values())
    wrong += [span for span in spans(page) if span.startswith("--") and re.split(r"[ =]", span)[0] not in every]
    assert wrong == []


@pytest.mark.parametrize("page", PRESENT)
def test_what_dev_is_asked_for_it_can_do(page: str) -> None:
    can = set(re.findall(r"^\./dev ([a-z-]+)", text("dev"), re.MULTILINE))
    assert len(can) > 5
    assert set(re.findall(r"\./dev ([a-z-]+)", text(page))) - can == set()


@pytest.mark.parametrize("page", PRESENT)
def test_metrics_exist(page: str) -> None:
    known = {metric.name for metric in table.TABLE}
    said = set(re.findall(r"\bfloorcast_[a-z_]*[a-z]\b(?![_*])", text(page)))
    assert {name for name in said if re.sub(r"_(bucket|sum|count)$", "", name) not in known} == set()


@pytest.mark.parametrize("page", PRESENT)
def test_keys_exist(page: str) -> None:
    known = keys()
    sections = {key.partition(".")[0] for key in known}
    files = ("py", "md", "yaml", "json", "csv", "html", "toml", "jsonl", "gz", "unusable")
    said = {key for key in named(page) if key.partition(".")[0] in sections and key.rpartition(".")[2] not in files}
    assert said - known == set()


def test_a_key_that_does_not_exist_would_be_found() -> None:
    known = keys()
    assert {"capacity.ttft", "defaults.capacity.ttft", "targets.events", "config.mode", "rbac.grant"} <= known
    assert "capacity.ttfb" not in known


@pytest.mark.parametrize("page", PRESENT)
def test_yaml_is_yaml_and_values_are_taken_by_chart_and_service(page: str, tmp_path: Path) -> None:
    schema = json.loads(text("helm/floorcast/values.schema.json"))
    for body in fences(page, "yaml"):
        list(yaml.safe_load_all(body))
        if re.match(r"# values", body):
            given: dict[str, Any] = yaml.safe_load(body)
            jsonschema.validate(given, schema)
            path = tmp_path / "floorcast.yaml"
            path.write_text(yaml.safe_dump(given["config"]), encoding="utf-8")
            convert.targets(loading.load(path))


def test_every_reason_to_leave_a_number_alone_has_its_remedy() -> None:
    def leaves(error: type[errors.ClusterError]) -> Iterator[str]:
        for one in error.__subclasses__():
            yield from leaves(one)
        if not error.__subclasses__():
            yield error.reason

    rows = text("docs/ownership.md").partition("## Refusals and remedies")[2].splitlines()
    told = {span for row in rows if row.startswith("|") for span in SPAN.findall(row.split("|")[1])}
    assert set(leaves(errors.ClusterError)) - told == set()


def test_annotations_are_told_and_exist() -> None:
    page = text("docs/ownership.md")
    left = {marks.ORIGINAL, marks.LAST_WRITTEN, marks.STATUS, marks.RELEASED, marks.SHADOWED}
    read = {f"{discovered.PREFIX}{name}" for name in discovered.ANNOTATIONS}
    label = {f"{discovered.PREFIX}scale"}
    assert set(re.findall(r"\bfloorcast\.dev/[a-z-]+", page)) - left - read - label == set()
    assert {one for one in left if f"`{one}`" not in page} == set()
    by_label = page.partition("## Targets by label")[2].partition("\n## ")[0]
    assert {name for name in discovered.ANNOTATIONS if name not in by_label} == set()


def test_every_room_is_on_the_plan() -> None:
    page = text("docs/architecture.md")
    rooms = [
        path.name
        for house in ("models", "predictor")
        for path in (CHECKOUT / house).iterdir()
        if not path.name.startswith("_") and (path.is_dir() or path.suffix == ".py")
    ]
    assert len(rooms) > 30
    assert sorted(room for room in rooms if not re.search(rf"\b{re.escape(room)}\b", page)) == []
