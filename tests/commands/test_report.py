"""`olstream report`: of a file, of a service, of neither."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from olstream.__main__ import main
from olstream.commands import report
from olstream.io import http as served
from olstream.io.http import HttpServer, serve
from tests.commands.replayed import BINARY, Replayed
from tests.page import Service, example
from tests.page.markup import Element, check

TOKEN = "s3cret"


@pytest.fixture
def predictions(replay: Replayed) -> str:
    """What `replay` publishes of 300 events whose label is the sign of x."""
    events = [{"features": {"x": x}, "label": x > 0} for x in (3, -1, 2, -4, -2, 1) * 50]
    file = replay.write("events.ndjson", "".join(json.dumps(event) + "\n" for event in events))
    replay.run(replay.write("c.yaml", BINARY), file, "--out", replay.path("predictions.ndjson"))
    return replay.path("predictions.ndjson")


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    """A service with a token that has learnt four rows."""
    monkeypatch.setattr(served, "ASK_S", 0.0)
    running = Service(None, http={"port": 0, "token": TOKEN}, group="risk")
    running.take("fraud", *(example(label, x=1.0) for label in (1, 0, 1, 1)))
    running.page()
    server = serve(running.config, running.metrics, running.health)
    yield server
    server.stop()


Report = Callable[..., Any]


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Report:
    """Runs the command; what it says on standard error. With code 0 also the page."""

    def run(source: str, *arguments: str, code: int = 0) -> Any:
        out = tmp_path / "report.html"
        capsys.readouterr()
        assert main(["report", source, "--out", str(out), *arguments]) == code
        said = capsys.readouterr()
        assert said.out == ""
        if code:
            assert len(said.err.splitlines()) == 1 and not out.exists()
            return said.err
        return check(out.read_text("utf-8")), said.err

    return run


def table(root: Element) -> list[str]:
    return root.all("table")[0].cells()[1]


# Of a file


def test_a_replay_becomes_a_page(predictions: str, made: Report) -> None:
    root, said = made(predictions)

    assert table(root)[:3] == ["mchampion", "300", "300"]
    assert "300 predictions of 1 learner in predictions.ndjson" in said
    assert len(root.of("chart")) == 1 and "fetch(" not in root.text


@pytest.mark.parametrize("how", ["gzip", "stdin", "zipped stdin"])
def test_it_may_be_zipped_and_come_through_standard_input(
    how: str, predictions: str, made: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(predictions).read_bytes()
    path = tmp_path / "again.bin"
    path.write_bytes(data if how == "stdin" else gzip.compress(data))

    if how == "gzip":
        root, _ = made(str(path))
    else:
        with path.open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            root, _ = made("-")

    assert table(root)[1] == "300"


def test_lines_that_are_no_prediction_are_left_out_and_the_first_is_told(predictions: str, made: Report) -> None:
    file = Path(predictions)
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([*lines[:6], b'{"value": 3}', b"", *lines[6:], b"end"]))

    root, said = made(predictions)

    assert table(root)[1] == "300"
    for told in (said, root.text):
        assert "2 lines left out" in told and "line 7: Object missing required field `learner`" in told


@pytest.mark.parametrize(
    ("content", "told"), [(b"", "it is empty"), (b"\n\n", "it is empty"), (b"a,b\n1,2\n", "line 1: ")]
)
def test_a_file_without_a_prediction_is_one_sentence(content: bytes, told: str, made: Report, tmp_path: Path) -> None:
    (tmp_path / "f.ndjson").write_bytes(content)

    said = made(str(tmp_path / "f.ndjson"), code=2)

    assert "f.ndjson has no prediction" in said and told in said and "olstream replay --out" in said


def test_a_file_that_is_not_there_or_is_cut_off_is_one_sentence(predictions: str, made: Report, tmp_path: Path) -> None:
    cut = tmp_path / "cut.ndjson.gz"
    cut.write_bytes(gzip.compress(Path(predictions).read_bytes())[:-200])

    missing = made(str(tmp_path / "missing.ndjson"), code=2)
    broken = made(str(cut), code=2)

    assert "cannot read" in missing and "No such file" in missing
    assert "to its end" in broken


def test_the_detector_is_chosen_by_name_or_left_out(predictions: str, made: Report) -> None:
    ddm, _ = made(predictions, "--drift", "ddm")
    none, _ = made(predictions, "--drift", "none")
    wrong = Path(predictions).parent / "report.html"
    wrong.unlink()

    assert "drift by ddm" in ddm.text
    assert "drift by" not in none.text and "Drift detectors" not in none.text
    assert "'adwim' is not known" in made(predictions, "--drift", "adwim", code=2)


def test_a_detector_of_errors_leaves_a_regression_alone(made: Report, tmp_path: Path) -> None:
    line = {"learner": "p", "prediction": 1.0, "label": 2.0, "loss": 1.0, "correct": None}
    (tmp_path / "p.ndjson").write_text(json.dumps(line))

    page, _ = made(str(tmp_path / "p.ndjson"), "--drift", "ddm")

    assert "Drift detectors" not in page.text


# Where it goes


def test_it_never_writes_over_what_it_reads(predictions: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path(predictions).read_bytes()

    code = main(["report", predictions, "--out", predictions])

    assert code == 2 and "would write over the input" in capsys.readouterr().err
    assert Path(predictions).read_bytes() == before


def test_a_report_that_cannot_be_made_leaves_the_last_one(made: Report, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("the last one")
    (tmp_path / "empty.ndjson").write_bytes(b"")

    code = main(["report", str(tmp_path / "empty.ndjson"), "--out", str(tmp_path / "report.html")])

    assert code == 2 and (tmp_path / "report.html").read_text() == "the last one"


def test_a_place_that_cannot_be_written_is_one_sentence(predictions: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["report", predictions, "--out", "/nowhere/report.html"])

    said = capsys.readouterr().err
    assert code == 2 and "cannot write /nowhere/report.html: No such file or directory" in said


def test_it_may_go_to_standard_output(predictions: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "olstream", "report", predictions, "--out", "-"]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert table(check(done.stdout))[1] == "300"
    assert done.stderr.startswith("standard output: 300 predictions")


def test_without_out_it_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "x.ndjson"]) == 2
    assert "missing option '--out'" in capsys.readouterr().err


# Of a service


@pytest.mark.parametrize("form", ["{url}", "{url}/", "127.0.0.1:{port}"])
def test_a_running_service_becomes_a_page(
    form: str, service: HttpServer, made: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLSTREAM_HTTP_TOKEN", TOKEN)

    root, said = made(form.format(url=service.url, port=service.port))

    assert table(root)[0].startswith("fraud") and table(root)[2] == "4"
    assert "Report of" in root.text and root.all("nav") == []
    assert TOKEN not in root.text and service.url.partition("//")[2] in said


def test_a_service_that_wants_its_token_is_one_sentence(service: HttpServer, made: Report) -> None:
    assert "set OLSTREAM_HTTP_TOKEN" in made(service.url, code=2)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "127.0.0.1:9", "ftp://nowhere", "http://["])
def test_a_service_that_does_not_answer_is_one_sentence(url: str, made: Report) -> None:
    assert "answer" in made(url, code=3)


# The command


@pytest.mark.parametrize(
    ("source", "is_url"),
    [
        ("http://host", True), ("https://host/x", True), ("host:9108", True), ("localhost", True), ("[::1]:9108", True),
        ("predictions.ndjson", False), ("dir/p.ndjson.gz", False), ("-", False), ("C:p.ndjson", False),
    ],
)  # fmt: skip
def test_an_address_is_told_from_a_file(source: str, is_url: bool) -> None:
    assert report._is_url(source) is is_url


def test_a_file_named_like_an_address_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "host:9108").touch()

    assert not report._is_url("host:9108")


def test_a_report_of_a_service_loads_no_compiler() -> None:
    script = "import sys; import olstream.commands.report; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert not {"numba", "confluent_kafka", "prometheus_client"} & set(loaded)
