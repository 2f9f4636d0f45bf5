"""The simulation's report: one HTML file that needs no network and no script, and the runs as CSV."""

import dataclasses
from pathlib import Path

import jinja2
import markupsafe
import pandas as pd

from models.race import frontier
from predictor.replay import simulatecharts, simulateverdict
from predictor.replay.recorded import Note
from predictor.replay.simulateruns import Found, Raced
from predictor.settings import durations

TABLES = ("simulation.csv", "policies.csv", "timeline.csv")  # every run; every policy as set up; its course
QUANTILES = (0.5, 0.9, 0.95, 0.99)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Told:
    """All that a report says.

    Attributes:
        command: the command line that makes it again.
        workload: its name.
        found: what the simulation found.
        price: of one GPU and hour.
        currency: its sign.
        attainment: share of the requests that should meet the objective.
        notes: what was assumed.
    """

    command: str
    workload: str
    found: Found
    price: float
    currency: str
    attainment: float
    notes: tuple[Note, ...]

    def cost(self, one: Raced) -> float:
        """Money the default run of a policy takes."""
        return one.outcome.gpu_hours * self.price

    def tuned(self, one: Raced) -> frontier.Found:
        """What the attainment costs a policy when its knob is turned for it."""
        return frontier.at_attainment(one.points, self.attainment)

    def tuned_cost(self, one: Raced) -> float | None:
        """The same as money; None where it is never reached."""
        hours = self.tuned(one).hours
        gpus = self.found.course.profile.gpus
        return None if hours is None else hours * gpus * self.price

    @property
    def headline(self) -> str:
        """The sentence to act on."""
        prices = [
            simulateverdict.Price(
                one.name,
                self.tuned_cost(one),
                at_most=self.tuned(one).how is frontier.How.CHEAPEST,
                runs=len(one.points),
                given=one.given,
            )
            for one in self.found.raced
        ]
        goal = simulateverdict.Goal(self.attainment, self.found.course.objective)
        return simulateverdict.sentence(prices, goal, self.currency)

    def tuned_shown(self, one: Raced) -> str:
        """What the attainment costs a policy, as it stands in a table."""
        cost = self.tuned_cost(one)
        if cost is None:
            return "never"
        at_most = "≤ " if self.tuned(one).how is frontier.How.CHEAPEST else ""
        return f"{at_most}{simulateverdict.money(cost, self.currency)}"


def write(told: Told, folder: Path) -> tuple[Path, ...]:
    """Writes simulation.html and TABLES; the folder is made."""
    folder.mkdir(parents=True, exist_ok=True)
    page, tables = folder / "simulation.html", (_runs(told), _served(told), _timelines(told.found))
    page.write_text(html(told), encoding="utf-8")
    files = tuple(folder / name for name in TABLES)
    for table, path in zip(tables, files, strict=True):
        table.to_csv(path, index=False, float_format="%.6g")
    return page, *files


def html(told: Told) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("predictor.replay", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(duration=durations.written)
    found = told.found
    pictures = {
        one.name: markupsafe.Markup(  # noqa: S704  (numbers and escaped names only)
            simulatecharts.timeline(one.timeline, rate=found.knee.rate, start=found.course.start)
        )
        for one in found.raced
    }
    return environment.get_template("simulate.html.j2").render(
        told=told,
        found=found,
        pictures=pictures,
        colours=simulatecharts.colours(found.raced),
        frontier=markupsafe.Markup(simulatecharts.frontiers(found)),  # noqa: S704  (likewise)
    )


def _runs(told: Told) -> pd.DataFrame:
    gpus = told.found.course.profile.gpus
    return pd.DataFrame(
        {
            "policy": one.name,
            "knob": one.knob,
            "value": point.knob,
            "default": i == 0,
            "replica_hours": point.hours,
            "missed_share": point.missed,
            "starts": point.starts,
            "cost": point.hours * gpus * told.price,
        }
        for one in told.found.raced
        for i, point in enumerate(one.points)
    )


def _served(told: Told) -> pd.DataFrame:
    """A policy as set up: every item of its scorecard."""
    rows = []
    for one in told.found.raced:
        card, outcome = one.card, one.outcome
        rows.append(
            {
                "policy": one.name,
                "requests": outcome.requests,
                "missed": outcome.missed,
                "attainment": outcome.attainment,
                "rejected": card.rejected,
                "timed_out": card.timed_out,
                "failed": card.failed,
                "preempted": card.preempted,
                **{
                    f"{what}_p{q * 100:g}_s": getattr(card, what).quantile(q)
                    for what in ("ttft", "itl", "e2e")
                    for q in QUANTILES
                },
                "replica_hours": outcome.replica_hours,
                "warming_hours": outcome.warming_hours,
                "hours_below_demand": outcome.hours_short,
                "starts": outcome.starts,
                "wasted_starts": outcome.wasted,
                "cost": told.cost(one),
            }
        )
    return pd.DataFrame(rows)


def _timelines(found: Found) -> pd.DataFrame:
    frames = []
    for one in found.raced:
        columns = dataclasses.fields(one.timeline)
        frame = pd.DataFrame({field.name: getattr(one.timeline, field.name) for field in columns})
        frame.insert(0, "policy", one.name)
        frames.append(frame.rename(columns={"times": "seconds", "demand": "arrivals_per_s", "ttft": "ttft_p99_s"}))
    return pd.concat(frames, ignore_index=True)
