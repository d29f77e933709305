"""What people come for, walked through in a browser over the daemon itself: crawl, watches, jobs and pages at work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from looks import WIDE, in_every_look
from playwright.sync_api import Error
from scripted_site import ScriptedSite
from served_archive import WebClient

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts

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
def daemon(tmp_path_factory: pytest.TempPathFactory, session_of: Visit) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("daemon")
    (folder / "letopis.toml").write_text(SETTINGS)
    with Archive(folder / "archive") as archive:
        Accounts(archive.catalog.database).add("olga", "owner", PASSWORD, 0)
    site = ScriptedSite()
    command = [sys.executable, "-m", "letopis.cli", "--archive", str(folder / "archive")]
    command += ["--config", str(folder / "letopis.toml"), "run", "--port", "0"]
    with (folder / "log").open("w") as log, _started(command, folder, log) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith("listening on "), (folder / "log").read_text()
        web = WebClient(said.split()[-1])
        yield Daemon(web, site, session_of(web, "olga"))
        process.terminate()
        process.wait(60)
    site.close()


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
    """What does not fit into the window; boxes that scroll by themselves do."""
    found: list[str] = tab.evaluate(TOO_WIDE)
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
    tab.get_by_label("Addresses, one a line").fill(url)
    tab.get_by_label("How often").fill("1h")
    tab.get_by_role("button", name="Watch", exact=True).click()
    tab.get_by_role("status").get_by_text("Watch saved").wait_for()
    tab.goto("/watches")
    line = tab.locator(".watch-list li", has=tab.locator(f'a[href="/url/{url}"]'))
    until(tab, lambda: line.locator(".badge.up").count() == 1)
    return line


def check(tab: Any, line: Any) -> None:
    line.get_by_role("checkbox").check()
    tab.get_by_role("button", name="Check now").click()


def changed(tab: Any, daemon: Daemon, first: str, second: str) -> tuple[str, Any]:
    """A watched page that says something else after a while."""
    url = daemon.page(first, "notice")
    line = watch(tab, url)
    daemon.site.set(url.removeprefix(daemon.site.url("")), document("notice", second))
    check(tab, line)
    until(tab, lambda: second in line.inner_text())
    return url, line


@in_every_look
def test_somebody_adds_a_watch_and_sees_a_change_unread_until_they_look(
    visit: Visit, daemon: Daemon, look: Any
) -> None:
    with visit(**look) as tab:
        number = next(daemon.numbers)
        first, second = f"The museum on street {number} opens at nine.", f"Hall {number} is closed for repairs."
        _, line = changed(tab, daemon, first, second)
        assert line.get_by_text("Unread").count() == 1
        assert "; ".join(too_wide(tab)) == ""
        line.locator(".state-of a").click()
        tab.get_by_role("heading", name="What changed").wait_for()
        assert "repairs" in " ".join(tab.locator(".words ins").all_inner_texts())
        tab.goto("/watches")
        assert line.get_by_text("Unread").count() == 0


SHOP = """<html lang=en><title>Lamps</title><h1>Lamps of the week</h1>
<ul><li><b>Desk lamp</b> <span class=cost>25 EUR</span></li>
<li><b>Floor lamp</b> <span class=cost>{price} EUR</span></li></ul>
<p>Open every day from nine to six, and on the first Saturday of the month.</p></html>"""


@in_every_look
def test_somebody_watches_a_price_picked_on_the_page_and_is_told_when_it_falls(
    visit: Visit, daemon: Daemon, look: Any
) -> None:
    number = next(daemon.numbers)
    path, hook = f"/shop{number}.html", daemon.site.set(f"/hook{number}", b"taken")
    url = daemon.site.set(path, SHOP.format(price=40).encode())
    with visit(**look) as tab:
        tab.goto("/watches")
        tab.get_by_label("Addresses, one a line").fill(url)
        tab.get_by_role("button", name="Watch", exact=True).click()
        tab.get_by_role("status").get_by_text("Watch saved").wait_for()
        until(tab, lambda: tab.get_by_role("link", name="Pick it on the page").count() == 1)
        assert "; ".join(too_wide(tab)) == ""
        tab.get_by_role("link", name="Pick it on the page").click()
        page = tab.frame_locator("[data-page]")
        price = page.locator(".cost").nth(1)
        price.wait_for()
        box = price.bounding_box()
        tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        tab.locator("#picked[value], #picked").wait_for()
        assert tab.locator("#picked").input_value().startswith("body > ul > li:nth-of-type(2)")
        assert "; ".join(too_wide(tab)) == ""
        tab.get_by_role("button", name="Use it").click()
        tab.get_by_text("This is not saved yet.").wait_for()
        tab.get_by_label("its price").check()
        tab.get_by_text("Only some changes").click()
        tab.get_by_label("Only if the new number is below").fill("35")
        tab.get_by_label("Notify (addresses of notification services, one a line)").fill(hook)
        tab.get_by_role("button", name="Preview").click()
        assert tab.locator("pre.seen").inner_text() == "40 EUR"
        tab.get_by_role("button", name="Save").click()
        tab.get_by_role("status").get_by_text("Watch saved.").wait_for()
        tab.get_by_role("button", name="Send a test").click()
        tab.get_by_role("status").get_by_text("The test notification was delivered.").wait_for()
        daemon.site.set(path, SHOP.format(price=30).encode())
        tab.get_by_role("button", name="Check now").click()
        until(tab, lambda: tab.locator("[aria-labelledby=sent] .badge.done").count() == 1)
        assert tab.get_by_role("heading", level=1).get_by_text("Unread").count() == 1
        assert "; ".join(too_wide(tab)) == ""
        tab.locator("[aria-labelledby=alerts] a").first.click()
        tab.get_by_role("heading", name="What changed").wait_for()
        assert tab.locator(".words ins").inner_text().strip() in ("30", "30 EUR")
        tab.go_back()
        tab.get_by_role("button", name="Mark as read").click()
        tab.get_by_role("status").get_by_text("Everything is marked as read.").wait_for()
        assert tab.get_by_role("heading", level=1).get_by_text("Unread").count() == 0
    told = [json.loads(body) for path, body in daemon.site.posts if path == f"/hook{number}"]
    assert [one["kind"] for one in told] == ["test", "changed"]


@in_every_look
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
            ("As it looks", "iframe.framed"),
            ("Source", ".source .came"),
        ):
            tab.get_by_role("link", name=name, exact=True).click()
            assert tab.locator(mark).count() >= 1
            assert "; ".join(too_wide(tab)) == "", name


@in_every_look
def test_somebody_starts_a_crawl_watches_it_and_searches_what_it_found(visit: Visit, daemon: Daemon, look: Any) -> None:
    word = f"quagga{next(daemon.numbers)}"
    leaf = daemon.page(f"The {word} lived on these plains.", "leaf")
    home = daemon.site.set(f"/{word}/", f"<title>Home</title><a href='{leaf}'>leaf</a>".encode())
    with visit(**look) as tab:
        tab.goto("/crawl")
        tab.get_by_label("Addresses to start from").fill(home)
        tab.get_by_role("button", name="Crawl these sites").click()
        tab.get_by_role("status").get_by_text("1 page more waits").wait_for()
        assert "; ".join(too_wide(tab)) == ""
        tab.locator("[data-live]").wait_for(state="visible", timeout=30_000)
        tab.goto(f"/search?q={word}")
        until(tab, lambda: tab.locator(".hits li").count() >= 1)
        assert "; ".join(too_wide(tab)) == ""
        tab.get_by_role("link", name="Show version 0 of leaf").click()
        tab.frame_locator("iframe").get_by_text(f"The {word} lived").wait_for()


@in_every_look
def test_somebody_submits_a_job_and_reads_its_result(visit: Visit, daemon: Daemon, look: Any) -> None:
    with visit(**look) as tab:
        tab.goto("/jobs")
        question = '<query package="downloader" name="story"><download maxlevel="0"><url>{}</url></download></query>'
        tab.get_by_text("Submit a query").click()
        tab.locator("textarea[name=xml]").fill(question.format(daemon.page("A page for a job.", "job")))
        tab.locator("main form.stack button").last.click()
        tab.get_by_role("heading", name="story").wait_for()
        until(tab, lambda: tab.locator(".badge.done").count() == 1)
        assert "<result" in tab.locator("pre[aria-labelledby=result]").inner_text()
        assert "; ".join(too_wide(tab)) == ""


@in_every_look
def test_an_owner_creates_a_user_and_the_user_a_token_that_works(
    visit: Visit, open_tab: Visit, daemon: Daemon, look: Any
) -> None:
    name = f"eva{next(daemon.numbers)}"
    with visit(**look) as tab:
        tab.goto("/accounts")
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
        tab.get_by_role("button", name="Create the token").click()
        token = tab.locator("code.secret").inner_text()
        assert daemon.web.get("/api/v1/tokens", Authorization=f"Bearer {token}").status == 200
        tab.get_by_role("group").get_by_text("Revoke").first.click()
        tab.get_by_role("button", name="Revoke").click()
        tab.get_by_role("status").get_by_text("Token revoked").wait_for()
        assert daemon.web.get("/api/v1/tokens", Authorization=f"Bearer {token}").status == 401


@in_every_look
def test_removing_watches_asks_first_and_can_be_thought_better_of(visit: Visit, daemon: Daemon, look: Any) -> None:
    with visit(**look) as tab:
        url = daemon.page("Something to watch for a while.", "brief")
        line = watch(tab, url)
        line.get_by_role("checkbox").check()
        tab.get_by_role("button", name="Remove …").click()
        tab.get_by_role("heading", name="Remove 1 watch?").wait_for()
        assert "; ".join(too_wide(tab)) == ""
        tab.get_by_role("link", name="Keep them").click()
        assert line.count() == 1
        line.get_by_role("checkbox").check()
        tab.get_by_role("button", name="Remove …").click()
        tab.locator("main").get_by_role("button", name="Remove", exact=True).click()
        tab.get_by_role("status").get_by_text("Watches removed").wait_for()
        assert line.count() == 0


def test_somebody_chooses_czech_in_the_footer_and_it_stays(visit: Visit) -> None:
    with visit(viewport=WIDE, locale="en-GB") as tab:
        tab.goto("/watches")
        tab.get_by_role("link", name="Čeština").click()
        tab.get_by_role("heading", name="Hlídání", exact=True).wait_for()
        assert tab.locator("html").get_attribute("lang") == "cs"
        tab.goto("/crawl")
        tab.get_by_role("heading", name="Procházení", exact=True).wait_for()
        tab.get_by_role("link", name="English").click()
        tab.get_by_role("heading", name="Crawl", exact=True).wait_for()
