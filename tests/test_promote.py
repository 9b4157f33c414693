"""A shadow becomes the champion: the names in the routes change places, and nothing else of the file does."""

from __future__ import annotations

import difflib

import pytest

from olstream.config import parse
from olstream.errors import ConfigError
from olstream.promote import Promotion, promoted

HEAD = """\
# What we run.
kafka: {bootstrap.servers: "${BOOTSTRAP:localhost:9092}"}

learners:
  fraud: {algorithm: arow}          # since May
  fraud-next: {algorithm: 'pa1'}    # C is still to be found
  other:
    algorithm: cw

"""


def promotion(routes: str, name: str = "fraud-next", **environ: str) -> Promotion:
    return promoted(HEAD + routes, "c.yaml", name, environ)


def changed(routes: str, name: str = "fraud-next", **environ: str) -> tuple[list[str], list[str]]:
    """The lines that are gone, and those that came in their place."""
    lines = list(difflib.ndiff((HEAD + routes).splitlines(), promotion(routes, name, **environ).text.splitlines()))
    return [line[2:] for line in lines if line[0] == "-"], [line[2:] for line in lines if line[0] == "+"]


def refusal(routes: str, name: str = "fraud-next") -> str:
    with pytest.raises(ConfigError) as caught:
        promotion(routes, name)
    return str(caught.value)


def test_the_names_change_places_and_comments_stay() -> None:
    routes = """\
routes:
  # all cards
  - when: {topic: card-events}
    learner: fraud              # the champion
    shadows: [fraud-next]       # and who would like to be
"""

    gone, came = changed(routes)

    assert gone == [
        "    learner: fraud              # the champion",
        "    shadows: [fraud-next]       # and who would like to be",
    ]
    assert came == [
        "    learner: fraud-next              # the champion",
        "    shadows: [fraud]       # and who would like to be",
    ]


def test_every_route_that_has_the_shadow_is_changed_and_no_other() -> None:
    routes = """\
routes:
  - {when: {topic: a}, learner: fraud, shadows: [other, fraud-next]}
  - {when: {topic: b}, learner: fraud, shadows: [other]}
  - when: {topic: c}
    shadows:
      - 'fraud-next'   # here too
      - other
    learner: "fraud"
"""

    gone, came = changed(routes)

    assert len(gone) == 3
    assert came == [
        "  - {when: {topic: a}, learner: fraud-next, shadows: [other, fraud]}",
        '      - "fraud"   # here too',
        "    learner: 'fraud-next'",
    ]
    assert promotion(routes).changes == [
        "routes.0 (topic a): fraud-next predicts now, fraud becomes its shadow",
        "routes.2 (topic c): fraud-next predicts now, fraud becomes its shadow",
    ]


def test_twice_promoted_is_back_at_the_same_text() -> None:
    text = HEAD + "routes: [{when: {}, learner: fraud, shadows: [other, fraud-next]}]\n"

    once = promoted(text, "c.yaml", "fraud-next", {}).text

    assert once != text
    assert promoted(once, "c.yaml", "fraud", {}).text == text


@pytest.mark.parametrize(
    ("route", "becomes"),
    [
        ("- shadows: [fraud-next]", ["  - learner: fraud-next", "    shadows: [fraud]"]),
        ("- {shadows: [fraud-next]}", ["  - {learner: fraud-next, shadows: [fraud]}"]),
        ("- {learner: null, shadows: [fraud-next]}", ["  - {learner: fraud-next, shadows: [fraud]}"]),
        ("- learner:\n    shadows: [fraud-next]", ["  - learner: fraud-next", "    shadows: [fraud]"]),
    ],
)
def test_a_route_without_a_learner_of_its_own_gets_one(route: str, becomes: list[str]) -> None:
    _, came = changed(f"routes:\n  {route}\n")

    assert came == becomes
    assert "a learner that a message names is no longer asked there" in promotion(f"routes:\n  {route}\n").changes[0]


def test_where_records_name_their_learner_that_one_becomes_the_shadow() -> None:
    routes = "routes: [{when: {learner: other}, shadows: [fraud-next]}]\n"

    _, came = changed(routes)

    assert came == ["routes: [{when: {learner: other}, learner: fraud-next, shadows: [other]}]"]
    assert promotion(routes).changes == ["routes.0 (learner other): fraud-next predicts now, other becomes its shadow"]


def test_references_to_the_environment_go_along() -> None:
    routes = "routes:\n  - learner: ${CHAMPION}\n    shadows: ['${NEXT:fraud-next}', other]\n"

    _, came = changed(routes, CHAMPION="fraud")

    assert came == ["  - learner: '${NEXT:fraud-next}'", '    shadows: ["${CHAMPION}", other]']


def test_anchors_and_aliases_go_along() -> None:
    routes = """\
routes:
  - learner: &now fraud
    shadows: [&next fraud-next]
  - {when: {field.by: [*now]}, learner: *now, shadows: [*next]}
"""

    _, came = changed(routes)

    assert came == [
        "  - learner: &next fraud-next",
        "    shadows: [&now fraud]",
        "  - {when: {field.by: [*now]}, learner: *next, shadows: [*now]}",
    ]


def test_a_list_that_two_routes_share_is_changed_where_that_is_right_for_both() -> None:
    both = """\
routes:
  - {when: {topic: a}, learner: fraud, shadows: &them [fraud-next]}
  - {when: {topic: b}, learner: fraud, shadows: *them}
"""

    _, came = changed(both)

    assert came == [
        "  - {when: {topic: a}, learner: fraud-next, shadows: &them [fraud]}",
        "  - {when: {topic: b}, learner: fraud-next, shadows: *them}",
    ]
    said = refusal(both.replace("topic: b}, learner: fraud", "topic: b}, learner: other"))
    assert "routes.0, routes.1 cannot be edited alone" in said and "write `learner` and `shadows` out" in said


def test_what_a_merge_brings_in_is_written_out_in_the_route() -> None:
    routes = """\
routes:
  - &base {when: {topic: a}, learner: other, shadows: []}
  - {<<: *base, when: {topic: b}, shadows: [fraud-next]}
"""

    _, came = changed(routes)

    assert came == ["  - {<<: *base, when: {topic: b}, learner: fraud-next, shadows: [other]}"]


def test_shadows_that_a_merge_brings_in_stay_with_the_others() -> None:
    routes = """\
routes:
  - &base {when: {topic: a}, learner: fraud, shadows: [fraud-next]}
  - <<: *base
    when: {topic: b}
"""

    said = promotion(routes)

    config = parse(said.text, "c.yaml", {})
    assert [(route.learner, route.shadows) for route in config.routes] == [("fraud-next", ["fraud"])] * 2
    assert config.routes[1].when == {"topic": ["b"]}


@pytest.mark.parametrize("name", ["7", "1e3", "true", "null", ".5"])
def test_a_name_that_would_be_no_text_is_quoted(name: str) -> None:
    text = f'learners: {{"{name}": , b: }}\nroutes: [{{shadows: [b]}}]\n'

    assert f'shadows: ["{name}"]' in promoted(text, "c.yaml", "b", {}).text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_bytes_of_all_other_lines_stay(newline: str, mark: str) -> None:
    routes = "# täglich 🙂\nroutes:\n  - shadows: [fraud-next] # ü"
    text = mark + (HEAD + routes).replace("\n", newline)

    after = promoted(text, "c.yaml", "fraud-next", {}).text

    assert after == text.replace("- shadows: [fraud-next]", f"- learner: fraud-next{newline}    shadows: [fraud]")


@pytest.mark.parametrize(
    ("routes", "name", "said"),
    [
        ("", "fraud-next", "there are no routes, so no learner is a shadow"),
        ("routes: [{learner: fraud, shadows: [other]}]", "fraud-next", "fraud-next is the shadow of no other learner"),
        ("routes: [{learner: fraud, shadows: [other]}]", "fraud-next", "there are other"),
        ("routes: [{learner: fraud}]", "fraud-next", "there are none"),
        ("routes: [{learner: fraud, shadows: [fraud-next]}]", "fraud", "fraud is the shadow of no other learner"),
        ("routes: [{learner: fraud, shadows: [fraud-next]}]", "fraud-nex", "did you mean 'fraud-next'?"),
        ("routes: [{learner: nobody, shadows: [fraud-next]}]", "fraud-next", "no configured learner"),
        ("routes: [{when: {learner: [fraud, other]}, shadows: [fraud-next]}]", "fraud-next", "make a route for each"),
        ("routes: [{shadows: [fraud, fraud-next]}]", "fraud-next", "routes.0 names no learner"),
    ],
)
def test_what_cannot_be_promoted_is_refused_with_a_sentence(routes: str, name: str, said: str) -> None:
    assert said in refusal(routes, name)


def test_a_shadow_of_another_kind_of_task_is_never_there() -> None:
    with pytest.raises(ConfigError, match="do not take the same labels"):
        promoted("learners: {a: , b: {task: regression}}\nroutes: [{shadows: [b]}]", "c.yaml", "b", {})
