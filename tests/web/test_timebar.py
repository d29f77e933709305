"""The time bar: a moment that is chosen once is kept through sites, pages, comparisons and searches."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from served_archive import Answer, WebClient, at, running

from letopis.archive import Archive
from letopis.model import rfc3339, stamp14
from letopis_demo import World


def choose(pages: WebClient, at: str, back: str = "/") -> tuple[str, Answer]:
    """The cookie that keeps a moment, and the answer that set it."""
    answer = pages.get(f"/as-of?at={at}&back={back}")
    return answer.headers["set-cookie"].partition(";")[0], answer


def test_a_moment_that_was_chosen_holds_on_every_page_until_it_is_given_up(
    pages: WebClient, remembered: Archive, little_world: World
) -> None:
    url, host = little_world.url(0, 0), little_world.hosts[0]
    moment = little_world.start + timedelta(days=2, hours=12)
    cookie, answer = choose(pages, rfc3339(moment), f"/site/{host}")
    assert (answer.status, answer.headers["location"]) == (303, f"/site/{host}")
    then = remembered.get(url, at=moment)
    for path in (f"/site/{host}", f"/url/{url}", f"/compare/{url}", f"/web/*/{url}", "/search?q=a"):
        shown = pages.get(path, Cookie=cookie).text
        assert f'name="at" value="{moment:%Y-%m-%dT%H:%M}"' in shown, path
        assert "Back to now" in shown
        assert "Back to now" not in pages.get(path).text
    assert f'href="/web/{stamp14(then.time)}/{url}"' in pages.get(f"/url/{url}", Cookie=cookie).text
    assert f'<option value="{rfc3339(then.time)}" selected' in pages.get(f"/compare/{url}", Cookie=cookie).text
    given_up = pages.get(f"/as-of?back=/url/{url}")
    assert '=""; expires' in given_up.headers["set-cookie"]
    assert given_up.headers["location"] == f"/url/{url}"


def test_an_address_that_names_a_moment_wins_over_the_one_that_is_kept(pages: WebClient, little_world: World) -> None:
    host = little_world.hosts[0]
    cookie, _ = choose(pages, rfc3339(little_world.start + timedelta(days=2)))
    named = rfc3339(little_world.start + timedelta(days=4))
    shown = pages.get(f"/site/{host}?at={named}", Cookie=cookie).text
    assert f'name="at" value="{named[:16]}"' in shown


def test_the_bar_leads_to_the_version_before_and_the_one_behind(
    pages: WebClient, remembered: Archive, little_world: World
) -> None:
    url = max((little_world.url(0, page) for page in range(10)), key=lambda one: len(list(remembered.versions(one))))
    times = [version.time for version in remembered.versions(url)]
    assert len(times) > 2
    cookie, _ = choose(pages, rfc3339(times[1]))
    shown = pages.get(f"/url/{url}", Cookie=cookie).text
    earlier, later = (re.search(rf'rel="{rel} nofollow" href="([^"]+)"', shown) for rel in ("prev", "next"))
    assert earlier
    assert later
    assert rfc3339(times[0]).replace(":", "%3A") in earlier[1]
    assert rfc3339(times[2]).replace(":", "%3A") in later[1]
    assert 'class="density"' in shown


def test_a_day_means_its_end_and_nonsense_is_refused_on_a_page(pages: WebClient) -> None:
    cookie, _ = choose(pages, "2026-03-01")
    assert "2026-03-01T23:59:59" in cookie
    wrong = pages.get("/as-of?at=soon")
    assert wrong.status == 400
    assert "is not a time" in wrong.text


def test_nobody_is_led_elsewhere_and_a_damaged_cookie_is_now(pages: WebClient, little_world: World) -> None:
    assert choose(pages, "2026-03-01", "//evil.example/")[1].headers["location"] == "/"
    shown = pages.get(f"/url/{little_world.url(0, 0)}", Cookie="letopis-as-of=rubbish")
    assert shown.status == 200


def test_changed_pages_of_a_site_lead_to_their_comparison(pages: WebClient, little_world: World) -> None:
    since = little_world.start + timedelta(days=3)
    shown = pages.get(f"/site/{little_world.hosts[0]}?view=changes&since={since:%Y-%m-%d}").text
    assert re.search(r'href="/compare/[^"]+\?from=[^"]+&amp;to=[^"]+"><span class="badge changed"', shown)


def test_the_calendar_names_the_days_of_the_week_and_leads_to_the_list_of_a_day(
    pages: WebClient, little_world: World
) -> None:
    shown = pages.get(f"/web/*/{little_world.url(0, 0)}").text
    assert shown.count("<li>Mo</li>") == shown.count('class="month"')
    days = re.findall(r'<li id="d(\d{4}-\d\d-\d\d)">', shown)
    assert days
    for day in re.findall(r'href="#d([^"]+)"', shown):
        assert day in days


def test_the_calendar_leads_to_its_years_and_compares_two_days(pages: WebClient, little_world: World) -> None:
    url = little_world.url(0, 0)
    shown = pages.get(f"/web/*/{url}").text
    assert re.findall(r'href="#y(\d{4})"', shown) == re.findall(r'<h2 id="y(\d{4})"', shown)
    first, last = re.findall(r'type="date" name="(?:from|to)" .*? value="([^"]+)"', shown)
    compared = pages.get(f"/compare/{url}?from={first}&to={last}").text
    days = [chosen[:10] for chosen in re.findall(r'<option value="([^"]+)" selected', compared)]
    assert days == [first, last]


def test_a_site_that_is_known_for_minutes_has_marks_and_a_way_back(tmp_path: Path) -> None:
    with Archive(tmp_path / "archive", clock=lambda: at(30)) as archive:
        for minute in (1, 9, 20):
            archive.put("http://young.example/", b"<title>Young</title><p>Version %d of it" % minute, at(minute))
        with running(archive) as web:
            shown = web.get("/site/young.example").text
            assert len(re.findall(r"/as-of\?at=2024-01-01T12%3A", shown)) >= 3
            earlier = re.search(r'rel="prev nofollow" href="([^"]+)"', shown)
            assert earlier
            cookie = web.get(earlier[1].replace("&amp;", "&")).headers["set-cookie"].partition(";")[0]
            assert 'name="at" value="2024-01-01T12:09' in web.get("/site/young.example", Cookie=cookie).text
