"""Authorities and certificates for tests, made by openssl: good ones, and some that have run out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

KEY_PASSWORD = "canary-of-the-key-37be"
_LONG_AGO = ("-startdate", "20200101000000Z", "-enddate", "20200201000000Z")
_CONFIG = """
[ca]
default_ca = here
[here]
database = index.txt
new_certs_dir = .
serial = serial
default_md = sha256
policy = any
unique_subject = no
default_days = 7
copy_extensions = copy
[any]
commonName = supplied
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = keyCertSign
[req]
distinguished_name = name
[name]
"""


def have_openssl() -> bool:
    return shutil.which("openssl") is not None


class Certificates:
    """PEM files in a directory. A broker's keystore is its key and its certificate in one file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "openssl.cnf").write_text(_CONFIG)
        (directory / "index.txt").touch()
        self.authority = self._authority("authority")
        self.stranger = self._authority("stranger")
        self.old_authority = self._authority("old-authority", *_LONG_AGO)
        self.broker = self._broker("broker", "authority")
        self.expired_broker = self._broker("expired-broker", "authority", *_LONG_AGO)
        self.broker_of_old_authority = self._broker("broker-of-old-authority", "old-authority")
        self.other_broker = self._broker("other-broker", "authority", common_name="elsewhere")
        self.client = self._signed("client", "olstream", "authority")
        self.client_key = self._locked("client")

    def key(self, name: str) -> Path:
        return self.directory / f"{name}.key"

    def _openssl(self, *arguments: str) -> None:
        done = subprocess.run(["openssl", *arguments], cwd=self.directory, capture_output=True, text=True)
        assert done.returncode == 0, f"openssl {' '.join(arguments)}: {done.stderr}"

    def _authority(self, name: str, *dates: str) -> Path:
        self._request(name, name)
        self._sign(name, "-selfsign", "-keyfile", f"{name}.key", "-extensions", "authority", *dates)
        return self.directory / f"{name}.pem"

    def _broker(self, name: str, authority: str, *dates: str, common_name: str = "localhost") -> Path:
        certificate = self._signed(name, common_name, authority, *dates)
        keystore = self.directory / f"{name}-keystore.pem"
        keystore.write_text(self.key(name).read_text() + certificate.read_text())
        return keystore

    def _signed(self, name: str, common_name: str, authority: str, *dates: str) -> Path:
        self._request(name, common_name)
        self._sign(name, "-cert", f"{authority}.pem", "-keyfile", f"{authority}.key", *dates)
        return self.directory / f"{name}.pem"

    def _request(self, name: str, common_name: str) -> None:
        names = ("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1") if common_name == "localhost" else ()
        key = ("-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key")
        self._openssl(
            "req", "-config", "openssl.cnf", *key, "-subj", f"/CN={common_name}", *names, "-out", f"{name}.csr"
        )

    def _sign(self, name: str, *arguments: str) -> None:
        out = ("-in", f"{name}.csr", "-out", f"{name}.pem", "-notext")
        self._openssl("ca", "-config", "openssl.cnf", "-batch", "-rand_serial", *out, *arguments)

    def _locked(self, name: str) -> Path:
        """The key once more, under a password."""
        cipher = ("-topk8", "-v2", "aes256", "-passout", f"pass:{KEY_PASSWORD}")
        self._openssl("pkcs8", "-in", f"{name}.key", *cipher, "-out", f"{name}-locked.key")
        return self.key(f"{name}-locked")
