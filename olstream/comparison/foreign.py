"""Models of other libraries in the table: `module:factory`, called without arguments.

What the factory gives is only known by what it can do:

    predict_one(x), learn_one(x, y)      as River's models: x is {name: number or text}
    predict(X), partial_fit(X, y)        as scikit-learn's: X is one row; classifiers get `classes=` as well

Each row is predicted before it is learnt, one at a time. Features are as they stand in the file. To a model
of River's kind, y is True for the positive class of a binary task, of several the class itself, in a regression
the value. To one of scikit-learn's kind it is the index of the class (0 negative, 1 positive), or the value.
Rows of arrays are dense there; of named features they are sparse, with a column for each name and category,
up to four times as many as the first rows have.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from olstream.comparison.entrants import Entrant, Shown, Task, distances
from olstream.comparison.score import Score
from olstream.decode import plain
from olstream.errors import ConfigError
from olstream.learners._jit import F64
from olstream.messages import Example
from olstream.values import class_text
from olstream.vectorize import vectorize
from olstream.vocabulary import FIRST_NAMED, Vocabulary

# Columns of sparse rows must all be there from the first on, and each costs time with every row: room for so many
# times the names that the first rows bring. Those that come later still share a few columns.
_NAMES_TIMES: Final = 4
_SAID_MAX: Final = 120  # characters of what another's code says, which may hold a whole row
_NAMES_MIN, _NAMES_MAX = 64, 1 << 16


def entrant(named: str, task: Task, classes: int | None, fading: float) -> Entrant:
    """The model that a factory makes. ConfigError where there is none, or nothing that can be compared."""
    model = _made(named)
    if _can(model, "predict_one", "learn_one"):
        return RiverLike(named, model, task, fading)
    if _can(model, "predict", "partial_fit"):
        if task == "multiclass" and classes is None:
            raise ConfigError(f"--also {named}: partial_fit must be told all classes beforehand: add --classes a,b,...")
        return ScikitLike(named, model, task, 2 if task == "binary" else classes or 0, fading)
    raise ConfigError(
        f"--also {named}: {type(model).__name__} has neither predict_one and learn_one, nor predict and partial_fit"
    )


def _made(named: str) -> Any:
    module, colon, path = named.partition(":")
    if not (module and colon and path):
        raise ConfigError(f"--also {named}: write module:factory, such as river.linear_model:PAClassifier")
    try:
        factory: Any = importlib.import_module(module)
        for name in path.split("."):
            factory = getattr(factory, name)
        return factory()
    except Exception as error:  # whatever another's code raises
        raise ConfigError(f"--also {named}: {_told(error)}") from error


def _can(model: object, *methods: str) -> bool:
    return all(callable(getattr(model, method, None)) for method in methods)


def _told(error: Exception) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said[:_SAID_MAX]}{'...' if len(said) > _SAID_MAX else ''}"


class _Foreign:
    """What both kinds have in common: one row after the other, each guessed and then learnt."""

    def __init__(self, name: str, model: Any, task: Task, fading: float) -> None:
        self.name = name
        self.score = Score(fading)
        self._model = model
        self._task = task

    def _guessed(self, rows: Sequence[Any], labels: Sequence[Any]) -> list[Any]:
        guesses = []
        began = time.perf_counter()
        for at, (x, y) in enumerate(zip(rows, labels, strict=True), start=self.score.labelled + 1):
            try:
                guesses.append(self._guess(x))
                self._learn(x, y)
            except Exception as error:
                raise ConfigError(f"--also {self.name}: at labelled row {at}: {_told(error)}") from error
        self.score.seconds += time.perf_counter() - began
        self.score.rows += len(guesses)
        return guesses

    def _guess(self, x: Any) -> Any:
        raise NotImplementedError

    def _learn(self, x: Any, y: Any) -> None:
        raise NotImplementedError

    def _measure(self, labels: Sequence[Any], guesses: Sequence[Any], same: Callable[[Any, Any], bool]) -> None:
        if self._task == "regression":
            self.score.add(distances(np.array(labels, np.float64), np.array(list(map(_number, guesses)))))
        else:
            wrong = [not same(label, guess) for label, guess in zip(labels, guesses, strict=True)]
            self.score.add(np.array(wrong, np.float64))


class RiverLike(_Foreign):
    """A model with predict_one and learn_one."""

    def take(self, shown: Shown) -> None:
        examples = _measured(shown)
        rows = [_named(example) for example in examples]
        labels = self._labels(shown)
        self._measure(labels, self._guessed(rows, labels), _is_same)

    def _labels(self, shown: Shown) -> list[Any]:
        if self._task == "regression":
            return shown.target[shown.measured].tolist()  # type: ignore[no-any-return]
        truths = shown.truth[shown.measured].tolist()
        return [truth == 1 for truth in truths] if self._task == "binary" else [shown.forms[truth] for truth in truths]

    def _guess(self, x: Any) -> Any:
        return self._model.predict_one(x)

    def _learn(self, x: Any, y: Any) -> None:
        self._model.learn_one(x, y)


class ScikitLike(_Foreign):
    """A model with predict and partial_fit."""

    def __init__(self, name: str, model: Any, task: Task, classes: int, fading: float) -> None:
        super().__init__(name, model, task, fading)
        self._more = {} if task == "regression" else {"classes": np.arange(classes)}
        self._is_new = True
        self._vocabulary: Vocabulary | None = None

    def take(self, shown: Shown) -> None:
        examples = _measured(shown)
        rows = self._dense(examples) if all(isinstance(e.features, list) for e in examples) else self._sparse(examples)
        labels = shown.target[shown.measured] if self._task == "regression" else shown.truth[shown.measured]
        self._measure(labels.tolist(), self._guessed(rows, list(labels)), lambda label, guess: bool(label == guess))

    def _guess(self, x: Any) -> Any:
        return None if self._is_new else np.asarray(self._model.predict(x)).ravel()[0]

    def _learn(self, x: Any, y: Any) -> None:
        self._model.partial_fit(x, np.array([y]), **self._more)
        self._is_new = False

    def _dense(self, examples: Sequence[Example]) -> list[F64]:
        return [np.array([example.features]) for example in examples]

    def _sparse(self, examples: Sequence[Example]) -> list[Any]:
        try:
            from scipy.sparse import csr_matrix
        except ImportError:
            raise ConfigError(f"--also {self.name}: rows of named features need scipy: pip install scipy") from None
        features, learnt = [example.features for example in examples], [True] * len(examples)
        if self._vocabulary is None:
            first = Vocabulary(_NAMES_MAX, 1, bias=False)
            vectorize(first, features, learnt)
            names = max(_NAMES_MIN, _NAMES_TIMES * first.n_names)
            self._vocabulary = Vocabulary(names, names // 8, bias=False)
        known = self._vocabulary
        batch = vectorize(known, features, learnt)
        width = FIRST_NAMED + known.names_max + known.overflow_buckets
        matrix = csr_matrix((batch.values, batch.indices, batch.indptr), shape=(len(examples), width))
        return [matrix[i] for i in range(len(examples))]


def _measured(shown: Shown) -> list[Example]:
    return [example for example, is_measured in zip(shown.examples, shown.measured, strict=True) if is_measured]


def _named(example: Example) -> dict[str, Any]:
    features = plain(example).features
    return dict(features) if isinstance(features, dict) else {str(i): value for i, value in enumerate(features)}


def _is_same(label: Any, guess: Any) -> bool:
    """Classes by their text, as everywhere; numbers of NumPy too. A model that knows nothing yet guesses None."""
    if guess is None:
        return False
    guess = guess.item() if isinstance(guess, np.generic) else guess
    if isinstance(label, bool):
        return label == bool(guess)
    return class_text(label) == class_text(guess)


def _number(guess: Any) -> float:
    return 0.0 if guess is None else float(guess)
