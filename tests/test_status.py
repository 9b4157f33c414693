"""The configuration as it may be shown."""

from __future__ import annotations

import pytest

from olstream.status import redacted


@pytest.mark.parametrize(
    "key",
    [
        *("sasl.password", "ssl.key.location", "ssl.key.pem", "ssl.certificate.pem", "sasl.jaas.config", "api_key"),
        *("sasl.oauthbearer.client.secret", "sasl.oauthbearer.config", "ssl.keystore.password", "http.token", "PWD"),
    ],
)
@pytest.mark.parametrize("value", ["hidden", 12345, True, ["hidden"]])
def test_what_its_name_calls_secret_is_hidden(key: str, value: object) -> None:
    assert redacted({"kafka": {key: value}}) == {"kafka": {key: "***"}}


def test_what_is_not_set_shows_as_not_set() -> None:
    assert redacted({"http": {"port": 9108, "token": None}}) == {"http": {"port": 9108, "token": None}}


def test_a_password_in_an_address_is_hidden() -> None:
    given = {"kafka": {"https.proxy": "http://me:pw@proxy:80", "list": ["https://pw@host/path"]}}

    assert redacted(given) == {"kafka": {"https.proxy": "http://***@proxy:80", "list": ["https://***@host/path"]}}


def test_a_learner_may_be_named_like_a_secret() -> None:
    given = {"learners": {"turkey": {"class_weights": {"token": 2.0}}}}

    assert redacted(given) == given
