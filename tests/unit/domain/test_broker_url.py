"""A broker's URL gets its password from a file, and TLS that is checked by every client."""

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from kombu.utils.url import parse_url

from orchestrator.domain.broker_url import complete
from orchestrator.domain.errors import UsageError
from orchestrator.domain.settings import Settings

SECRET = "s3 cret/with@every#kind?of%sign:é"


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    path = tmp_path / "broker_password"
    path.write_text(SECRET + "\n", "utf-8")
    return path


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    path.write_text("a certificate")
    return path


@pytest.mark.parametrize(
    ("url", "user"),
    [
        ("redis://farm:6379/0", ""),
        ("redis://:old@farm:6379/0", ""),
        ("redis://anna:old@farm:6379/0", "anna"),
        ("redis://anna@farm:6379/0", "anna"),
    ],
)
def test_the_files_password_becomes_the_urls(url: str, user: str, password_file: Path) -> None:
    """It replaces one in the URL: a worker that gets its agent's URL may have one of before a rotation."""
    whole = complete(url, password_file, None)
    parsed = parse_url(whole)
    assert (parsed["userid"], parsed["password"]) == (user or None, SECRET)
    assert (parsed["hostname"], parsed["port"], parsed["virtual_host"]) == ("farm", 6379, "0")
    assert complete(whole, password_file, None) == whole, "twice is once: children inherit both"


@pytest.mark.parametrize("url", ["", "redis+socket:///tmp/redis.sock", "nonsense", "redis://[broken"])
def test_what_is_no_farms_broker_is_left_alone(url: str, password_file: Path, ca: Path) -> None:
    """A private server has no password, and workers of a run get its URL beside what the shell has set."""
    assert complete(url, password_file, ca) == url


def test_tls_is_checked_by_all_clients_alike(ca: Path) -> None:
    """kombu takes any certificate where the URL says nothing."""
    bare = dict(parse_qsl(urlsplit(complete("rediss://farm:6379/0", None, None)).query))
    assert bare == {"ssl_cert_reqs": "required", "ssl_check_hostname": "true"}
    whole = complete("rediss://farm:6379/0", None, ca)
    assert dict(parse_qsl(urlsplit(whole).query)) == bare | {"ssl_ca_certs": str(ca)}
    assert complete(whole, None, ca) == whole
    chosen = complete("rediss://farm/0?ssl_cert_reqs=none&ssl_check_hostname=false", None, None)
    assert dict(parse_qsl(urlsplit(chosen).query))["ssl_cert_reqs"] == "none", "a person's word stands"


def test_a_ca_without_tls_is_refused(ca: Path) -> None:
    """Whoever set it believes that the link is encrypted."""
    with pytest.raises(UsageError, match="rediss://"):
        complete("redis://farm:6379/0", None, ca)


def test_files_that_cannot_be_used_are_named_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    for content in (b"", b"\n", b"one\ntwo\n", b"\xff\xfe", b"x" * 5000):
        file.write_bytes(content)
        with pytest.raises(UsageError, match="TILEFARM_BROKER_PASSWORD_FILE") as caught:
            complete("redis://farm:6379/0", file, None)
        assert "two" not in str(caught.value)
        assert "xxx" not in str(caught.value)
    with pytest.raises(UsageError, match="No such file"):
        complete("redis://farm:6379/0", tmp_path / "none", None)
    with pytest.raises(UsageError, match=r"TILEFARM_BROKER_CA=.*no such file"):
        complete("rediss://farm:6379/0", None, tmp_path / "none")


def test_settings_give_the_whole_url_and_show_no_password(
    password_file: Path, ca: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEFARM_BROKER", "rediss://farm:6379/0")
    monkeypatch.setenv("TILEFARM_BROKER_PASSWORD_FILE", str(password_file))
    monkeypatch.setenv("TILEFARM_BROKER_CA", str(ca))
    settings = Settings()
    assert parse_url(settings.broker)["password"] == SECRET
    assert parse_url(settings.broker)["ssl"]["ssl_ca_certs"] == str(ca)
    assert "cret" not in repr(settings)
    assert "cret" not in str(settings)
