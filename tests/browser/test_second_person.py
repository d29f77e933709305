"""A second person is invited by a link, with a lesser role: what they see, what they may do, and what they are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from looks import LOOKS, in_every_look_and_language, wear
from scripted_site import ScriptedSite
from served_archive import WebClient, running

from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.config import FetchSettings, Settings
from letopis.web.languages import LANGUAGES

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PASSWORD = "a long password"
Visit = Callable[..., Any]
PAGE = (
    b"<html lang=en><title>Tide table</title><h1>Tide table</h1>"
    b"<p>High water at six in the morning and at half past six in the evening, every day of this week.</p></html>"
)
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive(tmp_path / "archive", settings=Settings(fetch=FetchSettings(private="always"))) as opened:
        accounts_of(opened).add("olga", "owner", PASSWORD, 0)
        yield opened


@pytest.fixture
def web(archive: Archive) -> Iterator[WebClient]:
    with running(archive) as client:
        yield client


def fits(tab: Any) -> None:
    """In no look lies anything of the page beside the window."""
    tab.wait_for_load_state()
    usual = tab.viewport_size
    for name, look in LOOKS.items():
        wear(tab, look)
        assert tab.evaluate(OVERFLOW) <= 0, (tab.url, name)
    tab.set_viewport_size(usual)


def invited(tab: Any, say: Callable[[str], str], role: str) -> str:
    """The link that an owner makes for somebody."""
    tab.goto("/accounts")
    form = tab.locator("form[action='/accounts/users/invite']")
    form.get_by_label(say("Role")).select_option(role)
    form.get_by_role("button", name=say("Create link")).click()
    link: str = tab.locator("code.secret.url").inner_text()
    fits(tab)
    return link


def watch(tab: Any, say: Callable[[str], str], url: str) -> None:
    tab.goto("/watches")
    tab.get_by_label(say("Addresses, one per line")).fill(url)
    tab.get_by_role("button", name=say("Watch"), exact=True).click()
    tab.get_by_role("status").get_by_text(say("Watching. The first check is running.")).wait_for()
    fits(tab)


def refused(tab: Any, say: Callable[[str], str], path: str) -> bool:
    """Whether a page tells that it is not allowed, and not to sign in."""
    spoken = tab.evaluate("navigator.language")
    answer = tab.request.get(path, headers={"accept": "text/html", "accept-language": spoken})
    text = answer.text()
    return answer.status == 403 and f"<h1>{say('Not allowed')}</h1>" in text and f">{say('Sign in')}<" not in text


@in_every_look_and_language
def test_somebody_is_invited_by_a_link_and_does_what_their_role_allows(
    open_tab: Visit, session_of: Visit, web: WebClient, scripted_site: ScriptedSite, look: Any
) -> None:
    say = LANGUAGES[look["locale"][:2]].text
    olgas, uwes = scripted_site.set("/olga", PAGE), scripted_site.set("/uwe", PAGE)
    with open_tab(web, (session_of(web, "olga"),), **look) as olga:
        link = invited(olga, say, "user")
        watch(olga, say, olgas)
        with open_tab(web, **look) as uwe:
            joins(uwe, say, link)
            sees_no_administration(uwe, say)
            changes_only_their_own_watch(uwe, say, uwes)
            becomes_a_guest(olga, uwe, say)


def joins(uwe: Any, say: Callable[[str], str], link: str) -> None:
    """Makes the account; the link is used up by it."""
    uwe.goto(link)
    uwe.get_by_role("heading", name=say("You are invited")).wait_for()
    fits(uwe)
    uwe.get_by_label(say("Name")).fill("uwe")
    uwe.get_by_label(say("Password")).fill(PASSWORD)
    uwe.get_by_role("button", name=say("Create account")).click()
    uwe.get_by_role("button", name=say("Sign out {name}").format(name="uwe"), include_hidden=True).wait_for(
        state="attached"
    )
    assert uwe.request.get(link, headers={"accept": "text/html"}).status == 404


def sees_no_administration(uwe: Any, say: Callable[[str], str]) -> None:
    assert uwe.locator(".menu a[href='/settings']").count() == 0
    assert uwe.locator(".menu summary", has_text=say("Admin")).count() == 0
    assert refused(uwe, say, "/welcome")
    assert refused(uwe, say, "/accounts/users")
    uwe.goto("/accounts")
    uwe.get_by_role("heading", name=say("Your own account"), level=2).wait_for()
    assert uwe.get_by_role("heading", name=say("People")).count() == 0
    assert uwe.get_by_role("heading", name=say("Audit log")).count() == 0
    fits(uwe)
    uwe.goto("/crawl")
    uwe.get_by_role("link", name=say("Crawl a site")).click()
    uwe.get_by_role("heading", name=say("New run")).wait_for()


def both_watches(tab: Any) -> bool:
    """Whether the list has the watch of the owner and one's own."""
    return all(tab.locator(f"a[href='/watches/{number}']").count() for number in (1, 2))


def changes_only_their_own_watch(uwe: Any, say: Callable[[str], str], url: str) -> None:
    watch(uwe, say, url)
    uwe.goto("/watches")
    assert both_watches(uwe)
    for number, mine in ((1, False), (2, True)):
        uwe.goto(f"/watches/{number}")
        assert (uwe.get_by_role("button", name=say("Save"), exact=True).count() == 1) == mine
        heading = "Edit this watch" if mine else "How it is watched"
        uwe.get_by_role("heading", name=say(heading)).wait_for()
        fits(uwe)


def becomes_a_guest(olga: Any, uwe: Any, say: Callable[[str], str]) -> None:
    """An owner changes the role; from then on they read."""
    olga.goto("/accounts")
    line = olga.get_by_role("row").filter(has=olga.locator("strong", has_text="uwe"))
    line.locator("summary").first.click()
    line.get_by_label(say("Role")).select_option("guest")
    line.get_by_role("button", name=say("Set the role")).click()
    olga.get_by_role("status").get_by_text(say("Role changed.")).wait_for()
    uwe.goto("/watches")
    assert both_watches(uwe)
    assert uwe.get_by_role("button", name=say("Watch"), exact=True).count() == 0
    assert uwe.get_by_role("button", name=say("Pause")).count() == 0
    uwe.goto("/accounts")
    uwe.get_by_role("heading", name=say("Your own account"), level=2).wait_for()
    assert uwe.get_by_role("heading", name=say("Tokens for programs")).count() == 0
    fits(uwe)
