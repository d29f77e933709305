"""What people come for, walked through in a browser over the daemon itself: crawl, watches, jobs and pages at work."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import patience
import pytest
from looks import LOOKS, WIDE, in_a_look, in_every_look_and_language, wear
from playwright.sync_api import Error, expect
from scripted_site import ScriptedSite
from served_archive import WebClient, running

from letopis.archive import Archive, utc_now
from letopis.model import rfc3339
from letopis.operations import Context
from letopis.operations.exchange import ExportQuery, export
from letopis.operations.imports import ImportCommand, import_archives
from letopis.web.languages import LANGUAGES

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

SETTINGS = """
[fetch]
private = "always"
[monitor]
min_interval = 0.2
[crawl]
delay = 0.0
[schedule]
min = 1.0
"""
PASSWORD = "a long password"
Visit = Callable[..., Any]


@dataclass
class Daemon:
    """`letopis run` over an archive of its own, and the site it looks at."""

    web: WebClient
    site: ScriptedSite
    cookie: dict[str, str]
    numbers: Any = field(default_factory=count)

    def page(self, text: str, name: str = "page") -> str:
        """A fresh page of the site."""
        path = f"/{name}{next(self.numbers)}.html"
        return self.site.set(path, document(name, text))


def document(title: str, text: str) -> bytes:
    filler = "<p>The river has carried boats past this town for as long as anybody remembers.</p>" * 3
    return f"<html lang=en><title>{title}</title><h1>{title}</h1>{filler}<p>{text}</p></html>".encode()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Iterator[Daemon]:
    """Begun as everybody begins: with the address that the service prints, which makes the first owner."""
    folder = tmp_path_factory.mktemp("daemon")
    (folder / "letopis.toml").write_text(SETTINGS)
    site = ScriptedSite()
    command = [sys.executable, "-m", "letopis.cli", "--archive", str(folder / "archive")]
    command += ["--config", str(folder / "letopis.toml"), "run", "--port", "0"]
    with (folder / "log").open("w") as log, _started(command, folder, log) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith("listening on "), (folder / "log").read_text()
        web = WebClient(said.split()[-1])
        patience.until(lambda: "setup=" in (folder / "log").read_text())
        yield Daemon(
            web, site, set_up(chromium, web, (folder / "log").read_text().partition("owner at ")[2].split()[0])
        )
        process.terminate()
        process.wait(300)
    site.close()


def set_up(chromium: Any, web: WebClient, address: str) -> dict[str, str]:
    """Makes the first owner in a browser, who is signed in by that and asked what to look at first; their cookie."""
    context = chromium.new_context(base_url=web.address, locale="en-GB")
    tab = context.new_page()
    tab.goto(address)
    tab.get_by_label("Name").fill("olga")
    tab.get_by_label("Password").fill(PASSWORD)
    tab.get_by_role("button", name="Create owner").click()
    tab.get_by_role("heading", name="Where should Letopis start?").wait_for()
    (cookie,) = [one for one in context.cookies() if "session" in one["name"]]
    context.close()
    return {"name": cookie["name"], "value": cookie["value"], "url": web.address}


def _started(command: list[str], folder: Path, log: Any) -> subprocess.Popen[str]:
    # The switch of the tests is no setting of the daemon, which takes no unknown ones.
    known = {name: value for name, value in os.environ.items() if name != "LETOPIS_LONG"}
    return subprocess.Popen(command, cwd=folder, env=known, stdout=subprocess.PIPE, stderr=log, text=True)


@pytest.fixture
def visit(open_tab: Visit, daemon: Daemon) -> Visit:
    """Opens a tab of the owner."""
    return partial(open_tab, daemon.web, (daemon.cookie,))


TOO_WIDE = """() => {
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= wide) return [];
  const all = [...document.querySelectorAll("body *")].filter((one) => one.scrollWidth > one.clientWidth + 1);
  return ["the page", ...all.map((one) => `${one.tagName} ${one.className} ${one.textContent.slice(0, 40)}`)];
}"""


def too_wide(tab: Any) -> list[str]:
    """What does not fit into a window of any look; boxes that scroll by themselves do."""
    tab.wait_for_load_state()
    usual, found = tab.viewport_size, []
    for look in LOOKS.values():
        wear(tab, look)
        found += tab.evaluate(TOO_WIDE)
    tab.set_viewport_size(usual)
    return found


def until(tab: Any, seen: Callable[[], bool]) -> None:
    """Loads the page again until something is seen on it."""
    deadline = time.monotonic() + 300
    while not seen():
        assert time.monotonic() < deadline, tab.locator("main").inner_text()
        with suppress(Error):  # while a job runs its page may be loading itself again at this moment
            tab.reload()


def watch(tab: Any, url: str) -> Any:
    """Adds a watch by the form; answers its line in the list once the page was looked at."""
    tab.goto("/watches")
    tab.get_by_label("Addresses, one per line").fill(url)
    tab.get_by_label("How often").select_option("1h")
    tab.get_by_role("button", name="Watch", exact=True).click()
    tab.get_by_role("status").get_by_text("Watching.").wait_for()
    tab.goto("/watches")
    line = tab.locator("tbody tr", has=tab.locator(f'a[href="/url/{url}"]'))
    until(tab, lambda: line.locator(".badge.up").count() == 1)
    return line


def check(tab: Any, line: Any) -> None:
    line.get_by_role("checkbox").check()
    with tab.expect_navigation():
        tab.get_by_role("button", name="Check now").click()


def changed(tab: Any, daemon: Daemon, first: str, second: str) -> tuple[str, Any]:
    """A watched page that says something else after a while."""
    url = daemon.page(first, "notice")
    line = watch(tab, url)
    daemon.site.set(url.removeprefix(daemon.site.url("")), document("notice", second))
    check(tab, line)
    until(tab, lambda: set(second.split()) <= set(line.inner_text().split()))
    return url, line


@in_a_look
def test_somebody_adds_a_watch_and_sees_a_change_unread_until_they_look(
    visit: Visit, daemon: Daemon, look: Any
) -> None:
    with visit(**look) as tab:
        number = next(daemon.numbers)
        first, second = f"The museum on street {number} opens at nine.", f"Hall {number} is closed for repairs."
        _, line = changed(tab, daemon, first, second)
        assert line.get_by_text("Unread").count() == 1
        assert "; ".join(too_wide(tab)) == ""
        line.locator('a[href^="/compare/"]').click()
        tab.get_by_role("heading", name="What changed").wait_for()
        tab.locator(".words ins", has_text="repairs").first.wait_for()
        tab.goto("/watches")
        assert line.get_by_text("Unread").count() == 0


SHOP = """<html lang=en><title>Lamps</title><h1>Lamps of the week</h1>
<ul><li><b>Desk lamp</b> <span class=cost>25 EUR</span></li>
<li><b>Floor lamp</b> <span class=cost>{price} EUR</span></li></ul>
<p>Open every day from nine to six, and on the first Saturday of the month.</p></html>"""


@in_every_look_and_language
def test_somebody_watches_a_price_picked_on_the_page_and_is_told_when_it_falls(
    visit: Visit, daemon: Daemon, look: Any
) -> None:
    number, say = next(daemon.numbers), LANGUAGES[look["locale"][:2]].text
    path, hook = f"/shop{number}.html", daemon.site.set(f"/hook{number}", b"taken")
    url = daemon.site.set(path, SHOP.format(price=40).encode())
    with visit(**look) as tab:
        tab.goto("/watches")
        tab.get_by_label(say("Addresses, one per line")).fill(url)
        tab.get_by_role("button", name=say("Watch"), exact=True).click()
        picking = tab.get_by_role("link", name=say("Select it on the page"))
        tab.get_by_role("status").get_by_text(say("Watching. The first check is running.")).wait_for()
        until(tab, lambda: picking.count() == 1)
        picking.click()
        pick(tab, tab.frame_locator("[data-page]").locator(".cost").nth(1), "body > ul > li:nth-of-type(2)")
        tab.get_by_role("button", name=say("Use selection")).click()
        tab.get_by_text(say("This is not saved yet.")).wait_for()
        assert tab.get_by_label(say("its price")).is_checked(), "what was picked says no more than a price"
        tab.locator(".part:has([name=below]) > summary").click()
        tab.get_by_text(say("Only some changes")).click()
        tab.locator("input[name=below]").fill("35")
        tab.locator(".part:has([name=notify]) > summary").click()
        tab.locator("textarea[name=notify]").fill(hook)
        tab.get_by_role("button", name=say("Preview")).click()
        expect(tab.locator("pre.seen")).to_have_text("40 EUR")
        tab.get_by_role("button", name=say("Save"), exact=True).click()
        tab.get_by_role("status").get_by_text(say("Watch saved.")).wait_for()
        tab.get_by_role("button", name=say("Send a test")).click()
        tab.get_by_role("status").get_by_text(say("The test notification was delivered.")).wait_for()
        daemon.site.set(path, SHOP.format(price=30).encode())
        with tab.expect_navigation():
            tab.get_by_role("button", name=say("Check now")).click()
        until(tab, lambda: tab.locator("[aria-labelledby=sent] .badge.done").count() == 2)  # the test, and the alert
        assert tab.get_by_role("heading", level=1).get_by_text(say("Unread")).count() == 1
        assert "; ".join(too_wide(tab)) == ""
        sees_the_alert(tab, say, url)
    told = [json.loads(body) for path, body in daemon.site.posts if path == f"/hook{number}"]
    assert [one["kind"] for one in told] == ["test", "changed"]


def pick(tab: Any, element: Any, selector: str) -> None:
    """Clicks on a part of the stored page."""
    tab.wait_for_load_state()  # from then on a click chooses
    box = element.bounding_box()
    tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(tab.locator("#picked")).to_have_value(re.compile(re.escape(selector)))
    expect(tab.locator("#picking")).to_contain_text(element.inner_text())
    assert "; ".join(too_wide(tab)) == ""


def sees_the_alert(tab: Any, say: Callable[[str], str], url: str) -> None:
    """Among all alerts, with what went and came; compares, and marks it as read."""
    watch = tab.url
    tab.goto("/alerts")
    row = tab.locator("tbody tr", has=tab.locator(f'a[href^="/url/{url}?alert="]'))
    assert (row.locator("del").inner_text(), row.locator("ins").inner_text()) == ("40", "30")
    assert row.locator(".glance").inner_text() == "40 30 EUR"
    assert row.get_by_text(say("Unread")).count() == 1
    assert "; ".join(too_wide(tab)) == ""
    row.locator("a[href^='/compare/']").click()
    tab.get_by_role("heading", name=say("What changed")).wait_for()
    assert tab.locator(".words ins").first.inner_text().strip() in ("30", "30 EUR")
    tab.get_by_role("status").get_by_text(say("Read")).wait_for()
    with tab.expect_navigation():
        tab.get_by_role("button", name=say("Mark as unread")).click()
    assert row.get_by_text(say("Unread")).count() == 1
    with tab.expect_navigation():
        row.get_by_role("button", name=say("Mark as read")).click()
    assert row.get_by_text(say("Unread")).count() == 0
    tab.goto(watch)
    assert tab.get_by_role("heading", level=1).get_by_text(say("Unread")).count() == 0


@in_a_look
def test_somebody_compares_two_versions_in_every_view(visit: Visit, daemon: Daemon, look: Any) -> None:
    with visit(**look) as tab:
        number = next(daemon.numbers)
        url, _ = changed(tab, daemon, f"Ticket {number} costs ten crowns.", f"Ticket {number} costs twenty crowns.")
        tab.goto(f"/url/{url}")
        tab.locator("select[name=from]").select_option(index=1)
        tab.get_by_role("button", name="Compare").click()
        assert "twenty" in tab.locator(".words ins").first.inner_text()
        for name, mark in (
            ("Side by side", "td.came ins"),
            ("Rendered", "iframe.framed"),
            ("Source", "table.lines tr.came"),
        ):
            tab.get_by_role("link", name=name, exact=True).click()
            tab.locator(mark).first.wait_for()
            assert "; ".join(too_wide(tab)) == "", name


@in_a_look
def test_somebody_starts_a_crawl_watches_it_and_searches_what_it_found(visit: Visit, daemon: Daemon, look: Any) -> None:
    word = f"quagga{next(daemon.numbers)}"
    leaf = daemon.page(f"The {word} lived on these plains.", "leaf")
    home = daemon.site.set(f"/{word}/", f"<title>Home</title><a href='{leaf}'>leaf</a>".encode())
    with visit(**look) as tab:
        tab.goto("/crawl")
        tab.get_by_role("link", name="Crawl a site").click()
        tab.get_by_label("Address to start from").fill(home)
        tab.get_by_role("button", name="Crawl it", exact=True).click()
        tab.get_by_role("heading", name="Crawl of ").wait_for()
        assert "; ".join(too_wide(tab)) == ""
        tab.goto("/crawl")
        tab.locator("[data-live]").wait_for(state="visible")
        tab.goto(f"/search?q={word}")
        found = tab.get_by_role("link", name="Show version 0 of leaf")
        until(tab, lambda: found.count() == 1)
        assert "; ".join(too_wide(tab)) == ""
        found.click()
        tab.frame_locator("iframe").get_by_text(f"The {word} lived").wait_for()


@in_a_look
def test_somebody_submits_a_job_and_reads_its_result(visit: Visit, daemon: Daemon, look: Any) -> None:
    with visit(**look) as tab:
        tab.goto("/jobs")
        question = '<query package="downloader" name="story"><download maxlevel="0"><url>{}</url></download></query>'
        tab.get_by_text("Submit a query").click()
        tab.locator("textarea[name=xml]").fill(question.format(daemon.page("A page for a job.", "job")))
        tab.locator("main form.stack button").last.click()
        tab.get_by_role("heading", name="story").wait_for()
        until(tab, lambda: tab.locator(".badge.done").count() == 1)
        tab.locator("summary#result").click()
        expect(tab.locator("pre[aria-labelledby=result]")).to_contain_text("<result")
        assert "; ".join(too_wide(tab)) == ""


@in_a_look
def test_an_owner_creates_a_user_and_the_user_a_token_that_works(
    visit: Visit, open_tab: Visit, daemon: Daemon, look: Any
) -> None:
    name = f"eva{next(daemon.numbers)}"
    with visit(**look) as tab:
        tab.goto("/accounts")
        tab.get_by_text("Add with a password").click()
        form = tab.locator("form[action='/accounts/users']")
        form.get_by_label("Name").fill(name)
        form.get_by_label("Password").fill(PASSWORD)
        form.get_by_role("button").click()
        tab.get_by_role("status").get_by_text("Account created").wait_for()
        assert "; ".join(too_wide(tab)) == ""
    with open_tab(daemon.web, **look) as tab:
        tab.goto("/login?next=/accounts")
        tab.get_by_label("Name").fill(name)
        tab.get_by_label("Password").fill(PASSWORD)
        tab.locator("main").get_by_role("button", name="Sign in").click()
        tab.get_by_label("Name of the token").fill(f"token-{name}")
        tab.get_by_label("What it may do").select_option("write")
        tab.get_by_role("button", name="Create token").click()
        token = tab.locator("code.secret").inner_text()
        assert daemon.web.get("/api/v1/tokens", Authorization=f"Bearer {token}").status == 200
        tab.get_by_role("group").get_by_text("Revoke").first.click()
        tab.get_by_role("button", name="Revoke").click()
        tab.get_by_role("status").get_by_text("Token revoked").wait_for()
        assert daemon.web.get("/api/v1/tokens", Authorization=f"Bearer {token}").status == 401


@in_a_look
def test_removing_watches_asks_first_and_can_be_thought_better_of(visit: Visit, daemon: Daemon, look: Any) -> None:
    with visit(**look) as tab:
        url = daemon.page("Something to watch for a while.", "brief")
        line = watch(tab, url)
        line.get_by_role("checkbox").check()
        tab.get_by_role("button", name="Remove …").click()
        tab.get_by_role("heading", name="Remove 1 watch?").wait_for()
        assert "; ".join(too_wide(tab)) == ""
        tab.get_by_role("link", name="Keep them").click()
        line.wait_for()
        line.get_by_role("checkbox").check()
        tab.get_by_role("button", name="Remove …").click()
        tab.locator("main").get_by_role("button", name="Remove", exact=True).click()
        tab.get_by_role("status").get_by_text("Watches removed").wait_for()
        tab.wait_for_load_state()
        assert line.count() == 0


def test_somebody_chooses_czech_in_the_footer_and_it_stays(visit: Visit) -> None:
    with visit(viewport=WIDE, locale="en-GB") as tab:
        tab.goto("/watches")
        tab.get_by_role("link", name="Čeština").click()
        tab.get_by_role("heading", name="Hlídání", exact=True).wait_for()
        assert tab.locator("html").get_attribute("lang") == "cs"
        tab.goto("/crawl")
        tab.get_by_role("heading", name="Stálé procházení", exact=True).wait_for()
        tab.get_by_role("link", name="English").click()
        tab.get_by_role("heading", name="Continuous crawl", exact=True).wait_for()


# The archive of a site: crawled, browsed as of two dates, taken along, and looked after. In both languages: what people
# press is found by what it does, and what they read by what stands in the page.

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000002000000020802000000fdd49a730000001049444154789c6338212707440c"
    "100a001f260411a28f22af0000000049454e44ae426082"
)


def crawl_form(tab: Any) -> Any:
    tab.goto("/jobs")
    return tab.locator("form[action='/jobs/start']", has=tab.locator("input[name=kind][value=crawl]"))


def wait_for_run(tab: Any, state: str) -> None:
    """On the page of a run, which loads itself again when its state is another."""
    tab.locator(f"[data-run-state] .badge.{state}").wait_for()


def press(tab: Any, action: str) -> None:
    tab.locator(f"form[action$='/{action}'] button").first.click()


def site_of(daemon: Daemon, name: str, extra: str) -> str:
    """A little site with a picture under a name; `extra` is a page that the home page links to beside the first."""
    daemon.site.set(f"/{name}/p.png", PICTURE, Content_Type="image/png")
    daemon.site.set(f"/{name}/one.html", document("First", "The first page."))
    daemon.site.set(f"/{name}/{extra}.html", document(extra, f"The page {extra}."))
    links = f"<img src=p.png alt=Boat><a href=one.html>First</a> <a href={extra}.html>{extra}</a>"
    return daemon.site.set(f"/{name}/", document(name, links))


@in_every_look_and_language
def test_somebody_crawls_a_site_pauses_it_browses_it_as_of_two_dates_and_takes_it_along(
    visit: Visit, open_tab: Visit, daemon: Daemon, scripted_site: ScriptedSite, look: Any, tmp_path: Path
) -> None:
    daemon = replace(daemon, site=scripted_site)  # whose map shows this story alone
    name = f"town{next(daemon.numbers)}"
    home, host = site_of(daemon, name, "old"), daemon.site.url("").removeprefix("http://")
    paused = threading.Event()  # answers linger until then, so that nobody has to hurry
    scripted_site.before = lambda: len(scripted_site.log) > 2 and paused.wait(5)
    with visit(accept_downloads=True, **look) as tab:
        form = crawl_form(tab)
        form.locator("[name=site]").fill(home)
        form.locator("[name=scope]").select_option("prefix")
        form.locator("[name=delay]").select_option("5s")
        assert form.locator("[name=requisites]").is_checked()
        form.locator("button").click()
        tab.locator("[data-run-last] li").first.wait_for()  # as it happens, without loading the page again
        press(tab, "pause")
        wait_for_run(tab, "paused")
        paused.set()
        assert "; ".join(too_wide(tab)) == ""
        asked = [path for _, path, _ in daemon.site.log if path.startswith(f"/{name}/")]
        assert 1 <= len(asked) < 4
        press(tab, "resume")
        wait_for_run(tab, "done")
        asked = [path for _, path, _ in daemon.site.log if path.startswith(f"/{name}/")]
        assert sorted(asked) == sorted(f"/{name}/{page}" for page in ("", "old.html", "one.html", "p.png"))
        before = rfc3339(utc_now())
        site_of(daemon, name, "new")
        press(tab, "refresh")
        wait_for_run(tab, "done")
        for address, there, gone in ((f"?at={before}", "old", "new"), ("", "new", "")):
            tab.goto(f"/site/{host}{address}")
            page = tab.locator(f".tree a[href$='/{name}/{there}.html']")
            until(tab, page.is_visible)
            assert not gone or tab.locator(f".tree a[href$='/{name}/{gone}.html']").count() == 0
            assert "; ".join(too_wide(tab)) == ""
        tab.goto(f"/site/{host}?view=changes&since={before}")
        row = tab.locator("tbody tr", has=tab.locator(f"a[href$='/{name}/new.html']"))
        until(tab, lambda: row.locator(".badge.appeared").count() == 1)
        assert "; ".join(too_wide(tab)) == ""
        file = taken_along(tab, host, tmp_path)
    opened_elsewhere(open_tab, look, file, home, tmp_path)


def taken_along(tab: Any, host: str, folder: Path) -> Path:
    """The site as a WACZ file, made by a run and downloaded from its page."""
    tab.goto("/jobs")
    form = tab.locator("form[action='/jobs/start']", has=tab.locator("input[name=kind][value=export]"))
    form.locator("[name=site]").fill(host)
    form.locator("[name=format]").select_option("wacz")
    form.locator("button").click()
    wait_for_run(tab, "done")
    assert "; ".join(too_wide(tab)) == ""
    with tab.expect_download() as download:
        tab.locator("a[download][href*='/files/']").click()
    file = folder / "site.wacz"
    download.value.save_as(file)
    return file


def opened_elsewhere(open_tab: Visit, look: Any, file: Path, home: str, folder: Path) -> None:
    """Another archive, which has never asked the site, shows it with its picture."""
    with Archive(folder / "elsewhere") as other:
        import_archives(Context(other, rights=7, origin="cli"), ImportCommand(sources=(str(file),)))
        with running(other) as web, open_tab(web, **look) as tab:
            tab.goto(f"/url/{home}")
            tab.locator(".actions a.button").first.click()
            picture = tab.frame_locator("iframe").locator("img[alt=Boat]")
            picture.wait_for()
            assert picture.evaluate("(image) => image.decode().then(() => image.naturalWidth)") == 2


@in_every_look_and_language
def test_somebody_audits_a_site_finds_its_broken_links_takes_the_table_and_checks_one_again(
    visit: Visit, daemon: Daemon, look: Any, tmp_path: Path
) -> None:
    name = f"shop{next(daemon.numbers)}"
    host, gone = daemon.site.url("").removeprefix("http://"), f"/{name}/gone.html"
    daemon.site.set(f"/{name}/bare.html", b"<html lang=en><p>A page without a title.</p></html>")
    home = daemon.site.set(f"/{name}/", document(name, "<a href=gone.html>Lost</a>\n<a href=bare.html>Bare</a>"))
    with visit(accept_downloads=True, **look) as tab:
        form = crawl_form(tab)
        form.locator("[name=site]").fill(home)
        form.locator("[name=scope]").select_option("prefix")
        form.locator("button").click()
        wait_for_run(tab, "done")
        tab.locator(f"[aria-labelledby=failures] a[href$='{gone}']").wait_for()
        tab.goto("/jobs")
        tab.locator("form", has=tab.locator("button[value=audit]")).locator("[name=site]").fill(host)
        tab.locator("button[value=audit]").click()
        wait_for_run(tab, "done")
        tab.locator(".table-tools input[type=search]").first.fill(f"{name}/bare")
        tab.locator(".table-tools form button").first.click()
        until(tab, lambda: tab.locator(f"tbody a[href$='/{name}/bare.html']").count() == 1)
        assert "; ".join(too_wide(tab)) == ""
        tab.goto(f"/site/{host}?view=audit&kind=title-missing")
        until(tab, lambda: tab.locator(f"tbody a[href$='/{name}/bare.html']").count() == 1)
        assert "; ".join(too_wide(tab)) == ""
        tab.goto(f"/site/{host}?view=broken")
        until(tab, lambda: tab.locator(f"tbody a[href$='{gone}']").count() == 1)
        tab.locator("[name=filter]").fill(name)
        tab.locator(".table-tools form button").click()
        row = tab.locator("tbody tr")
        expect(row).to_have_count(1)
        expect(row.locator("code.line")).to_contain_text("gone.html")
        assert "; ".join(too_wide(tab)) == ""
        if (folded := tab.locator(".exports > summary")).is_visible():
            folded.click()
        with tab.expect_download() as download:
            tab.locator(".exports a[href*='as=csv']").click()
        download.value.save_as(tmp_path / "broken.csv")
        with (tmp_path / "broken.csv").open() as file:
            (found,) = csv.DictReader(file)
        assert (found["target"], found["status"], found["line"]) == (daemon.site.url(gone), "404", "1")
        daemon.site.set(gone, document("Back", "It is here again."))
        row.locator("form[action='/save'] button").click()
        tab.locator(".note.good .badge", has_text="200").wait_for()
        assert f"filter={name}" in tab.url
        until(tab, lambda: tab.locator(f"tbody a[href$='{gone}']").count() == 0)


def test_a_file_dropped_on_the_page_is_taken_in_as_a_run(visit: Visit, daemon: Daemon, tmp_path: Path) -> None:
    saved = f"https://saved{next(daemon.numbers)}.example/"
    with Archive(tmp_path / "from") as archive:
        archive.put(saved, document("Saved", "It was saved elsewhere."))
        found = export(Context(archive, rights=7, origin="cli"), ExportQuery(kind="warc"))
        (tmp_path / "one.warc.gz").write_bytes(b"".join(found.bytes()))
    with visit(viewport=WIDE) as tab:
        tab.goto("/jobs")
        tab.locator("[data-drop] [type=file]").set_input_files(tmp_path / "one.warc.gz")
        tab.get_by_role("heading", name="Import of one.warc.gz").wait_for()
        wait_for_run(tab, "done")
        assert tab.locator(".figures div", has_text="Imported").locator("dd").inner_text() == "1"
        tab.goto(f"/url/{saved}")
        tab.get_by_role("heading", name="Saved").wait_for()
