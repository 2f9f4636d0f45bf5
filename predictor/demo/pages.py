"""The replicas' metrics pages: where they are, and how they are read with and without HTTP."""

from collections.abc import Mapping, Sequence

from models.fleet import page
from models.fleet.deployment import Pod
from predictor.demo.cluster import name_of
from predictor.demo.stage import Stage
from predictor.signals import shelf
from predictor.signals.scrape import Page, ScrapeSettings, ScrapeSource
from predictor.targets import Target

PATH = "/replicas/{name}/metrics"


class ReplicaPages:
    """The pages of Floorcast's fleet. A replica has one while it is ready; a draining one is no longer listed."""

    def __init__(self, stage: Stage, *, base: str) -> None:
        """`base` is what stands before the path in the addresses."""
        self._stage = stage
        self._base = base

    def listed(self, target: Target) -> Sequence[Page]:  # noqa: ARG002  (there is one target)
        """Names and addresses of the pages that should be there now."""
        with self._stage.lock:
            names = list(self._serving())
        return [Page(name, self._base + PATH.format(name=name)) for name in names]

    def _serving(self) -> Mapping[str, Pod]:
        return {name_of(pod): pod for pod in self._stage.floorcast.ready}

    def text(self, name: str) -> str:
        """The page of one replica. Raises KeyError when there is none of that name."""
        with self._stage.lock:
            serving = self._serving()
            if name not in serving:
                raise KeyError(f"no replica {name!r} serves; there are {', '.join(serving)}")
            return page.render(self._stage.floorcast.deployment.pool, serving[name].slot)

    def fetch(self, url: str) -> str:
        """The page behind an address without going through HTTP."""
        name = url.removeprefix(self._base).split("/")[2]
        try:
            return self.text(name)
        except KeyError as error:
            raise OSError(str(error)) from error


def in_process(stage: Stage) -> ScrapeSource:
    """A source that reads the same pages as over HTTP, without HTTP."""
    pages = ReplicaPages(stage, base="replica:/")
    return ScrapeSource(ScrapeSettings(workers=1), shelf.load(), pages=pages.listed, fetch=pages.fetch)


def over_http(stage: Stage, *, base: str) -> ScrapeSource:
    """A source that reads the pages over HTTP from the demo's own server at `base`."""
    return ScrapeSource(ScrapeSettings(), shelf.load(), pages=ReplicaPages(stage, base=base).listed)
