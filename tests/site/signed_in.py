"""People who signed in to the pages of an archive: their cookie, and the token that their forms carry."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlencode

from served_archive import Answer, WebClient

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts

FORM = "application/x-www-form-urlencoded"
PASSWORD = "a long password"
BROWSER = {"Accept": "text/html,application/xhtml+xml"}


def add_people(archive: Archive, people: Iterable[tuple[str, str]] = (("olga", "owner"), ("uwe", "user"))) -> None:
    """Accounts with their roles, all with one password."""
    accounts = Accounts(archive.catalog.database)
    for name, role in people:
        accounts.add(name, role, PASSWORD, 0)


def session_cookie(web: WebClient, name: str) -> str:
    """What a browser keeps of somebody who signed in."""
    answer = web.ask("POST", "/login", urlencode({"name": name, "password": PASSWORD}), Content_Type=FORM)
    assert answer.status == 303
    return answer.headers["set-cookie"].partition(";")[0]


def csrf_of(text: str) -> str:
    """The token that the forms of a page carry."""
    found = re.search(r'name="csrf" value="([^"]+)"', text)
    assert found
    return found[1]


class Person:
    """Somebody with a browser."""

    def __init__(self, web: WebClient, name: str) -> None:
        self._web = web
        self.cookie = session_cookie(web, name)
        self.csrf = csrf_of(self.get("/").text)

    def get(self, path: str) -> Answer:
        return self._web.get(path, Cookie=self.cookie, **BROWSER)

    def see(self, path: str) -> str:
        return self.get(path).text

    def post(self, path: str, **fields: str | list[str]) -> Answer:
        body = urlencode({**fields, "csrf": self.csrf}, doseq=True)
        return self._web.ask("POST", path, body, Content_Type=FORM, Cookie=self.cookie, **BROWSER)

    def send(self, path: str, **fields: str | list[str]) -> tuple[int, str]:
        """The status, and where it leads or what it says."""
        answer = self.post(path, **fields)
        return answer.status, answer.headers.get("location", answer.text)
