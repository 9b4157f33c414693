"""Secrets, and taking them out of whatever is said: in logs, in sentences on errors, in tracebacks.

One list for the whole process, filled by whoever reads the configuration. Pages and documents leave secrets out by
the names of their keys; this is for words that somebody else chose, a client library's among them.
"""

from __future__ import annotations

import json
import re
from typing import Final

HIDDEN: Final = "***"
LENGTH_MIN: Final = 4  # a shorter one stands by chance in any sentence
NAMES: Final = re.compile(
    r"pass|pwd|secret|token|key|jaas|oauth|credential|bearer|authorization|cookie|\bpem\b", re.IGNORECASE
)
USER_IN_URL: Final = re.compile(r"(?<=://)[^/@\s]*(?=@)")

_known: Final[set[str]] = set()


def remember(value: object) -> None:
    """Never say this again, nor as JSON or Python write it. Of many lines, none of them."""
    if isinstance(value, str):
        for part in {value, *value.splitlines()}:
            if len(part.strip()) >= LENGTH_MIN:
                _known.update({part.strip(), json.dumps(part)[1:-1], repr(part)[1:-1]})


def hide(said: str) -> str:
    """The same without what is remembered, and without the user and password of any URL."""
    for secret in sorted(_known, key=len, reverse=True):
        said = said.replace(secret, HIDDEN)
    return USER_IN_URL.sub(HIDDEN, said)
