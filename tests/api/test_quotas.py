"""What one user may ask for in a day, and what people of one group share."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from served_archive import WebClient, running

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts
from letopis.catalog.audit import DailyUsage, seconds_to_next_day
from letopis.catalog.index_state import SearchChoices
from letopis.config import SearchSettings, Settings
from letopis.model import to_millis


def bearers(archive: Archive, **people: tuple[str, str]) -> dict[str, dict[str, str]]:
    """A token for each person; a person is a role and a group."""
    accounts = Accounts(archive.catalog.database)
    made = {}
    for name, (role, group) in people.items():
        user = accounts.add(name, role, None, 0, group=group)
        made[name] = {"Authorization": f"Bearer {accounts.create_token(name, user, 'write', 0)}"}
    return made


def refused(web: WebClient, who: dict[str, str]) -> int:
    """A check of an address that is refused anyway, after it was counted."""
    return web.post("/api/v1/check", {"url": "http://127.0.0.1:9/"}, **who).status


def test_a_user_who_has_used_up_the_day_is_told_when_to_go_on(make_archive: Any) -> None:
    archive = make_archive(checks_a_day=2)
    heads = bearers(archive, anna=("user", ""), eva=("user", ""), olga=("owner", ""))
    with running(archive) as web:
        assert [refused(web, heads["anna"]) for _ in range(3)] == [403, 403, 429]
        answer = web.post("/api/v1/check", {"url": "http://127.0.0.1:9/"}, **heads["anna"])
        assert 0 < int(answer.headers["retry-after"]) <= 86_401
        assert "used up the 2 checks" in answer.json()["detail"]
        assert refused(web, heads["eva"]) == 403
        assert [refused(web, heads["olga"]) for _ in range(3)] == [403] * 3


def test_watches_added_in_a_day_are_limited(make_archive: Any) -> None:
    archive = make_archive(watches_a_day=1)
    heads = bearers(archive, anna=("user", ""))
    with running(archive) as web:
        statuses = [
            web.post("/api/v1/watches", {"url": f"http://example.org/{page}"}, **heads["anna"]).status for page in "ab"
        ]
    assert statuses == [201, 429]


def test_counts_begin_anew_at_midnight(make_archive: Any) -> None:
    usage = DailyUsage(make_archive().catalog.database)
    evening = to_millis(datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC))
    assert usage.spent("anna", "checks", evening) == 0
    assert [usage.take("anna", "checks", 1, evening) for _ in range(2)] == [True, False]
    assert usage.spent("anna", "checks", evening) == 1
    assert seconds_to_next_day(evening) == 2
    assert usage.spent("anna", "checks", evening + 1000) == 0
    assert usage.take("anna", "checks", 1, evening + 1000)


def test_people_of_one_group_share_their_projects(make_archive: Any) -> None:
    archive = make_archive()
    heads = bearers(archive, anna=("user", "press"), eva=("user", "press"), ivan=("user", "law"), jan=("user", ""))
    page = {"name": "news", "urls": ["http://example.org/"]}
    with running(archive) as web:
        assert web.post("/api/v1/projects", page, **heads["anna"]).status == 201
        assert web.post("/api/v1/projects", page, **heads["eva"]).status == 201
        for stranger in ("ivan", "jan"):
            assert web.post("/api/v1/projects", page, **heads[stranger]).status == 403
            assert web.ask("DELETE", "/api/v1/projects/news", **heads[stranger]).status == 403
        assert web.get("/api/v1/projects/news").json()["owner"] == "anna"
        assert web.ask("DELETE", "/api/v1/projects/news", **heads["eva"]).status == 204


def test_a_chosen_answer_counts_only_where_the_owner_wants_that(make_archive: Any) -> None:
    archive = make_archive()
    archive.put("http://example.org/comet", b"<title>Comet</title><p>The comet returns.")
    heads = bearers(archive, anna=("user", ""))
    with running(archive) as web:
        assert "/search/chosen" not in web.get("/search?q=comet").text
        assert web.post("/api/v1/search/chosen", {"url": "http://example.org/comet"}).status == 204
        assert web.post("/api/v1/search/chosen", {"url": "http://example.org/comet"}, **heads["anna"]).status == 204
        answer = web.get("/search/chosen?url=http%3A%2F%2Fexample.org%2Fcomet")
        assert (answer.status, answer.headers["location"]) == (303, "/url/http://example.org/comet")
        assert web.get("/search/chosen?url=javascript%3Ax").status in (400, 404)
    assert SearchChoices(archive.catalog.database).often() == {}


def test_choices_are_counted_from_the_page_and_by_programs(tmp_path: Path) -> None:
    settings = Settings(search=SearchSettings(learn=True))
    with Archive(tmp_path / "a", settings=settings) as archive:
        archive.put("http://example.org/comet", b"<title>Comet</title><p>The comet returns.")
        heads = bearers(archive, anna=("user", ""))
        with running(archive) as web:
            assert "/search/chosen?url=http%3A//example.org/comet" in web.get("/search?q=comet").text
            web.get("/search/chosen?url=http%3A%2F%2Fexample.org%2Fcomet")
            web.post("/api/v1/search/chosen", {"url": "http://example.org/comet"}, **heads["anna"])
        assert list(SearchChoices(archive.catalog.database).often().values()) == [(1, 2)]
