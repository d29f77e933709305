"""Invitations: a link makes one account, with the role that it is for, within its days."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest
from patience import until
from served_archive import Answer, WebClient, running

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of, invitations_of
from letopis.archive.audit import audit_entries
from letopis.cli import main
from letopis.config import ServeSettings, Settings
from letopis.errors import NotFound
from letopis.model import to_millis

FORM = "application/x-www-form-urlencoded"
WORD = "a long password"


class MovedClock:
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def archive(tmp_path: Path, clock: MovedClock) -> Iterator[Archive]:
    settings = Settings(serve=ServeSettings(access_log=str(tmp_path / "access.log")))
    with Archive(tmp_path / "archive", settings=settings, clock=clock) as opened:
        accounts_of(opened).add("olga", "owner", WORD, 0)
        accounts_of(opened).add("eva", "owner", WORD, 0)
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def invited(web: WebClient, name: str = "olga", **fields: str) -> str:
    """The path of a link that an owner makes with the form."""
    answer = web.ask("POST", "/login", urlencode({"name": name, "password": WORD}), Content_Type=FORM)
    head = {
        "Cookie": next(v for n, v in answer.all_headers if "letopis_session" in v and n == "set-cookie").split(";")[0]
    }
    csrf = re.search(r'name="csrf" value="([^"]+)"', web.get("/accounts", **head).text)
    assert csrf
    body = urlencode({"role": "user", "group": "", "for": "7d", **fields, "csrf": csrf[1]})
    shown = web.ask("POST", "/accounts/users/invite", body, Content_Type=FORM, **head).text
    link = re.search(r'<code class="secret url">([^<]+)</code>', shown)
    assert link
    assert link[1].startswith(web.address + "/join?invitation=inv_")
    return link[1].removeprefix(web.address)


def join(web: WebClient, path: str, name: str, password: str = WORD) -> Answer:
    fields = {"invitation": path.partition("=")[2], "name": name, "password": password}
    return web.ask("POST", "/join", urlencode(fields), Content_Type=FORM, Accept="text/html")


def test_a_link_makes_one_account_with_its_role_and_signs_it_in(web: WebClient, archive: Archive) -> None:
    path = invited(web, role="guest", group="press")
    assert "read the archive" in web.get(path, Accept="text/html").text
    answer = join(web, path, "gabi")
    assert (answer.status, answer.headers["location"]) == (303, "/?joined=1")
    session = next(value.partition(";")[0] for name, value in answer.all_headers if "letopis_session" in value)
    greeted = web.get("/?joined=1", Cookie=session).text
    assert "Welcome, gabi: your account is ready" in greeted
    assert ('href="/accounts#own"' in greeted, ">Watch a page<" in greeted) == (True, False)
    assert "your account is ready" not in web.get("/?joined=1").text
    assert any("letopis_session" in value for name, value in answer.all_headers if name == "set-cookie")
    user = accounts_of(archive).user("gabi")
    assert (user.role, user.team) == ("guest", "press")
    assert join(web, path, "thief").status == 404
    assert web.get(path, Accept="text/html").status == 404
    told = [(row.who, row.action, row.subject) for row in audit_entries(archive, 10)]
    assert {("olga", "user invited", "guest"), ("gabi", "invitation accepted", "guest")} <= set(told)


def test_what_is_wrong_with_the_form_does_not_use_the_link_up(web: WebClient, archive: Archive) -> None:
    path = invited(web)
    for name, password, sentence in (
        ("olga", WORD, "An account named olga already exists"),
        ("new", "short", "8 to 1024 characters"),
        ("a b", WORD, "A name has 1 to 64 letters"),
    ):  # fmt: skip
        answer = join(web, path, name, password)
        assert (answer.status, sentence in answer.text) == (422, True)
    assert join(web, path, "new").status == 303
    assert accounts_of(archive).user("new").role == "user"


def test_a_link_ends_with_its_time(web: WebClient, clock: MovedClock) -> None:
    path = invited(web, **{"for": "1d"})
    clock.now += timedelta(days=1)
    assert join(web, path, "late").status == 404
    assert "Ask whoever invited you for another one" in web.get(path, Accept="text/html").text


def test_a_link_goes_with_the_owner_who_made_it(web: WebClient, archive: Archive) -> None:
    paths = [invited(web, "eva"), invited(web, "olga")]
    accounts_of(archive).set_role("eva", "user")
    assert [join(web, path, f"new{number}").status for number, path in enumerate(paths)] == [404, 303]
    accounts_of(archive).set_role("eva", "owner")
    path = invited(web, "eva")
    accounts_of(archive).remove("eva")
    assert join(web, path, "newer").status == 404


def test_the_catalogue_and_the_access_log_have_nothing_that_takes_an_invitation(
    web: WebClient, archive: Archive, tmp_path: Path
) -> None:
    path = invited(web)
    token = path.partition("=")[2]
    web.get(path, Accept="text/html", Referer=web.address + path)
    until(lambda: "invitation=..." in (tmp_path / "access.log").read_text())  # written when the answer is over
    assert token not in (tmp_path / "access.log").read_text()
    for file in archive.folder.rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes(), file


def test_an_invitation_by_the_command_line_is_listed_and_revoked(
    web: WebClient, archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--archive", str(archive.folder)]
    assert main([*place, "users", "invite", "--role", "owner"]) == 0
    token = capsys.readouterr().out.partition("=")[2].split()[0]
    now = to_millis(datetime.now(UTC))
    assert [one.role for one in invitations_of(archive).waiting(now)] == ["owner"]
    assert main([*place, "users", "uninvite", "1"]) == 0
    with pytest.raises(NotFound):
        invitations_of(archive).find(token, 0)
    assert main([*place, "users", "uninvite", "1"]) == 3


def test_somebody_invited_where_codes_are_asked_for_gets_a_second_factor_first(
    tmp_path: Path, clock: MovedClock
) -> None:
    settings = Settings(serve=ServeSettings(two_factor="everybody"))
    with Archive(tmp_path / "strict", settings=settings, clock=clock) as archive:
        accounts_of(archive).add("olga", "owner", WORD, 0)
        _, token = invitations_of(archive).add("guest", "", "olga", to_millis(clock()), 1000)
        with running(archive) as web:
            answer = join(web, f"/join?invitation={token}", "gabi")
    assert answer.headers["location"] == "/login/code?next=/%3Fjoined%3D1"
    assert not any("letopis_session" in value for name, value in answer.all_headers if name == "set-cookie")
