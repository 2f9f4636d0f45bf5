"""A fixed number of replicas: what is done where nothing scales."""

import dataclasses

from models.peers import answer
from models.policy.decision import Decision
from models.policy.protocol import Observation


@dataclasses.dataclass(frozen=True, slots=True)
class Static:
    """So many replicas, always."""

    replicas: int

    def decide(self, observation: Observation) -> Decision:
        """The same as ever."""
        return answer.decision(observation, self.replicas, f"always {self.replicas}")
