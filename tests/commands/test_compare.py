"""`olstream compare`, as a user meets it."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from olstream.__main__ import main
from olstream.learners import base
from tests.commands.replayed import Replayed

Compare = Callable[..., str]


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Compare:
    def run(*arguments: str, code: int = 0) -> str:
        """Standard output, or standard error where the code is not 0."""
        assert main(["compare", *arguments]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return run


def table(n: int = 600) -> str:
    """CSV: a number that tells the label, a code, a color, a number that gives the label away."""
    rng = random.Random(1)
    lines = ["x,code,color,key,sold,price"]
    for i in range(n):
        x = rng.gauss(0, 1)
        sold = "yes" if x + rng.gauss(0, 0.4) > 0 else "no"
        lines.append(f"{x:.3f},{i % 3},{rng.choice('rgb')},{int(sold == 'yes')},{sold},{3 * x + i % 3:.3f}")
    return "\n".join(lines) + "\n"


def test_the_learners_stand_side_by_side_above_the_baselines(compare: Compare, replay: Replayed) -> None:
    file = replay.write("t.csv", table())

    out = compare(file, "--task", "binary", "--label", "sold", "--exclude", "key,price")

    lines = out.splitlines()
    assert re.fullmatch(r"t\.csv: 600 rows in [0-9.]+ s, 600 accepted", lines[0])
    assert lines[1].split() == ["learner", "error", "loss", "updates", "rows/s", "rank"]
    ours = [line.split() for line in lines[2:] if line.strip() and line.split()[0] in base.algorithms()]
    assert {cells[0] for cells in ours} == {name for name, one in base.algorithms().items() if one.takes("binary")}
    assert all(0.0 < float(cells[1].rstrip("%")) < 50.0 for cells in ours)
    assert [cells[1] for cells in ours] == sorted((cells[1] for cells in ours), key=lambda e: float(e.rstrip("%")))
    majority, last = (
        next(i for i, line in enumerate(lines) if line.startswith(b)) for b in ("majority ", "last label ")
    )
    assert len(ours) + 2 < majority < last


def test_what_is_excluded_tells_nothing(compare: Compare, replay: Replayed) -> None:
    file, told = (
        replay.write("t.csv", table()),
        ("--task", "binary", "--label", "sold", "--algorithms", "pa1", "--json"),
    )

    honest = json.loads(compare(file, *told, "--exclude", "key,price"))["learners"]["pa1"]["errors"]
    given_away = json.loads(compare(file, *told))["learners"]["pa1"]["errors"]

    assert given_away < honest / 2


def test_json_says_the_same_as_a_replay(compare: Compare, replay: Replayed) -> None:
    file = replay.write("t.csv", table())
    config = replay.write(
        "c.yaml",
        "input: {fields: {label: sold}, exclude: [key, price]}\n"
        "learners:\n  m: {algorithm: arow, params: {r: 0.1}, scale: standard, features: {category: [code]}}\n",
    )
    named = ["--label", "sold", "--exclude", "key,price", "--category", "code", "--scale", "standard"]

    told = json.loads(
        compare(file, "--task", "binary", "--algorithms", "arow", "--param", "arow.r=0.1", *named, "--json")
    )
    alone = json.loads(replay.run(config, file, "--json"))["learners"]["m"]

    learner = told["learners"]["arow"]
    assert {key: learner[key] for key in alone if key != "rows_per_s"} == pytest.approx(
        {key: alone[key] for key in alone if key != "rows_per_s"}
    )
    assert learner["params"]["r"] == 0.1 and learner["rank"] == 1 and learner["rows_per_s"] > 0
    assert {key: told[key] for key in ("task", "rows", "accepted", "rejected", "labelled")} == {
        "task": "binary", "rows": 600, "accepted": 600, "rejected": {}, "labelled": 600,
    }  # fmt: skip
    assert told["baselines"].keys() == {"majority", "last_label"}
    assert 0.3 < told["baselines"]["majority"]["error_rate"] < 0.7


def test_a_regression_has_distances_and_baselines_of_its_own(compare: Compare, replay: Replayed) -> None:
    file = replay.write("t.csv", table())
    told = (file, "--task", "regression", "--label", "price", "--exclude", "sold", "--algorithms", "pa1,pa2")

    out, document = compare(*told), json.loads(compare(*told, "--json"))

    assert "mean abs. error" in out and "RMSE" in out and "last value" in out
    assert document["baselines"].keys() == {"mean_so_far", "last_value"}
    best, mean = document["learners"]["pa1"], document["baselines"]["mean_so_far"]
    assert 0.0 < best["mae"] < best["rmse"] < mean["mae"] < mean["rmse"]


def test_several_values_of_a_parameter_are_rows_of_the_table(compare: Compare, replay: Replayed) -> None:
    file = replay.write("f.libsvm", "1 1:1 2:0.5\n-1 2:1\n" * 50)
    tried = ["--algorithms", "pa1,arow", "--param", "arow.r=0.1", "--param", "arow.r=10", "--param", "pa1.C=0.5"]

    out = compare(file, "--task", "binary", *tried)

    assert "\narow[r=0.1] " in out and "\narow[r=10] " in out and "\npa1 " in out


def test_a_configuration_names_the_learners_and_every_row_goes_to_each(compare: Compare, replay: Replayed) -> None:
    config = replay.write(
        "c.yaml",
        "input: {fields: {label: y}}\nlearners:\n  first: {algorithm: pa1}\n  second: {algorithm: arow, bias: false}\n"
        "  third: {algorithm: pa2, task: regression}\nroutes: [{when: {learner: second}, learner: second}]\n",
    )
    lines = [json.dumps({"features": {"x": i % 5}, "y": int(i % 5 > 2), "learner": "nobody"}) for i in range(40)]
    file = replay.write("e.ndjson", "\n".join(lines))

    document = json.loads(compare(file, "--config", config, "--task", "binary", "--json"))

    assert {name: learner["labelled"] for name, learner in document["learners"].items()} == {"first": 40, "second": 40}
    assert "say --task" in compare(file, "--config", config, code=2)
    assert "--scale" in compare(file, "--config", config, "--scale", "standard", code=2)
    assert "has the task multiclass" in compare(file, "--config", config, "--task", "multiclass", code=2)


def test_rows_that_cannot_be_read_are_counted_by_reason(compare: Compare, replay: Replayed) -> None:
    good = '{"features":{"x":1},"label":"a"}\n'
    file = replay.write("e.ndjson.gz", gzip.compress((good + "\n{\n" + good.replace('"a"', '"b"') + good * 8).encode()))

    document = json.loads(compare(file, "--task", "binary", "--algorithms", "pa1", "--json"))
    out = compare(file, "--task", "binary", "--algorithms", "pa1")

    assert (document["rows"], document["accepted"], document["labelled"]) == (12, 10, 10)
    assert document["rejected"] == {"bad_json": 1, "empty": 1}
    assert "2 rejected:" in out and "  1 bad_json; the first: Expecting property name" in out


def test_the_whole_message_may_be_features_and_text_becomes_words(compare: Compare, replay: Replayed) -> None:
    rows = [("win money now", "spam"), ("see you at noon", "ham")] * 20
    lines = [json.dumps({"seq": i, "text": f"{text} {i}", "label": label}) for i, (text, label) in enumerate(rows)]
    file = replay.write("e.ndjson", "\n".join(lines))
    told = (file, "--task", "binary", "--algorithms", "pa1", "--features", ".", "--exclude", "seq", "--json")

    words = json.loads(compare(*told, "--text", "text"))["learners"]["pa1"]
    categories = json.loads(compare(*told))["learners"]["pa1"]

    assert words["errors"] <= 4 < categories["errors"]


def test_an_exclusion_names_a_feature_wherever_features_are(compare: Compare, replay: Replayed) -> None:
    lines = [json.dumps({"features": {"x": 0, "y": i % 2}, "label": i % 2}) for i in range(30)]
    events, sparse = replay.write("e.ndjson", "\n".join(lines)), replay.write("f.svm", "1 1:0 2:1\n0 1:0\n" * 15)

    for file, name in ((events, "y"), (events, "features.y"), (sparse, "2")):
        told = (file, "--task", "binary", "--algorithms", "pa1", "--json")
        all_of_it = json.loads(compare(*told))["learners"]["pa1"]["errors"]
        without = json.loads(compare(*told, "--exclude", name))["learners"]["pa1"]["errors"]
        assert all_of_it < 5 < without


def test_a_file_without_labels_says_what_to_look_for(compare: Compare, replay: Replayed) -> None:
    file = replay.write("e.ndjson", '{"text":"a","y":1}\n')

    out = compare(file, "--task", "binary")

    assert "no row had features under 'features' and a label under 'label': say where they are with --features" in out
    assert "and --label" in out and "e.ndjson: 1 row in" in out and "missing_fields" in out
    assert "0 rows" in compare(replay.write("empty.ndjson", ""), "--task", "binary")


def test_labels_that_do_not_suit_the_task_are_no_missing_ones(compare: Compare, replay: Replayed) -> None:
    out = compare(replay.write("t.csv", table(5)), "--task", "regression", "--label", "sold", "--algorithms", "pa")

    assert "5 bad_label; the first: the label of a regression is a number" in out and "no row had a label" not in out


def test_curves_are_drawn_beside_the_baselines(compare: Compare, replay: Replayed) -> None:
    file, plot = replay.write("t.csv", table()), replay.path("curves.svg")

    compare(file, "--task", "binary", "--label", "sold", "--algorithms", "pa1,pa2", "--plot", plot)

    picture = ElementTree.parse(plot).getroot()
    texts = [str(text.text) for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    curves = list(picture.iter("{http://www.w3.org/2000/svg}polyline"))
    assert "t.csv" in texts
    assert sorted(text.split("  ")[0] for text in texts if "  " in text) == ["last label", "majority", "pa1", "pa2"]
    assert all(200 < len(curve.attrib["points"].split()) < 502 for curve in curves)


def test_without_matplotlib_a_png_is_refused_before_the_file_is_read(
    compare: Compare, replay: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    said = compare("not-there.csv", "--task", "binary", "--plot", replay.path("c.png"), code=2)

    assert 'pip install "olstream[plot]"' in said and said.count("\n") == 1
    assert not Path(replay.path("c.png")).exists()


OTHERS = """
class Last:
    answer = None
    def predict_one(self, x):
        return self.answer
    def learn_one(self, x, y):
        self.answer = y
"""


def test_a_model_of_ones_own_stands_in_the_same_table(
    compare: Compare, replay: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay.write("own_models.py", OTHERS)
    file = replay.write("t.csv", table())
    monkeypatch.chdir(replay.directory)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(replay.directory)])
    told = (file, "--task", "binary", "--label", "sold", "--algorithms", "pa1", "--also", "own_models:Last")

    out, document = compare(*told), json.loads(compare(*told, "--json"))

    assert "own_models:Last" in out
    last = document["learners"]["own_models:Last"]
    assert last["error_rate"] == document["baselines"]["last_label"]["error_rate"]
    assert (last["loss_mean"], last["updates"]) == (None, None) and last["rows_per_s"] > 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["{t}"], "--task is missing: binary, multiclass, regression, or --config"),
        (["{t}", "--task", "ranking"], "ranking"),
        (["--task", "binary"], "FILE"),
        (["none.csv", "--task", "binary"], "none.csv"),
        (["{t}", "--task", "binary"], "--label: t.csv has no column 'label'; it has x, code, color"),
        (["{t}", "--task", "binary", "--label", "solt"], "--label: t.csv has no column 'solt'; did you mean 'sold'?"),
        (["{t}", "--task", "binary", "--label", "sold", "--exclude", "prize"], "did you mean 'price'?"),
        (["{t}", "--task", "binary", "--exclude", "a,,b"], "write names with a comma between them"),
        (["{t}", "--task", "binary", "--algorithms", "arrow"], "(nearest: arow)"),
        (["{t}", "--task", "binary", "--param", "arow.r=-1"], "params.r must be a finite number > 0"),
        (["{t}", "--task", "binary", "--classes", "a"], "a binary task has two"),
        (["{t}", "--task", "binary", "--scale", "max"], "max"),
        (["{t}", "--task", "binary", "--plot", "curves.pdf"], "must end in .svg or .png"),
        (["{t}", "--task", "binary", "--label", "sold", "--plot", "none/c.svg"], "none/c.svg"),
        (["{s}", "--task", "binary", "--plot", "{s}"], "would write over the input"),
        (["{s}", "--task", "binary", "--label", "y"], "--label has no meaning in libsvm"),
        (["{s}", "--task", "binary", "--also", "json"], "write module:factory"),
        (["{s}", "--task", "binary", "--config", "none.yaml"], "none.yaml"),
    ],
)
def test_mistakes_on_the_command_line_are_one_sentence(
    compare: Compare, replay: Replayed, arguments: list[str], told: str
) -> None:
    paths = {"t": replay.write("t.csv", table(5)), "s": replay.write("f.svg.svm", "1 1:1\n")}

    said = compare(*[argument.format(**paths) for argument in arguments], code=2)

    assert told in said and said.count("\n") == 1


def test_a_picture_is_kept_where_a_name_is_wrong(compare: Compare, replay: Replayed) -> None:
    file, plot = replay.write("t.csv", table(5)), replay.write("c.svg", "the last one")

    compare(file, "--task", "binary", "--label", "solt", "--plot", plot, code=2)

    assert Path(plot).read_text() == "the last one"


def test_standard_input_is_a_dash(replay: Replayed) -> None:
    command = [sys.executable, "-m", "olstream", "compare", "-", "--task", "regression", "--algorithms", "pa", "--json"]

    done = subprocess.run(command, input=b'{"features":{"x":1},"label":2}\n', capture_output=True, check=True)

    assert json.loads(done.stdout)["learners"]["pa"]["mae"] == 2.0


@pytest.mark.parametrize(
    ("file", "arguments", "expected"),
    [
        (
            "a9a.libsvm.gz",
            ["--task", "binary"],
            {"pa1": (0.206, 0.212), "arow": (0.153, 0.159), "majority": (0.24, 0.242)},
        ),
        (
            "electricity.csv.gz",
            ["--task", "binary", "--label", "class", "--scale", "standard"],
            {"pa1": (0.074, 0.080), "last_label": (0.146, 0.148)},
        ),
        ("mnist5k.libsvm.gz", ["--task", "multiclass"], {"pa1": (0.16, 0.20), "majority": (0.88, 0.93)}),
    ],
)
def test_real_data_comes_to_what_is_known_of_it(
    compare: Compare, data_dir: Path, file: str, arguments: list[str], expected: dict[str, tuple[float, float]]
) -> None:
    named = [name for name in expected if name in base.algorithms()]

    document = json.loads(compare(str(data_dir / file), *arguments, "--algorithms", ",".join(named), "--json"))

    everybody: dict[str, Any] = document["learners"] | document["baselines"]
    assert document["rejected"] == {}
    assert {
        name: low <= everybody[name]["error_rate"] <= high for name, (low, high) in expected.items()
    } == dict.fromkeys(expected, True)
