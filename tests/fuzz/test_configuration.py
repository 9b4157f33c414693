"""Any text is a configuration or one ConfigError, in bounded time, and never a word of a secret."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from olstream.config import parse
from olstream.errors import ConfigError
from tests.fuzz.examples import examples

CANARY: Final = "canary-0f3c-of-the-fuzzer"
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES: Final = [path.read_text() for path in sorted((ROOT / "deploy").glob("*.yaml"))] + [
    f"kafka: {{bootstrap.servers: 'a:1', sasl.password: {CANARY}, ssl.key.pem: '{CANARY}'}}\nlearners: {{a: }}\n",
    f"learners: {{a: {{params: {{C: 1e-3}}}}}}\nhttp: {{token: {CANARY}}}\nconsumer: {{ssl.key.password: {CANARY}}}\n",
    "x: &x {algorithm: pa1}\nlearners: {a: *x, b: {<<: *x}}\nroutes: [{when: {topic: [a]}, learner: b}]\n",
]
PIECES: Final = (
    *("null", "~", "true", "-1", "1e999", ".nan", "0x", "[", "]", "{", "}", ":", ": ", "- ", "&a ", "*a", "<<: "),
    *("!!str ", "!!python/object:os.system ", "|\n", ">", "'", '"', "#", "---\n", "? ", "${", "${A}", "${A:b}", "$${"),
    *("\t", "\x00", "\u2028", "é", "9" * 400, "a.b.c", "256MiB", "30s", "${file:/dev/null}"),
)
VARIABLES: Final = {"OLSTREAM_SLOT": "0", "OLSTREAM_BOOTSTRAP": "a:1", "OLSTREAM_STATE": "s", "A": "b"}


def read(text: str) -> None:
    try:
        parse(text, "config.yaml", VARIABLES)
    except ConfigError as error:
        from olstream.hidden import hide

        assert str(error)
        assert CANARY not in hide(str(error))


@given(st.text(max_size=200))
@examples(150)
def test_any_text_is_read_or_refused(text: str) -> None:
    read(text)


@given(st.integers(0, 2**32), st.sampled_from(EXAMPLES))
@examples(150)
def test_a_damaged_file_is_read_or_refused(seed: int, text: str) -> None:
    rng = random.Random(seed)

    for _ in range(rng.randrange(1, 4)):
        i, j = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        match rng.randrange(4):
            case 0:
                text = text[:i] + rng.choice(PIECES) + text[i:]
            case 1:
                text = text[:i] + text[min(j, i + rng.randrange(20)) :]
            case 2:
                text = text[:i] + rng.choice(PIECES) + text[min(j, i + rng.randrange(20)) :]
            case _:
                lines = text.splitlines(keepends=True) or [""]
                lines.insert(rng.randrange(len(lines)), rng.choice(lines))
                text = "".join(lines)

    read(text)
