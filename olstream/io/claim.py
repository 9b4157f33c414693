"""Who holds a slot: whoever wrote its last opening line.

Producers fence each other and members of a group take each other's place, each in an order of its own: by these
signs two workers of a slot could both believe that the other one goes on. So a sign only makes a worker look into the
journal, where all see the same order. Who was fenced by one that never came to announce itself goes on.
"""

from __future__ import annotations

from olstream.config import Config
from olstream.errors import FencedError
from olstream.io.kafka_read import KafkaJournal
from olstream.journal import Line


class Claim:
    """What one life of a worker knows of its slot's journal since it began."""

    def __init__(self, config: Config, run: str, journal: KafkaJournal) -> None:
        self.config = config
        self.run_id = run
        self.journal = journal
        self.read_from = 0  # where it began, then after its last line
        self.is_announced = False

    def announced(self, line_offset: int) -> None:
        """Our opening line stands there: until another one follows, the slot is ours."""
        self.is_announced = True
        self.read_from = line_offset + 1

    def lines(self, start: int | None = None) -> list[Line]:
        """The slot's lines since our last one, or from there. FencedError where another worker holds the slot."""
        return self._ours(self.journal.read(self.read_from if start is None else start))

    def look(self) -> int | None:
        """The same for one who has nothing to write: the end of what was looked at; None where nobody tells soon."""
        found = self.journal.read_at_once(self.read_from)
        if found is None:
            return None
        lines, self.read_from = found
        self._ours(lines)
        return self.read_from

    def _ours(self, lines: list[Line]) -> list[Line]:
        for line in lines:
            # Who is at work writes lines; before we are announced that is somebody who has not made way for us.
            if line.run != self.run_id and (line.is_opening or not self.is_announced):
                raise FencedError(
                    f"another worker holds slot {self.config.slot} of group {self.config.group}: "
                    "stop it, or give this worker another slot (`slot`, one number a worker)"
                )
        return lines
