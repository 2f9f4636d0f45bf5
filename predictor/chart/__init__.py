"""The files of the Helm chart that are made: schema, README, roles, dashboard."""
