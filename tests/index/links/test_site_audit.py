"""The audit of a site: each page with its issues, in every door."""

from __future__ import annotations

from pathlib import Path

import pytest

from letopis.archive import READ, Archive
from letopis.errors import UsageError
from letopis.index.site_audit import AUDIT_ISSUES, AuditedPage, read_markup
from letopis.model import Observation, Outcome, Response
from letopis.operations import Context
from letopis.operations.site_listings import SiteAuditQuery, site_audit
from letopis.web.site_tables import AUDIT_COLUMNS, ISSUE_NAMES

SITE = "https://example.org"
LONG = "A title that goes on and on and says far more than any list of results would ever show"
GOOD = "<html><head><title>{title}</title><meta name=description content='{about}'>"
GOOD += "<link rel=canonical href='{url}'></head><body><h1>{title}</h1>{more}</body></html>"


def page(url: str, title: str, more: str = "", about: str = "") -> bytes:
    return GOOD.format(url=url, title=title, more=more, about=about or f"All about {title}").encode()


@pytest.fixture
def audited(tmp_path: Path) -> dict[str, AuditedPage]:
    links = "".join(f"<a href='/{name}'>{name}</a>" for name in ("good", "bare", "twin1", "twin2", "long", "old"))
    pages = {
        "/": page(f"{SITE}/", "Home", links),
        "/good": page(f"{SITE}/good", "Good", "<img src=/a.png alt=A>"),
        "/bare": b"<html><body><p>Words only</p><img src=http://example.org/b.png></body></html>",
        "/twin1": page(f"{SITE}/twin1", "Twin", about="The same words"),
        "/twin2": page(f"{SITE}/good", "Twin", about="The same words"),
        "/long": page(f"{SITE}/long", LONG, "<h1>Another</h1>", "x" * 200),
        "/lonely": page(f"{SITE}/lonely", "Lonely"),
        "/en": page(f"{SITE}/en", "English", "<link rel=alternate hreflang=cs href=/cs>"),
        "/cs": page(f"{SITE}/cs", "Czech"),
    }
    with Archive(tmp_path / "archive") as archive:
        for path, body in pages.items():
            archive.put(SITE + path, body)
        found = site_audit(Context(archive, rights=READ), SiteAuditQuery(site="example.org"))
        rows = {row.url.removeprefix(SITE): row for row in found}
        assert found.about["pages"] == len(rows)
        assert found.about["issues"]["title-duplicate"] == 2
        some = site_audit(Context(archive, rights=READ), SiteAuditQuery(site="example.org", issue="title-missing"))
        assert [row.url for row in some] == [f"{SITE}/bare"]
        with pytest.raises(UsageError, match="is not an issue"):
            site_audit(Context(archive, rights=READ), SiteAuditQuery(site="example.org", issue="ugly"))
    return rows


def test_a_good_page_has_no_issue(audited: dict[str, AuditedPage]) -> None:
    good = audited["/good"]
    assert (good.issues, good.title, good.heading, good.depth, good.images, good.without_alt) == (
        (), "Good", "Good", 1, 1, 0,
    )  # fmt: skip


def test_what_a_page_lacks_or_has_too_much_of_is_named(audited: dict[str, AuditedPage]) -> None:
    assert audited["/bare"].issues == (
        "title-missing", "description-missing", "heading-missing", "canonical-missing", "image-without-alt",
        "mixed-content",
    )  # fmt: skip
    assert audited["/long"].issues == ("title-long", "description-long", "headings-several")


def test_what_search_engines_are_asked_to_leave_out_is_named_with_its_reason(tmp_path: Path) -> None:
    hidden = page(f"{SITE}/hidden", "Hidden", "<meta name=robots content='NOINDEX, follow'>")
    home = page(f"{SITE}/", "Home", "<a href=/hidden>a</a><a href=/none>b</a><a href=/paper>c</a><a href=/other>d</a>")
    with Archive(tmp_path / "archive") as archive:
        archive.put(f"{SITE}/", home)
        archive.put(f"{SITE}/hidden", hidden)
        archive.put(f"{SITE}/other", page(f"{SITE}/", "Other"))
        told = (("content-type", "text/html"), ("x-robots-tag", "none"))
        plain = (("content-type", "text/plain"), ("x-robots-tag", "noindex"))
        for path, headers, body in (("/none", told, page(f"{SITE}/none", "None")), ("/paper", plain, b"two words")):
            response = Response(SITE + path, SITE + path, 200, headers, body, archive.clock())
            archive.record([Observation(response, Outcome.NEW, dated=True)])
        found = site_audit(Context(archive, rights=READ), SiteAuditQuery(site="example.org"))
        rows = {row.url.removeprefix(SITE): row for row in found}
    assert {path: row.robots for path, row in rows.items()} == {
        "/": "", "/hidden": "follow, noindex", "/none": "nofollow, noindex", "/paper": "noindex", "/other": "",
    }  # fmt: skip
    assert (rows["/hidden"].issues, rows["/none"].issues) == (("noindex",), ("noindex", "nofollow"))
    assert (rows["/paper"].issues, rows["/paper"].words) == (("noindex",), 2)
    assert [path for path, row in rows.items() if row.indexable] == ["/"], "another is said to stand for /other"
    assert found.about["indexable"] == 1


def test_a_page_that_no_longer_answers_is_an_error_and_not_open_to_search_engines(tmp_path: Path) -> None:
    gone, silent = f"{SITE}/gone", f"{SITE}/silent"
    with Archive(tmp_path / "archive") as archive:
        archive.put(f"{SITE}/", page(f"{SITE}/", "Home", "<a href=/gone>a</a><a href=/silent>b</a>"))
        for url, status in ((gone, 404), (silent, 0)):
            archive.put(url, page(url, "Gone"))
            response = Response(url, url, status, (), b"", archive.clock())
            archive.record([Observation(response, Outcome.UNAVAILABLE, dated=True)])
        found = site_audit(Context(archive, rights=READ), SiteAuditQuery(site="example.org"))
        rows = {row.url: row for row in found}
    assert [rows[url].issues for url in (gone, silent)] == [("error",), ("error",)]
    assert (found.about["indexable"], rows[silent].words) == (1, 0)


def test_pages_are_compared_with_each_other(audited: dict[str, AuditedPage]) -> None:
    assert audited["/twin1"].issues == ("title-duplicate", "description-duplicate")
    assert audited["/twin2"].issues == ("title-duplicate", "description-duplicate", "canonical-elsewhere")
    assert "hreflang-not-mutual" in audited["/en"].issues


def test_a_page_without_a_way_to_it_is_listed_with_no_depth(audited: dict[str, AuditedPage]) -> None:
    assert audited["/lonely"].depth is None
    assert "orphan" in audited["/lonely"].issues


def test_what_is_no_page_is_not_blamed_for_lacking_a_title(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive") as archive:
        archive.put(f"{SITE}/a.txt", b"plain words", content_type="text/plain")
        assert read_markup(archive.get(f"{SITE}/a.txt")).headings == ()


def test_every_issue_has_a_name_and_every_column_a_field() -> None:
    assert set(ISSUE_NAMES) == set(AUDIT_ISSUES)
    assert {column.name for column in AUDIT_COLUMNS} == set(AuditedPage._fields)


def test_a_list_for_programs_that_a_page_links_to_is_no_page_to_audit(tmp_path: Path) -> None:
    links = "<a href=/sitemap.xml>list</a> <a href=/gone>gone</a>"
    xml = (("Content-Type", "application/xml"),)
    looks = [
        (f"{SITE}/", 200, page(f"{SITE}/", "Home", links), (("Content-Type", "text/html"),)),
        (f"{SITE}/sitemap.xml", 200, b"<urlset><url><loc>https://example.org/</loc></url></urlset>", xml),
        (f"{SITE}/gone", 404, b"", ()),
    ]
    with Archive(tmp_path / "archive") as archive:
        for url, status, body, headers in looks:
            outcome = Outcome.NEW if status == 200 else Outcome.UNAVAILABLE
            response = Response(url=url, final_url=url, status=status, headers=headers, body=body, at=archive.clock())
            archive.record([Observation(response, outcome)])
        found = site_audit(Context(archive, rights=READ), SiteAuditQuery(site="example.org"))
    assert [(row.url, row.status) for row in found] == [(f"{SITE}/", 200), (f"{SITE}/gone", 404)]
    assert (found.about["pages"], found.about["indexable"]) == (2, 1)
