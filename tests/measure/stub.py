"""A stand-in for the pipe to the parent."""

from bench.measure.channel import Channel


class Announcements(Channel):
    """Keeps the stages that are announced; there is no pipe."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    def announce(self, stage: str) -> None:
        """Keep a stage."""
        self.stages.append(stage)
