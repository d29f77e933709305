"""A real browser over a real archive. Without Chromium these tests are skipped, and say so."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from refusing_proxy import refusing_proxy
from remembered_world import answered_job, remember, saved_search
from served_archive import WebClient, running

from letopis.archive import Archive
from letopis.catalog.accounts import Accounts
from letopis.errors import MissingExtra
from letopis.fetch.browser import find_browser
from letopis.index.word_index import WordIndex
from letopis_demo import World

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-sync", "--no-first-run"]
PASSWORD = "a long password"
JUDGES = Path(__file__).parents[2] / ".bench" / "web" / "node_modules"
Visit = Callable[..., AbstractContextManager[Any]]
PATIENCE = 300_000
"""Milliseconds: playwright itself gives up after 30 seconds, which pass quickly on a busy machine."""


class PatientBrowser:
    """A browser all of whose tabs wait as long as it takes on a busy machine."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self.close = browser.close

    def new_context(self, **options: Any) -> Any:
        context = self._browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        return context

    def new_page(self, **options: Any) -> Any:
        page = self._browser.new_page(**options)
        page.context.set_default_timeout(PATIENCE)
        return page


@pytest.fixture(scope="session")
def browsed_world() -> World:
    return World(seed=4, hosts=2, pages_per_host=10, span=timedelta(days=4))


@pytest.fixture(scope="session")
def browsed_archive(tmp_path_factory: pytest.TempPathFactory, browsed_world: World) -> Iterator[Archive]:
    end = browsed_world.start + timedelta(days=4)
    with Archive(tmp_path_factory.mktemp("browser") / "archive", clock=lambda: end) as archive:
        saved_search(archive, "olga", browsed_world.start)
        remember(archive, browsed_world, days=4)
        Accounts(archive.catalog.database).add("olga", "owner", PASSWORD, 0)
        WordIndex(archive).catch_up()
        yield archive


@pytest.fixture(scope="session")
def browsed(browsed_archive: Archive) -> Iterator[WebClient]:
    with running(browsed_archive) as client:
        yield client


@pytest.fixture(scope="session")
def job_page(browsed_archive: Archive, browsed_world: World) -> str:
    """The address of a job that has its answer."""
    return f"/jobs/{answered_job(browsed_archive, browsed_world.hosts[0])}"


@pytest.fixture(scope="session")
def signed_in(browsed: WebClient) -> dict[str, str]:
    """The cookie of an owner, as a browser wants it."""
    return _session(browsed, "olga")


@pytest.fixture(scope="session")
def session_of() -> Callable[[WebClient, str], dict[str, str]]:
    """Signs somebody in and answers their cookie."""
    return _session


def _session(web: WebClient, name: str) -> dict[str, str]:
    fields = urlencode({"name": name, "password": PASSWORD})
    answer = web.ask("POST", "/login", fields, Content_Type="application/x-www-form-urlencoded")
    assert answer.status == 303
    cookie, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
    return {"name": cookie, "value": value, "url": web.address}


@pytest.fixture(scope="module")
def launch() -> Iterator[Callable[..., Any]]:
    """Starts browsers. Ends with the module: while it lives, its event loop runs, and no asynchronous test could."""
    playwright = pytest.importorskip("playwright.sync_api", reason="NO PLAYWRIGHT: browser tests did not run")
    try:
        program = find_browser()
    except MissingExtra:
        pytest.skip("NO CHROMIUM on this machine: browser tests did not run; 'make browser' installs it")
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as play:
        yield lambda *flags, **options: PatientBrowser(
            play.chromium.launch(executable_path=program, args=[*FLAGS, *flags], timeout=PATIENCE, **options)
        )


@pytest.fixture(scope="module")
def chromium(launch: Callable[..., Any]) -> Iterator[Any]:
    browser = launch()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def logged_browser(launch: Callable[..., Any]) -> Iterator[tuple[Any, list[str]]]:
    """One behind a proxy that answers nothing: all that leaves the machine would stand in the list."""
    with refusing_proxy() as (port, asked):
        proxy = {"server": f"http://127.0.0.1:{port}", "bypass": "127.0.0.1,*.localhost"}
        browser = launch("--autoplay-policy=no-user-gesture-required", proxy=proxy)
        yield browser, asked
        browser.close()


@pytest.fixture
def open_tab(chromium: Any) -> Visit:
    """Opens a tab on a service that fails on console errors and on requests to anybody else."""

    @contextmanager
    def opened(web: WebClient, cookies: tuple[dict[str, str], ...] = (), **options: Any) -> Iterator[Any]:
        context = chromium.new_context(base_url=web.address, **options)
        context.add_cookies(list(cookies))
        wrong: list[str] = []
        tab = context.new_page()
        tab.on("console", lambda said: wrong.append(f"{said.text} {said.location['url']}") if _is_wrong(said) else None)
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("request", lambda asked: wrong.append(asked.url) if not _ours(asked.url, web) else None)
        try:
            yield tab
            assert wrong == []
        finally:
            context.close()

    return opened


def _is_wrong(said: Any) -> bool:
    """Errors of our own pages; an archived page may lack a picture that nobody captured."""
    return said.type in ("error", "warning") and "/web/" not in said.location["url"]


def _ours(url: str, web: WebClient) -> bool:
    replayed = f".{urlsplit(url).hostname}".endswith(".letopis.localhost")
    return replayed or url.startswith((web.address + "/", "data:", "blob:"))


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    found = JUDGES / "axe-core" / "axe.min.js"
    if not found.is_file():
        pytest.skip("NO AXE-CORE: accessibility was not judged; 'make browser' installs it")
    return found.read_text("utf-8")


@pytest.fixture(scope="session")
def vnu() -> list[str]:
    """The command of the HTML checker."""
    found, java = JUDGES / "vnu-jar" / "build" / "dist" / "vnu.jar", shutil.which("java")
    if not found.is_file() or java is None:
        pytest.skip("NO VNU: pages were not validated; 'make browser' installs it, Java must be there")
    return [java, "-Xss4m", "-jar", str(found)]
