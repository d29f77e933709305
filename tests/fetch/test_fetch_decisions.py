"""The pure decisions: fields, digests, redirects, retries."""

import base64
import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.config.settings import FetchSettings
from letopis.errors import SettingError
from letopis.fetch.client import (
    RedirectTrail,
    is_transient,
    method_after_redirect,
    pause_before_retry,
    redirect_target,
    retry_after,
    without_credentials,
)
from letopis.fetch.headers import (
    digest_claims,
    digest_mismatches,
    header_lines,
    headers_from_settings,
    merge_headers,
    parse_header_block,
    repeats_known_digests,
)
from letopis.fetch.ranges import multipart_boundary, multipart_parts, parse_content_range
from letopis.model import Failure, FailureKind, Headers, Response, http_date

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOKEN = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ-", min_size=1, max_size=12)
VALUE = st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f\x85\xa0"), max_size=20)


def answer(status: int = 200, *headers: tuple[str, str], url: str = "http://a.test/", body: bytes = b"") -> Response:
    return Response(url, url, status, tuple(headers), body, NOW)


@given(st.lists(st.tuples(TOKEN, VALUE), max_size=12), st.integers(100, 599))
@settings(max_examples=150)
def test_header_blocks_keep_order_case_and_bytes(fields: list[tuple[str, str]], status: int) -> None:
    lines = [f"HTTP/1.1 {status} Why\r\n".encode()] + [f"{n}: {v}\r\n".encode("latin-1") for n, v in fields]
    block = parse_header_block(lines)
    assert (block.status, block.version, block.fields) == (status, "1.1", tuple(fields))
    for name, value in fields:
        assert block.first[name.lower()] == next(v for n, v in fields if n.lower() == name.lower())
        assert value is not None


@given(st.lists(st.binary(max_size=40), max_size=10))
@settings(max_examples=150)
def test_any_header_block_is_read(lines: list[bytes]) -> None:
    assert 0 <= parse_header_block(lines).status <= 999


def test_later_fields_replace_earlier_ones_and_none_smuggles() -> None:
    mine = (("Accept", "a"), ("X", "1"))
    assert merge_headers(mine, (("accept", "b"), ("Evil", "1\r\nHost: other"))) == (("X", "1"), ("accept", "b"))
    assert header_lines((("X", ""), ("Y", "1"))) == [b"X;", b"Y: 1"]


@pytest.mark.parametrize("line", ["no colon", ": value", "A: b\nC: d"])
def test_a_header_setting_that_is_none_is_named(line: str) -> None:
    with pytest.raises(SettingError, match="Name: value"):
        headers_from_settings([line])


def b64(name: str, body: bytes) -> str:
    return base64.b64encode(hashlib.new(name, body).digest()).decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Content-MD5", b64("md5", b"x")),
        ("Digest", "unknown=abc, SHA-256=" + b64("sha256", b"x")),
        ("Digest", "sha=" + b64("sha1", b"x") + ";q=1"),
        ("Repr-Digest", f"sha-512=:{b64('sha512', b'x')}:, sha-256=:{b64('sha256', b'x')}:"),
    ],
)
def test_digests_are_checked_against_either_form_of_the_body(field: str, value: str) -> None:
    headers: Headers = ((field, value),)
    assert digest_claims(headers)
    assert digest_mismatches(headers, b"decoded", b"x") == ()
    assert digest_mismatches(headers, b"decoded", b"coded") == (f"the header {field} does not fit the content",)


@pytest.mark.parametrize("value", ["", "md5", "not base64!", "YWJj", "sha-256=:YWJj:"])
def test_digests_that_are_none_claim_nothing(value: str) -> None:
    assert digest_claims((("Content-MD5", value), ("Repr-Digest", value), ("Digest", value))) == []


def test_an_answer_repeats_only_with_length_and_digest() -> None:
    known = (("Content-Length", "10"), ("Content-MD5", "abc"))
    assert repeats_known_digests({"content-length": "10", "content-md5": "abc"}, known)
    assert not repeats_known_digests({"content-length": "11", "content-md5": "abc"}, known)
    assert not repeats_known_digests({"content-length": "10"}, known)
    assert not repeats_known_digests({"content-length": "10"}, (("Content-Length", "10"),))
    assert not repeats_known_digests({"content-md5": "abc"}, (("Content-MD5", "abc"),))


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ("/b?c#d", "http://a.test/b?c"),
        ("//other.test", "http://other.test/"),
        ("HTTPS://Other.test/x", "https://other.test/x"),
        ("ž".encode().decode("latin-1"), "http://a.test/%C5%BE"),
        ("ftp://a.test/", ""),
        ("javascript:alert(1)", ""),
        ("http://", ""),
        ("http://[broken", ""),
    ],
)
def test_redirect_targets(raw: str, wanted: str) -> None:
    assert redirect_target("http://a.test/", raw) == wanted


def test_only_303_changes_the_method() -> None:
    assert [method_after_redirect(status, "HEAD") for status in (301, 303, 307)] == ["HEAD", "HEAD", "HEAD"]
    assert [method_after_redirect(status, "GET") for status in (302, 303, 308)] == ["GET", "GET", "GET"]


def test_secrets_stay_with_their_origin() -> None:
    mine = (("Authorization", "x"), ("Cookie", "y"), ("X-Api-Key", "k"), ("X-CSRF-Token", "t"), ("Accept", "z"))
    assert without_credentials(mine, "https://a.test/1", "https://a.test/2") == mine
    for other in ("http://a.test/", "https://b.test/", "https://a.test:444/"):
        assert without_credentials(mine, "https://a.test/1", other) == (("Accept", "z"),)


def test_coming_back_is_a_loop_unless_a_cookie_came() -> None:
    plain = RedirectTrail(30).step(answer(302, ("Location", "/")), "http://a.test/")
    assert plain is not None
    assert plain.kind is FailureKind.REDIRECT_LOOP
    trail, cookie = RedirectTrail(30), answer(302, ("Location", "/"), ("Set-Cookie", "a=b"))
    steps = [trail.step(cookie, "http://a.test/") for _ in range(4)]
    assert steps[0] is None
    assert any(step is not None and step.kind is FailureKind.REDIRECT_LOOP for step in steps)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("120", 120.0),
        ("0", 0.0),
        ("99999999999999999999", 7 * 86400.0),
        (http_date(NOW + timedelta(seconds=90)), 90.0),
        (http_date(NOW - timedelta(days=1)), 0.0),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("Sun, 99 Foo 2026", None),
    ],
)
def test_retry_after(value: str, wanted: float | None) -> None:
    assert retry_after(answer(503, ("Retry-After", value)), NOW) == wanted


@given(st.text(max_size=40))
@settings(max_examples=200)
def test_any_retry_after_is_read_or_ignored(value: str) -> None:
    pause = retry_after(answer(503, ("Retry-After", value)), NOW)
    assert pause is None or 0 <= pause <= 7 * 86400


def test_pauses_double_and_end() -> None:
    fine = FetchSettings(retries=3, retry_wait=1.0)
    assert [pause_before_retry(answer(503), n, fine, NOW) for n in range(4)] == [1.0, 2.0, 4.0, None]
    asked = answer(503, ("Retry-After", "10"))
    assert pause_before_retry(asked, 0, fine, NOW) == 10.0
    assert pause_before_retry(answer(503, ("Retry-After", "31")), 0, fine, NOW) is None


def test_only_passing_failures_are_tried_again() -> None:
    def failed(kind: FailureKind) -> Response:
        return Response("u", "u", 0, (), b"", NOW, failure=Failure(kind, ""))

    fine = FetchSettings()
    assert all(is_transient(answer(status), fine) for status in (502, 503, 504))
    assert not any(is_transient(answer(status), fine) for status in (200, 304, 404, 429, 500))
    assert is_transient(failed(FailureKind.RESET), fine)
    assert not is_transient(failed(FailureKind.TLS), fine)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("bytes 0-9/100", (0, 10, 100)),
        ("bytes 5-5/*", (5, 6, None)),
        ("bytes 9-5/100", None),
        ("bytes 0-100/100", None),
        ("bytes */100", None),
        ("lines 0-9/100", None),
    ],
)
def test_content_range(value: str, wanted: object) -> None:
    assert parse_content_range(value) == wanted


@given(st.lists(st.tuples(st.integers(0, 1000), st.binary(min_size=1, max_size=50)), max_size=6))
@settings(max_examples=100)
def test_multipart_bodies_are_read_back(ranges: list[tuple[int, bytes]]) -> None:
    body = b"".join(
        b"\r\n--SEP\r\nContent-Type: a/b\r\nContent-Range: bytes %d-%d/5000\r\n\r\n%s" % (s, s + len(d) - 1, d)
        for s, d in ranges
    )
    found = multipart_parts(body + b"\r\n--SEP--\r\n", multipart_boundary("multipart/byteranges; boundary=SEP"))
    assert [(part.start, part.data) for part in found] == ranges


@given(st.binary(max_size=200))
@settings(max_examples=100)
def test_any_multipart_body_is_read_without_error(body: bytes) -> None:
    assert isinstance(multipart_parts(b"--SEP\r\nContent-Range: bytes 0-3/9\r\n\r\n" + body, b"SEP"), list)
