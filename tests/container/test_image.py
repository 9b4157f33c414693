"""What the image is, and what is not in it."""

from __future__ import annotations

import subprocess

import pytest

from tests.container.engine import CONFINED, Engine
from tests.container.images import ALGORITHMS, BASE

MEBI = 2**20
# Over the base. The compiler alone (llvmlite) has 172 MB, numpy 55, numba 20; all kernels together have 34 more.
SIZE_MAX = 320 * MEBI

UNWANTED = ("gcc", "cc", "g++", "make", "git", "curl", "wget", "pip", "pip3", "uv", "hatch", "hatchling")

COMPILED = """
from numba.core.event import install_recorder
with install_recorder("numba:compile") as compiled:
    from olstream import kernels
    services = list(kernels.services(["{algorithm}"]))
    for service in services:
        kernels.compile_for(service)
print(len(services), len(compiled.buffer))
"""


def _within(engine: Engine, image: str, *command: str, options: tuple[str, ...] = ()) -> str:
    done = _tried(engine, image, *command, options=options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _tried(
    engine: Engine, image: str, *command: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    run = ("podman", "run", "--rm", "--network=none", *CONFINED, *options, f"--entrypoint={command[0]}", image)
    return engine.try_out(*run, *command[1:])


def test_it_says_how_it_is_run(engine: Engine, image: str) -> None:
    found = engine.about("image", image)
    config = found["Config"]

    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["/opt/olstream/bin/olstream"]
    assert config["Cmd"] == ["run", "/etc/olstream/config.yaml"]
    assert config["StopSignal"] in ("SIGTERM", "15")
    assert config["Volumes"] == {"/var/lib/olstream": {}}
    assert config["WorkingDir"] == "/var/lib/olstream"
    assert config["ExposedPorts"] == {"9108/tcp": {}}
    assert found["HealthCheck" if "HealthCheck" in found else "Healthcheck"]["Test"] == [
        "CMD",
        "/opt/olstream/bin/olstream",
        "health",
    ]


def test_it_fits_its_budget(engine: Engine, image: str) -> None:
    over_base = engine.about("image", image)["Size"] - engine.about("image", BASE)["Size"]

    assert over_base < SIZE_MAX, f"{over_base / MEBI:.0f} MB over the base"


def test_it_runs_as_nobody_with_nothing_to_gain(engine: Engine, image: str) -> None:
    status = dict(line.split(":\t", 1) for line in _within(engine, image, "cat", "/proc/self/status").splitlines())

    assert status["Uid"].split() == ["10001"] * 4
    assert status["Gid"].split() == ["10001"] * 4
    assert status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0


def test_nothing_in_it_can_be_changed(engine: Engine, image: str) -> None:
    program = _within(engine, image, "find", "/opt", "/etc/olstream", "(", "-writable", "-o", "-user", "10001", ")")
    places = [_tried(engine, image, "touch", f"{place}/new") for place in ("/tmp", "/opt/olstream", "/etc/olstream")]
    state = _tried(engine, image, "touch", "/var/lib/olstream/new")

    assert program.replace("/opt/olstream/lib64\n", "") in ("", _links(program))
    assert [done.returncode for done in places] == [1, 1, 1]
    assert state.returncode == 0, state.stderr


def _links(found: str) -> str:
    """Links have all rights, which say nothing."""
    return "".join(f"{line}\n" for line in found.splitlines() if line.startswith("/opt/olstream/bin/python"))


def test_nothing_to_build_with_is_in_it(engine: Engine, image: str) -> None:
    tools = _tried(engine, image, "sh", "-c", f"command -v {' '.join(UNWANTED)}")
    files = _within(engine, image, "find", "/opt", "-name", "pip", "-o", "-name", "tests", "-o", "-name", "*.pyi")
    places = [_tried(engine, image, "test", "-e", place) for place in ("/src", "/build", "/wheels", "/root/.cache")]

    assert tools.stdout == ""
    assert files == ""
    assert [done.returncode for done in places] == [1, 1, 1, 1]


def test_its_kernels_are_loaded_and_not_compiled(engine: Engine, image: str) -> None:
    number, compiled = map(int, _within(engine, image, "python", "-Ic", COMPILED.format(algorithm=ALGORITHMS)).split())

    assert number > 5
    assert compiled == 0


@pytest.mark.parametrize("option", ["--env=OLSTREAM_KERNELS=/tmp", "--env=NUMBA_CPU_NAME="])
def test_it_works_without_them_too(engine: Engine, image: str, option: str) -> None:
    code = (
        "from olstream import Learner; m = Learner('pegasos', task='binary'); "
        "m.learn({'x': 1.0}, 'a'); print(m.learn({'x': 2.0}, 'b').loss)"
    )

    assert float(_within(engine, image, "python", "-Ic", code, options=(option,))) > 0.0
