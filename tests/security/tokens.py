"""An issuer of tokens: an HTTP endpoint that gives signed ones for a client's secret, and the key to verify them."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.security.certificates import Certificates

SECRET = "canary-of-the-client-5c09"
AUDIENCE = "kafka"
ISSUER = "https://issuer.test"
_KEY = "issuer"


class Tokens:
    def __init__(self, certificates: Certificates) -> None:
        self._directory = certificates.directory
        self._openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", f"{_KEY}.key")
        self.keys = self._directory / "keys.json"
        self.keys.write_text(json.dumps({"keys": [self._public_key()]}))
        self.given: list[str] = []  # all that were handed out
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def client(self, user: str) -> dict[str, str]:
        """What a client sets to log in as that user."""
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": user,
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{self._server.server_address[1]}/token",
        }

    def broker(self) -> dict[str, str]:
        return {
            "sasl.oauthbearer.jwks.endpoint.url": self.keys.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
        }

    def token(self, user: str) -> str:
        now_s = int(time.time())
        claims = {"sub": user, "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + 300, "scope": "kafka"}
        signed = f"{_encoded({'alg': 'RS256', 'typ': 'JWT', 'kid': _KEY})}.{_encoded(claims)}"
        signature = self._openssl("dgst", "-sha256", "-sign", f"{_KEY}.key", given=signed.encode())
        self.given.append(f"{signed}.{_text(signature)}")
        return self.given[-1]

    def _public_key(self) -> dict[str, str]:
        said = self._openssl("rsa", "-in", f"{_KEY}.key", "-noout", "-modulus").decode()
        modulus = bytes.fromhex(said.strip().partition("=")[2])
        return {"kty": "RSA", "kid": _KEY, "alg": "RS256", "use": "sig", "n": _text(modulus), "e": "AQAB"}

    def _openssl(self, *arguments: str, given: bytes = b"") -> bytes:
        done = subprocess.run(
            ["openssl", *arguments], cwd=self._directory, input=given, capture_output=True, check=True
        )
        return done.stdout

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                scheme, _, given = self.headers["Authorization"].partition(" ")
                user, _, secret = base64.b64decode(given).decode().partition(":")
                known = scheme == "Basic" and secret == SECRET
                body = {"access_token": issuer.token(user)} if known else {"error": "invalid_client"}
                data = json.dumps(body | ({"token_type": "Bearer", "expires_in": 300} if known else {})).encode()
                self.send_response(200 if known else 401)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Nobody reads it."""

        return Handler


def _encoded(part: dict[str, object]) -> str:
    return _text(json.dumps(part).encode())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
