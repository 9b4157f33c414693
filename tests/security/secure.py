"""A real Kafka that trusts nobody: TLS, passwords, tokens and access control, each on a listener of its own.

    secure     SASL_SSL, SCRAM-SHA-256 and SCRAM-SHA-512
    expired    the same with a certificate that has run out
    old        the same with a certificate of an authority that has run out
    other      the same with a certificate of another name
    tls        SSL with client certificates
    tokens     SASL_SSL with OAUTHBEARER, tokens signed by tests/security/tokens.py

The plain listener of tests/kafka/broker.py is there too: whoever comes that way may do everything.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.kafka.broker import Kafka, _free_ports, _listeners
from tests.kafka.topics import ANSWER_S
from tests.security.certificates import KEY_PASSWORD, Certificates
from tests.security.tokens import Tokens

LISTENERS = ("secure", "expired", "old", "other", "tls", "tokens")
PASSWORD = "canary-of-the-password-8e1f"
_MECHANISMS = {"secure": ("SCRAM-SHA-256", "SCRAM-SHA-512"), "tokens": ("OAUTHBEARER",)}
_MODULES = {
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
}
_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"

# resource, name or prefix, operations
Grant = tuple[str, str, Iterable[str]]


class SecureKafka(Kafka):
    """One node."""

    def __init__(self) -> None:
        self._files = tempfile.TemporaryDirectory(prefix="olstream-certificates-")
        self.certificates = Certificates(Path(self._files.name))
        self.tokens = Tokens(self.certificates)
        self.java_options += (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.keys.as_uri()}",)
        self._ports = dict(zip(LISTENERS, _free_ports(len(LISTENERS)), strict=True))
        super().__init__()
        self._admin: AdminClient | None = None

    def remove(self) -> None:
        super().remove()
        self.tokens.stop()
        self._files.cleanup()

    def address(self, listener: str) -> str:
        return f"localhost:{self._ports[listener]}"

    def client(self, user: str, listener: str = "secure", mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """What that user sets under `kafka`."""
        trusted = self.certificates.old_authority if listener == "old" else self.certificates.authority
        common = {"bootstrap.servers": self.address(listener), "ssl.ca.location": str(trusted)}
        if listener == "tls":
            return common | {
                "security.protocol": "SSL",
                "ssl.certificate.location": str(self.certificates.client),
                "ssl.key.location": str(self.certificates.client_key),
                "ssl.key.password": KEY_PASSWORD,
            }
        if listener == "tokens":
            return common | {"security.protocol": "SASL_SSL", **self.tokens.client(user)}
        login = {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": PASSWORD}
        return common | {"security.protocol": "SASL_SSL", **login}

    @property
    def admin(self) -> AdminClient:
        """Of somebody who may do everything."""
        self._admin = self._admin or AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return self._admin

    def know(self, user: str, password: str = PASSWORD) -> None:
        """Let that user log in, by either mechanism."""
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            known = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
            for done in self.admin.alter_user_scram_credentials([known]).values():
                done.result(ANSWER_S)

    def grant(self, user: str, *grants: Grant) -> None:
        for done in self.admin.create_acls(list(_bindings(user, grants))).values():
            done.result(ANSWER_S)

    def revoke(self, user: str, resource: str, name: str) -> None:
        """Take away what was granted on that resource."""
        of = (ResourceType[resource], name, ResourcePatternType.LITERAL, f"User:{user}", "*")
        filters = [AclBindingFilter(*of, AclOperation.ANY, AclPermissionType.ANY)]
        for done in self.admin.delete_acls(filters).values():
            assert done.result(ANSWER_S), f"nothing was granted on {resource} {name}"

    def _settings_of(self, node: int) -> dict[str, str]:
        settings = super()._settings_of(node)
        protocols = {listener: "SSL" if listener == "tls" else "SASL_SSL" for listener in self._ports}
        ours = _listeners({listener.upper(): port for listener, port in self._ports.items()})
        settings |= {
            "listeners": f"{settings['listeners']},{ours}",
            "advertised.listeners": f"{settings['advertised.listeners']},{ours}".replace("127.0.0.1", "localhost"),
            "listener.security.protocol.map": settings["listener.security.protocol.map"]
            + "".join(f",{listener.upper()}:{protocol}" for listener, protocol in protocols.items()),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "listener.name.tls.ssl.client.auth": "required",
            "listener.name.tls.ssl.truststore.type": "PEM",
            "listener.name.tls.ssl.truststore.location": str(self.certificates.authority),
        }
        for listener in self._ports:
            settings |= self._tls(listener) | self._sasl(listener)
        return settings

    def _tls(self, listener: str) -> dict[str, str]:
        made = self.certificates
        keystores = {"expired": made.expired_broker, "old": made.broker_of_old_authority, "other": made.other_broker}
        return {
            f"listener.name.{listener}.ssl.keystore.type": "PEM",
            f"listener.name.{listener}.ssl.keystore.location": str(keystores.get(listener, self.certificates.broker)),
        }

    def _sasl(self, listener: str) -> dict[str, str]:
        if listener == "tls":
            return {}
        mechanisms = _MECHANISMS.get(listener, _MECHANISMS["secure"])
        prefix = f"listener.name.{listener}"
        settings = {f"{prefix}.sasl.enabled.mechanisms": ",".join(mechanisms)}
        settings |= {f"{prefix}.{name.lower()}.sasl.jaas.config": _MODULES[name] for name in mechanisms}
        if listener == "tokens":
            settings |= {f"{prefix}.oauthbearer.sasl.server.callback.handler.class": _VALIDATOR}
            settings |= {f"{prefix}.{name}": value for name, value in self.tokens.broker().items()}
        return settings


def _bindings(user: str, grants: Iterable[Grant]) -> Iterable[AclBinding]:
    for resource, name, operations in grants:
        for operation in operations:
            yield AclBinding(
                ResourceType[resource], name, ResourcePatternType.LITERAL,
                f"User:{user}", "*", AclOperation[operation], AclPermissionType.ALLOW,
            )  # fmt: skip
