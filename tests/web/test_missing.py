"""What a replayed page lacks is fetched by whoever may, through the check that everything is captured by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from scripted_site import ScriptedSite
from served_archive import WebClient, running
from signed_in import BROWSER, FORM, add_people, session_cookie

from letopis.archive import Archive
from letopis.config import FetchSettings, Settings


def sign_in(web: WebClient, name: str) -> dict[str, str]:
    return {"Cookie": session_cookie(web, name), **BROWSER}


@pytest.fixture(params=["always", "cli"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", settings=Settings(fetch=FetchSettings(private=request.param))) as opened:
        add_people(opened, (("uwe", "user"), ("gabi", "guest")))
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def test_what_is_missing_is_fetched_by_whoever_may_and_from_nowhere_private_unless_allowed(
    web: WebClient, archive: Archive, scripted_site: ScriptedSite
) -> None:
    lost = scripted_site.set("/lost.css", b"p { color: red }", Content_Type="text/css")
    page = "http://example.org/page"
    asked = urlencode([("page", page), ("at", "20240101120000"), ("url", lost), ("url", "javascript:alert(1)")])
    for stranger in (BROWSER, sign_in(web, "gabi")):
        offered = web.get(f"/missing?{asked}", **stranger)
        assert lost in offered.text
        assert "javascript:" not in offered.text
        assert "Fetch now" not in offered.text
        assert web.ask("POST", "/missing", asked, Content_Type=FORM, **stranger).status in (303, 401, 403)
    assert scripted_site.log == []
    user = sign_in(web, "uwe")
    found = re.search(r'name="csrf" value="([^"]+)"', web.get(f"/missing?{asked}", **user).text)
    assert found
    assert web.ask("POST", "/missing", asked, Content_Type=FORM, **user).status == 403, "a form of another site"
    done = web.ask("POST", "/missing", f"{asked}&csrf={found[1]}", Content_Type=FORM, **user)
    if archive.settings.fetch.private == "always":
        assert (done.status, done.headers["location"]) == (303, f"/web/20240101120000/{page}")
        assert archive.get(lost).body == b"p { color: red }"
    else:
        assert done.status == 403
        assert scripted_site.log == []
