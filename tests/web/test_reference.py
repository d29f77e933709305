"""The reference of the HTTP interface: a page for every operation, whose examples work."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from served_archive import WebClient, fill, running

from letopis.api.access import API
from letopis.archive import Archive
from letopis.archive.accounts import accounts_of
from letopis.operations.operation import all_operations

BROWSER = {"Accept": "text/html"}
ROUTED = [name for name, one in all_operations().items() if one.route]


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebClient]:
    with Archive(tmp_path_factory.mktemp("reference") / "archive") as archive:
        fill(archive)
        accounts_of(archive).add("olga", "owner", "a long password", 0)
        accounts_of(archive).create_token("all", None, "write", 0)
        with running(archive) as client:
            yield client


def test_the_list_has_every_address_and_finds_some(web: WebClient) -> None:
    page = web.get("/docs", **BROWSER).text
    for name in ROUTED:
        assert f'href="/docs/{name}"' in page
    assert "/web/{timestamp}/{url}" in page
    found = web.get("/docs?q=broken+links", **BROWSER).text
    assert 'href="/docs/broken"' in found
    assert 'href="/docs/add_user"' not in found
    assert "No matches" in web.get("/docs?q=zzzz", **BROWSER).text


def test_readers_of_another_language_are_told_once_that_descriptions_are_english(web: WebClient) -> None:
    told = "Popisy jsou v angličtině."
    assert web.get("/docs", Accept_Language="cs", **BROWSER).text.count(told) == 1
    assert "descriptions are in English" not in web.get("/docs", **BROWSER).text


@pytest.mark.parametrize("name", ROUTED)
def test_a_page_names_every_parameter_and_every_field_of_the_answer(web: WebClient, name: str) -> None:
    operation = all_operations()[name]
    assert operation.route
    answer = web.get(f"/docs/{name}", **BROWSER)
    assert answer.status == 200
    text = unescape(answer.text)
    assert API + operation.route.path in text
    for one in operation.parameters_in("http"):
        assert f"<code>{one.alias}</code>" in text
        assert one.declared.help in text
    assert "letopis.operations" not in text
    compile(example(answer.text, 1), name, "exec")


def example(page: str, number: int) -> str:
    """The curl line, or the Python text, of a page."""
    return unescape(
        re.findall(r"<pre class=\"card example\" tabindex=\"0\"><code>(.*?)</code></pre>", page, re.DOTALL)[number]
    )


@pytest.mark.parametrize("name", ["stats", "broken", "search", "list_projects", "settings", "watch_list"])
def test_the_python_of_a_page_works(web: WebClient, name: str) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(example(web.get(f"/docs/{name}", **BROWSER).text, 1), {})
    assert out.getvalue().startswith("{")


def test_what_changes_something_is_tried_by_whoever_may(web: WebClient) -> None:
    assert "data-try" not in web.get("/docs/add_user", **BROWSER).text
    assert "data-try" in web.get("/docs/stats", **BROWSER).text
    body = urlencode({"name": "olga", "password": "a long password"})
    cookie = web.ask("POST", "/login", body, Content_Type="application/x-www-form-urlencoded").headers["set-cookie"]
    page = web.get("/docs/add_user", Cookie=cookie.partition(";")[0], **BROWSER).text
    csrf = re.search(r'data-csrf="([^"]+)"', page)
    assert csrf
    head = {"Cookie": cookie.partition(";")[0], "X-CSRF-Token": csrf[1]}
    assert web.post("/api/v1/users", {"name": "eva", "role": "guest"}, **head).status == 201


def test_what_no_operation_is_called_is_a_page_that_says_so(web: WebClient) -> None:
    answer = web.get("/docs/nothing", **BROWSER)
    assert (answer.status, "The HTTP interface has no operation nothing." in answer.text) == (404, True)


def test_a_file_of_the_reference_needs_nothing_from_elsewhere() -> None:
    text = (Path(__file__).parents[2] / "src/letopis/web/static/try.js").read_text()
    assert "://" not in text
