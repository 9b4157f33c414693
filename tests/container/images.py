"""The image under test, built from the Dockerfile, and the base that it is built on where no registry is reachable.

The base is Debian's Python of the same version under the very name that the Dockerfile uses. What this machine needs to
reach packages (its certificates, pip's settings) stands in that base alone, so the Dockerfile is built as it is.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.container.engine import Engine, EngineUnavailable

ROOT: Final = Path(__file__).resolve().parents[2]
BASE: Final = "docker.io/library/python:3.11-slim-bookworm"
STAGE: Final = "localhost/olstream-build"  # a name, so that its layers are kept for the next time
IMAGE: Final = "ghcr.io/olstream/olstream:0.1.0"
ALGORITHMS: Final = "arow"  # kernels of one are compiled for tests; the image that is shipped has all

# The slim image has these as well. They are unpacked and not configured: no more is needed, and it takes seconds.
PACKAGES: Final = "base-files,bash,coreutils,dash,findutils,grep,sed,libstdc++6,python3,python3-venv"
SUITE: Final = "bookworm"
BUNDLES: Final = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


def build(engine: Engine) -> str:
    """The image's name, built anew from what has changed."""
    _base(engine)
    before = {name: engine.about("image", name)["Id"] for name in (STAGE, IMAGE) if engine.has(name)}
    for options in (("--target=build", f"--tag={STAGE}"), (f"--tag={IMAGE}",)):
        engine.buildah(
            *("bud", "--isolation=chroot", "--pull-never", "--layers", "--format=docker", *options),
            *(f"--build-arg=ALGORITHMS={ALGORITHMS}", str(ROOT)),
        )
    for name, old in before.items():
        if engine.about("image", name)["Id"] != old:
            engine.try_out("podman", "rmi", old)  # and those of its layers that no other image has
    return IMAGE


def _base(engine: Engine) -> None:
    bundle, settings = _certificates(), _pip()
    key = hashlib.sha256(b"\0".join([Path(__file__).read_bytes(), bundle, settings.encode()])).hexdigest()
    if engine.has(BASE) and (engine.about("image", BASE)["Labels"] or {}).get("key") == key:
        return
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made, "base.tar")
        arguments = ["--variant=extract", f"--include={PACKAGES}", SUITE, str(tree)]
        done = subprocess.run(["mmdebstrap", *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise EngineUnavailable(f"no base image could be made: {done.stderr[-500:]}")
        _write(Path(made, "more"), bundle, settings)
        container = engine.buildah("from", "scratch")
        engine.buildah("add", "--quiet", container, str(tree), "/")
        engine.buildah("copy", "--quiet", container, f"{made}/more", "/")
        engine.buildah("config", f"--label=key={key}", "--env=PATH=/usr/local/bin:/usr/bin:/bin", container)
        engine.buildah("commit", "--quiet", "--rm", container, BASE)


def _write(more: Path, bundle: bytes, settings: str) -> None:
    """What unpacking leaves out, and what this machine needs."""
    etc, programs = more / "etc", more / "usr" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to("python3")
    (etc / "ssl" / "certs").mkdir(parents=True)
    (etc / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (etc / "group").write_text("root:x:0:\n")
    (etc / "ssl" / "certs" / "ca-certificates.crt").write_bytes(bundle)
    (etc / "pip.conf").write_text(f"[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n{settings}")


def _certificates() -> bytes:
    """The authorities that this machine trusts."""
    given = [os.environ[name] for name in BUNDLES if os.environ.get(name)]
    found = [path for path in (*given, ssl.get_default_verify_paths().cafile) if path and Path(path).is_file()]
    if not found:
        raise EngineUnavailable("this machine has no bundle of certificates")
    return Path(found[0]).read_bytes()


def _pip() -> str:
    """This machine's settings of pip, wherever they were made; a file of this machine is none of the image's."""
    done = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    found = dict(re.findall(r"^(?:global|user|site|:env:)\.([\w-]+)='(.*)'$", done.stdout, re.MULTILINE))
    return "".join(f"{name} = {value}\n" for name, value in found.items() if not value.startswith(("/", "file:")))
