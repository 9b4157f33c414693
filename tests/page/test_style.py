"""The colours of the page: each can be read on its ground, by day and by night."""

from __future__ import annotations

import re

import pytest

from olstream.page.style import STYLE


def colours(scheme: str) -> dict[str, str]:
    """{name: #rrggbb}; those of the dark scheme over those of the light one."""
    blocks = [
        dict(re.findall(r"--(\w+):\s+(#[0-9a-f]{6})", block)) for block in re.findall(r":root \{([^}]*)\}", STYLE)
    ]
    light, dark = blocks[:2]
    return light if scheme == "light" else {**light, **dark}


def brightness(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_by_hand() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["page", "card"])
@pytest.mark.parametrize(("name", "least"), [("ink", 7.0), ("soft", 4.5), ("accent", 4.5), ("alarm", 4.5)])
def test_every_text_can_be_read(scheme: str, ground: str, name: str, least: float) -> None:
    there = colours(scheme)

    assert contrast(there[name], there[ground]) >= least


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["c0", "c1", "c2", "c6", "grey", "pale"])
def test_every_common_curve_can_be_seen(scheme: str, name: str) -> None:
    there = colours(scheme)

    assert contrast(there[name], there["card"]) >= 3.0


def test_every_colour_that_is_used_is_defined_in_both_schemes() -> None:
    used = set(re.findall(r"var\(--(\w+)\)", STYLE)) - {"heat"}

    assert used <= colours("light").keys()
    dark = re.findall(r":root \{([^}]*)\}", STYLE)[1]
    assert used <= set(re.findall(r"--(\w+):", dark))
