"""podman, buildah and runc with storage of their own: the user's images and containers are never touched.

Kept in the user's cache directory between runs: layers of images, so that only what changed is built again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

TOOLS: Final = ("buildah", "podman", "runc", "mmdebstrap")
SOCKET_S: Final = 30.0
LIFE_S: Final = 600  # a container that somebody forgot ends by itself

# What keeps the container from the machine, as deploy/ asks for it too. Without the last, podman puts a tmpfs on /tmp.
CONFINED: Final = (
    *("--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges"),
    *("--memory=1g", "--pids-limit=200"),
)


class EngineUnavailable(Exception):
    """No container can be run here; the sentence says what is missing."""


def home() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "olstream-container"


class Engine:
    """Use as `with Engine() as engine`: what it started is gone at the end, images stay."""

    def __init__(self) -> None:
        missing = [tool for tool in TOOLS if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin") is None]
        if missing:
            raise EngineUnavailable(f"not installed: {', '.join(missing)}")
        if os.getuid() != 0:
            raise EngineUnavailable("only root can build and run the image here")
        self._started: list[str] = []

    def __enter__(self) -> Self:
        home().mkdir(parents=True, exist_ok=True)
        self._directory = Path(tempfile.mkdtemp(prefix="olstream-container-"))
        self.environment = {**os.environ, **self._configured()}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for name in self._started:
            self.podman("rm", "--force", "--time=0", "--volumes", "--ignore", name)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _configured(self) -> Mapping[str, str]:
        """Environment that leads both tools to files of ours; the machine may have no systemd."""
        kept, directory = home(), self._directory
        (directory / "storage.conf").write_text(
            f'[storage]\ndriver = "{_driver(kept)}"\ngraphroot = "{kept}/storage"\nrunroot = "{kept}/run"\n'
        )
        limits = '["nofile=1024:1024", "nproc=1024:1024"]'  # more needs a capability that root may lack
        (directory / "containers.conf").write_text(
            f'[containers]\ndefault_ulimits = {limits}\nlog_driver = "k8s-file"\n'
            f'[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nlock_type = "file"\n'
            "exit_command_delay = 1\n"  # else what watched a command of the API stays for five minutes
            f'tmp_dir = "{kept}/tmp"\nvolume_path = "{kept}/volumes"\n'
        )
        (directory / "tmp").mkdir()
        return {
            "CONTAINERS_CONF": str(directory / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(directory / "storage.conf"),
            "STORAGE_DRIVER": _driver(kept),
            "TMPDIR": str(directory / "tmp"),
            "PATH": f"{os.environ['PATH']}:/usr/sbin",
        }

    def buildah(self, *arguments: str, deadline_s: float = LIFE_S) -> str:
        return self._said("buildah", arguments, deadline_s)

    def podman(self, *arguments: str, deadline_s: float = 60.0) -> str:
        return self._said("podman", arguments, deadline_s)

    def _said(self, tool: str, arguments: Sequence[str], deadline_s: float) -> str:
        done = self.try_out(tool, *arguments, deadline_s=deadline_s)
        told = f"{tool} {' '.join(arguments[:4])}: exit {done.returncode}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        assert done.returncode == 0, told
        return done.stdout.strip()

    def try_out(self, *command: str, deadline_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, timeout=deadline_s, env=self.environment)

    def has(self, image: str) -> bool:
        return self.try_out("podman", "image", "exists", image).returncode == 0

    def about(self, kind: str, name: str) -> dict[str, Any]:
        """What podman knows about an image, a container or a volume."""
        (found,) = json.loads(self.podman(kind, "inspect", name))
        assert isinstance(found, dict)
        return found

    def will_run(self, name: str) -> None:
        """A container of this name is about to start, and ends with us."""
        self._started.append(name)

    @contextmanager
    def volume(self, name: str) -> Iterator[Path]:
        """A volume, and where its files are on this machine."""
        self.podman("volume", "create", name)
        try:
            yield Path(self.about("volume", name)["Mountpoint"])
        finally:
            self.podman("volume", "rm", "--force", name)

    @contextmanager
    def api(self) -> Iterator[str]:
        """The address of a Docker API, which podman speaks."""
        socket = self._directory / "api.sock"
        with (self._directory / "api.log").open("ab") as log:
            command = ["podman", "system", "service", "--time=0", f"unix://{socket}"]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)
        try:
            yield f"unix://{socket}"
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def _driver(directory: Path) -> str:
    """Overlay, but where the directory is on one already, as inside another container."""
    done = subprocess.run(["stat", "--file-system", "--format=%T", directory], capture_output=True, text=True)
    return "vfs" if done.stdout.strip() == "overlayfs" else "overlay"
