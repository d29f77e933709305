"""Signing in with password and code, getting a second factor, being asked for one, and losing it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest
from served_archive import Answer, WebClient, running
from signed_in import FORM, csrf_of

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of, code_at, second_factors_of
from letopis.archive.audit import audit_entries
from letopis.catalog.sessions import STEP, TRIES
from letopis.cli import main
from letopis.config import ServeSettings, Settings

WORD = "a long password"


@dataclass
class StandingClock:
    now: datetime = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    @property
    def step(self) -> int:
        return int(self.now.timestamp()) // STEP

    def go_on(self) -> int:
        """The next half minute."""
        self.now += timedelta(seconds=STEP)
        return self.step


@dataclass
class Browser:
    """Keeps cookies and sends the forms of pages."""

    web: WebClient
    cookies: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, **fields: str) -> Answer:
        head = {"Accept": "text/html", "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        if method == "POST":
            head["Content-Type"] = FORM
        answer = self.web.ask(method, path, urlencode(fields) if method == "POST" else None, **head)
        for name, value in answer.all_headers:
            if name == "set-cookie":
                key, _, kept = value.partition(";")[0].partition("=")
                self.cookies[key] = kept
        return answer

    @property
    def has_session(self) -> bool:
        return any(name.startswith("letopis_session") for name in self.cookies)

    def see(self, path: str) -> Answer:
        return self.ask("GET", path)

    def send(self, path: str, **fields: str) -> Answer:
        return self.ask("POST", path, csrf=csrf_of(self.see("/accounts").text), **fields)

    def sign_in(self, name: str, **more: str) -> Answer:
        return self.ask("POST", "/login", name=name, password=WORD, **more)


def secret_in(text: str) -> bytes:
    found = re.search(r'<code class="secret">([A-Z2-7 ]+)</code>', text)
    assert found
    return base64.b32decode(found[1].replace(" ", ""))


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


def served(folder: Path, clock: StandingClock, who: str) -> Iterator[tuple[Archive, WebClient]]:
    settings = Settings(serve=ServeSettings(two_factor=who))  # type: ignore[arg-type]
    with Archive(folder / "archive", settings=settings, clock=clock) as archive:
        for name, role in (("olga", "owner"), ("uwe", "user"), ("gabi", "guest")):
            accounts_of(archive).add(name, role, WORD, 0)
        with running(archive) as web:
            yield archive, web


@pytest.fixture
def optional(tmp_path: Path, clock: StandingClock) -> Iterator[tuple[Archive, WebClient]]:
    yield from served(tmp_path, clock, "optional")


@pytest.fixture
def for_owners(tmp_path: Path, clock: StandingClock) -> Iterator[tuple[Archive, WebClient]]:
    yield from served(tmp_path, clock, "owners")


def set_up(browser: Browser, clock: StandingClock) -> tuple[bytes, list[str]]:
    """Switches it on by the pages; answers the secret and the recovery codes."""
    shown = browser.send("/accounts/two-factor").text
    assert '<svg class="qr"' in shown
    secret = secret_in(shown)
    shown = browser.send("/accounts/two-factor/confirm", code=code_at(secret, clock.step)).text
    codes = re.findall(r"<li><code>([^<]+)</code>", shown)
    assert len(codes) == 10
    return secret, codes


def actions(archive: Archive) -> list[tuple[str, str, str]]:
    return [(row.who, row.action, row.subject) for row in audit_entries(archive, 50)]


def test_with_a_second_factor_a_password_alone_lets_nobody_in(
    optional: tuple[Archive, WebClient], clock: StandingClock
) -> None:
    archive, web = optional
    uwe = Browser(web)
    uwe.sign_in("uwe")
    secret, _ = set_up(uwe, clock)
    again = Browser(web)
    answer = again.sign_in("uwe", next="/watches")
    assert (answer.status, answer.headers["location"]) == (303, "/login/code?next=/watches")
    assert not again.has_session
    assert again.see("/accounts").status == 303
    wrong = again.ask("POST", "/login/code", code="000000" if code_at(secret, clock.step) != "000000" else "1")
    assert (wrong.status, again.has_session) == (401, False)
    code = code_at(secret, clock.go_on())
    answer = again.ask("POST", "/login/code", code=code, next="/watches")
    assert (answer.status, answer.headers["location"]) == (303, "/watches")
    assert again.see("/accounts").status == 200
    third = Browser(web)
    third.sign_in("uwe")
    assert third.ask("POST", "/login/code", code=code).status == 401
    told = actions(archive)
    assert {("uwe", "second factor on", "uwe"), ("uwe", "login failed", "code"), ("uwe", "login", "code")} <= set(told)


def test_the_cookie_of_a_given_password_is_used_up_by_the_code(
    optional: tuple[Archive, WebClient], clock: StandingClock
) -> None:
    _, web = optional
    uwe = Browser(web)
    uwe.sign_in("uwe")
    secret, _ = set_up(uwe, clock)
    again = Browser(web)
    again.sign_in("uwe")
    half = {name: value for name, value in again.cookies.items() if name.startswith("letopis_half_signed_in")}
    assert half
    again.ask("POST", "/login/code", code=code_at(secret, clock.go_on()))
    replayed = Browser(web, half)
    answer = replayed.ask("POST", "/login/code", code=code_at(secret, clock.go_on()))
    assert (answer.headers["location"], replayed.has_session) == ("/login", False)
    assert Browser(web).see("/login/code").headers["location"] == "/login"


def test_codes_cannot_be_guessed_in_any_browser(optional: tuple[Archive, WebClient], clock: StandingClock) -> None:
    archive, web = optional
    uwe = Browser(web)
    uwe.sign_in("uwe")
    secret, _ = set_up(uwe, clock)
    for _ in range(TRIES):
        thief = Browser(web)
        thief.sign_in("uwe")
        assert thief.ask("POST", "/login/code", code="wrong").status == 401
    answer = thief.ask("POST", "/login/code", code=code_at(secret, clock.go_on()))
    assert (answer.status, thief.has_session) == (429, False)
    assert int(answer.headers["retry-after"]) > 0
    refused = uwe.send("/accounts/two-factor/off", code="wrong")
    assert (refused.status, second_factors_of(archive).is_on(2)) == (429, True)


def test_a_recovery_code_lets_in_once_and_one_of_either_kind_switches_it_off(
    optional: tuple[Archive, WebClient], clock: StandingClock
) -> None:
    archive, web = optional
    uwe = Browser(web)
    uwe.sign_in("uwe")
    _, codes = set_up(uwe, clock)
    again = Browser(web)
    again.sign_in("uwe")
    assert again.ask("POST", "/login/code", code=codes[0]).status == 303
    assert "9 recovery codes are left" in again.see("/accounts").text
    assert again.send("/accounts/two-factor/off", code="wrong").status == 422
    assert again.send("/accounts/two-factor/off", code=codes[1]).headers["location"] == "/accounts?done=two-factor-off"
    assert Browser(web).sign_in("uwe").headers["location"] == "/"
    assert ("uwe", "second factor off", "uwe") in actions(archive)


def test_an_owner_may_ask_for_it_and_old_sessions_end_by_that(
    for_owners: tuple[Archive, WebClient], clock: StandingClock
) -> None:
    archive, web = for_owners
    assert Browser(web).sign_in("uwe").headers["location"] == "/"
    olga = Browser(web)
    assert olga.sign_in("olga").headers["location"] == "/login/code?next=/"
    page = olga.see("/login/code").text
    assert "must have a second factor" in page
    assert olga.see("/accounts").status == 303
    wrong = olga.ask("POST", "/login/code", code="wrong")
    assert (wrong.status, secret_in(wrong.text)) == (401, secret_in(page))
    shown = olga.ask("POST", "/login/code", code=code_at(secret_in(page), clock.step)).text
    assert len(re.findall(r"<li><code>", shown)) == 10
    assert olga.see("/accounts").status == 200
    uwe = Browser(web)
    uwe.sign_in("uwe")
    assert olga.send("/accounts/users/role", name="uwe", role="owner").status == 303
    assert uwe.see("/accounts").headers["location"] == "/login?next=/accounts"
    assert uwe.sign_in("uwe").headers["location"] == "/login/code?next=/"
    assert ("olga", "login", "second factor on") in actions(archive)


def test_the_secret_of_one_who_has_to_get_it_is_fresh_after_each_password(
    for_owners: tuple[Archive, WebClient],
) -> None:
    _, web = for_owners
    secrets = set()
    for _ in range(2):
        olga = Browser(web)
        olga.sign_in("olga")
        secrets.add(secret_in(olga.see("/login/code").text))
    assert len(secrets) == 2


def test_whoever_is_locked_out_is_let_in_by_an_owner_or_on_the_machine(
    optional: tuple[Archive, WebClient], clock: StandingClock
) -> None:
    archive, web = optional
    olga, uwe = Browser(web), Browser(web)
    for browser, name in ((olga, "olga"), (uwe, "uwe")):
        browser.sign_in(name)
        set_up(browser, clock)
    assert uwe.send("/accounts/users/two-factor", name="olga").status == 403
    assert olga.send("/accounts/users/two-factor", name="uwe").status == 303
    assert Browser(web).sign_in("uwe").headers["location"] == "/"
    assert olga.send("/accounts/users/two-factor", name="olga").status == 422
    assert main(["--archive", str(archive.folder), "users", "two-factor-off", "olga"]) == 0
    assert Browser(web).sign_in("olga").headers["location"] == "/"
    assert ("command line", "second factor off", "olga") in actions(archive)


def test_a_removed_user_leaves_no_factor_behind(optional: tuple[Archive, WebClient], clock: StandingClock) -> None:
    archive, web = optional
    uwe = Browser(web)
    uwe.sign_in("uwe")
    set_up(uwe, clock)
    accounts_of(archive).remove("uwe")
    assert not second_factors_of(archive).is_on(2)
    assert second_factors_of(archive).left(2) == 0


def test_a_code_from_another_site_is_not_looked_at(optional: tuple[Archive, WebClient]) -> None:
    _, web = optional
    for path in ("/login/code", "/join"):
        answer = web.ask("POST", path, "code=1", Content_Type=FORM, Origin="http://evil.example")
        assert answer.status == 403
