"""The classes of one learner: their order, and the JSON form in which each was first seen.

Classes are compared by their text (1 = 1.0 = "1"; true = "true"; 1 is not true). A binary task
has two places, 0 negative and 1 positive; a multiclass task counts up in order of arrival.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from olstream.errors import ConfigError
from olstream.messages import Label, Reason, Reject, label_text
from olstream.values import CLASS_IS, class_text

POSITIVE_TEXTS: Final = ("1", "true")
NEGATIVE_TEXTS: Final = ("0", "-1", "false")

_SHOWN_MAX: Final = 8

# What `find` gives in place of a class where a label cannot be one
NOT_THERE: Final = -2


class Classes:
    """`forms` is by class index, None for a free place of a binary task; it only ever grows."""

    def __init__(self, task: str, declared: Sequence[Label] | None, classes_max: int = 1000) -> None:
        self.binary = task == "binary"
        self.closed = declared is not None
        self.classes_max = 2 if self.binary else classes_max
        self.forms: list[Label | None] = [None, None] if self.binary else []
        self.texts: list[str | None] = [None, None] if self.binary else []
        self._index: dict[str, int] = {}
        self._exact: dict[Label, int] = {}  # spellings seen of known classes; booleans apart, True == 1 in a dict
        self._booleans: dict[bool, int] = {}
        if declared is not None:
            self._declare(declared)

    def _declare(self, declared: Sequence[Label]) -> None:
        if self.binary and len(declared) != 2:
            raise ConfigError(f"classes of a binary task are [negative, positive], not {len(declared)} of them")
        if len({label_text(label) for label in declared}) < len(declared):
            raise ConfigError('classes names one class twice: 1, 1.0 and "1" are one class')
        for index, label in enumerate(declared):
            self._enter(label, index)

    def _enter(self, label: Label, index: int) -> None:
        text = label_text(label)
        if index == len(self.forms):
            self.forms.append(None)
            self.texts.append(None)
        self.forms[index], self.texts[index] = label, text
        self._index[text] = index
        self._remember(label, index)

    def _remember(self, label: Label, index: int) -> None:
        if isinstance(label, bool):
            self._booleans[label] = index
        else:
            self._exact[label] = index

    @property
    def known(self) -> int:
        """How many classes are known."""
        return len(self._index)

    @property
    def known_code(self) -> int:
        """What is known, for kernels: multiclass the number, binary 1 for negative + 2 for positive."""
        if not self.binary:
            return len(self.forms)
        return (self.texts[0] is not None) + 2 * (self.texts[1] is not None)

    def find_many(self, labels: Sequence[Label | None]) -> list[int] | None:
        """Indices of labels that are all None (-1) or known in a spelling seen before; else None.

        One look into a dict per label: the common case of a batch, and no other.
        """
        get, get_boolean = self._exact.get, self._booleans.get
        types = set(map(type, labels))
        if bool in types:
            found = [
                -1 if label is None else get_boolean(label, NOT_THERE) if type(label) is bool else get(label, NOT_THERE)
                for label in labels
            ]
        else:
            found = [-1 if label is None else get(label, NOT_THERE) for label in labels]
        return None if NOT_THERE in found else found

    def find(self, label: Label) -> int | Reject:
        """The index that the label has, or would have if it were learnt next; nothing changes."""
        text = class_text(label)
        if text is None:
            return Reject(Reason.BAD_LABEL, CLASS_IS)
        index = self._index.get(text)
        if index is not None:
            return index
        place = self._place(text)
        return Reject(Reason.UNKNOWN_LABEL, self._why_not(text)) if place is None else place

    def is_known(self, index: int) -> bool:
        """Whether there is a class at this index, and not only a place for one."""
        return index < len(self.forms) and self.forms[index] is not None

    def _why_not(self, text: str) -> str:
        """Why a label has no place here."""
        if self.binary and not self.closed:
            place = 1 if text in POSITIVE_TEXTS else 0
            if text in POSITIVE_TEXTS or text in NEGATIVE_TEXTS:
                stands_for = f"the {'positive' if place else 'negative'} class, which is {self.texts[place]!r} here"
                return f"label {text!r} stands for {stands_for}: declare both under `classes`"
        elif not self.closed:
            return f"label {text!r} is new, and there are {self.known} classes already, which is classes_max"
        shown = [known for known in self.texts[:_SHOWN_MAX] if known is not None]
        more = f" and {self.known - len(shown)} more" if self.known > len(shown) else ""
        return f"label {text!r} is none of the {self.known} classes: {', '.join(shown)}{more}"

    def _place(self, text: str) -> int | None:
        """Where a class that is not known yet would go."""
        if self.closed:
            return None
        if not self.binary:
            return len(self.forms) if len(self.forms) < self.classes_max else None
        free = [place for place in (1, 0) if self.texts[place] is None]
        if text in POSITIVE_TEXTS:
            free = [place for place in free if place == 1]
        elif text in NEGATIVE_TEXTS:
            free = [place for place in free if place == 0]
        return free[0] if free else None

    def learn(self, label: Label) -> int:
        """The index of a label that `find` accepts, from now on a known class."""
        index = self.find(label)
        assert isinstance(index, int)
        if self._index.get(label_text(label)) is None:
            self._enter(label, index)
        else:
            self._remember(label, index)
        return index

    def text(self, index: int) -> str:
        text = self.texts[index]
        assert text is not None
        return text

    def state(self) -> dict[str, Any]:
        """JSON-able; forms as JSON text, since an integer may be longer than 64 bits."""
        return {"forms": [None if form is None else json.dumps(form) for form in self.forms]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the classes of a saved state; ValueError where they cannot be those of this learner."""
        forms = [None if form is None else json.loads(form) for form in state["forms"]]
        texts = [None if form is None else class_text(form) for form in forms]
        known = [text for text in texts if text is not None]
        if len(forms) > self.classes_max or len(set(known)) < sum(form is not None for form in forms):
            raise ValueError("classes that are no labels, stand there twice, or are too many")
        if (self.closed and texts != self.texts) or (not self.binary and None in forms):
            raise ValueError("classes are not those that are declared, or some are missing")
        for index, form in enumerate(forms):
            if form is not None:
                self._enter(form, index)
