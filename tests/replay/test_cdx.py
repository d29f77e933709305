"""Both CDX dialects over the same captures."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served_archive import at, running

from letopis.archive import digest_text, identify
from letopis.archive.captures import digest_texts
from letopis.catalog import captures
from letopis.exchange.cdx import EMPTY_DIGEST
from letopis.replay import cdx, cdx_query


def rows(web: Any, dialect: str = "/cdx/search/cdx", **parameters: Any) -> list[list[str]]:
    answer = web.get(f"{dialect}?{urlencode(parameters, doseq=True)}")
    assert answer.status == 200, answer.text
    return [line.split(" ") for line in answer.text.splitlines()]


def test_lists_every_http_answer_of_a_page_with_revisits_and_errors(web: Any) -> None:
    found = rows(web, url="example.org/page")
    assert [row[1] for row in found] == [f"202401011{t}00" for t in ("200", "210", "220", "230", "240")]
    assert [row[4] for row in found] == ["200", "200", "-", "200", "404"]
    assert [row[3] for row in found] == ["text/html", "text/html", "warc/revisit", "text/html", "text/html"]
    assert found[0][5] == found[1][5] == found[2][5] != found[3][5]
    assert found[0][0] == "org,example)/page"
    assert found[4][5] == identify(b"<h1>gone</h1>").text


def test_redirects_have_the_status_of_their_first_hop(web: Any) -> None:
    assert rows(web, url="example.org/moved")[0][3:6] == ["text/html", "301", EMPTY_DIGEST]
    assert rows(web, url="example.org/jump")[0][4] == "302"


@pytest.mark.parametrize(
    ("parameters", "count"),
    [
        ({"url": "example.org/page", "matchType": "prefix"}, 6),
        ({"url": "example.org/p*"}, 6),
        ({"url": "example.org", "matchType": "host"}, 10),
        ({"url": "*.example.org"}, 11),
        ({"url": "example.org", "matchType": "domain"}, 11),
        ({"url": "org", "matchType": "domain"}, 11),
        ({"url": "example.com"}, 0),
        ({"url": "example.org/page", "from": "20240101122000", "to": "2024010112"}, 3),
        ({"url": "example.org/page", "filter": "statuscode:200"}, 3),
        ({"url": "example.org/page", "filter": "!statuscode:[45]..|-"}, 3),
        ({"url": "example.org/page", "filter": ["mimetype:text/.*", "statuscode:200"]}, 3),
        ({"url": "example.org/page", "filter": "statuscode:20"}, 0),
        ({"url": "example.org/page", "collapse": "digest"}, 3),
        ({"url": "example.org/page", "collapse": "timestamp:8"}, 1),
        ({"url": "*.example.org", "collapse": "urlkey"}, 7),
        ({"url": "example.org/page", "limit": 2}, 2),
        ({"url": "example.org/page", "limit": -2}, 2),
        ({"url": "example.org/page", "limit": 2, "offset": 4}, 1),
    ],
)
def test_parameters_of_the_internet_archive(web: Any, parameters: dict[str, Any], count: int) -> None:
    assert len(rows(web, **parameters)) == count


def test_negative_limits_give_the_last_rows(web: Any) -> None:
    assert [row[4] for row in rows(web, url="example.org/page", limit=-2)] == ["200", "404"]


@pytest.mark.parametrize("number", ["--5", "-", "5-", "\u0665", "1e3", "9" * 11])
def test_what_is_no_number_is_refused(web: Any, number: str) -> None:
    for dialect in ("/cdx/search/cdx", "/web/cdx"):
        assert web.get(f"{dialect}?url=example.org/page&limit={quote(number)}").status == 400


def test_json_has_a_head_and_the_chosen_fields(web: Any) -> None:
    table = web.get("/cdx/search/cdx?url=example.org/page&output=json&fl=timestamp,statuscode&limit=2").json()
    assert table == [["timestamp", "statuscode"], ["20240101120000", "200"], ["20240101121000", "200"]]
    assert web.get("/cdx/search/cdx?url=nowhere.example&output=json").json() == []


@pytest.mark.parametrize("output", ["text", "json"])
def test_resume_keys_lead_through_the_whole_answer(web: Any, output: str) -> None:
    seen: list[list[str]] = []
    key = ""
    for _ in range(10):
        tail = f"&resumeKey={quote(key)}" if key else ""
        answer = web.get(f"/cdx/search/cdx?url=*.example.org&limit=3&showResumeKey=true&output={output}{tail}")
        if output == "json":
            table = answer.json()
            key = table.pop()[0] if [] in table else ""
            seen += [row for row in table[1:] if row]
        else:
            lines = answer.text.splitlines()
            key = lines.pop() if "" in lines else ""
            seen += [line.split(" ") for line in lines if line]
        if not key:
            break
    assert seen == rows(web, url="*.example.org")
    assert len(seen) == 11


def test_pages_cover_everything_once(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("letopis.replay.cdx_query.URLS_PER_BLOCK", 2)
    pages = int(web.get("/cdx/search/cdx?url=*.example.org&showNumPages=true").text)
    assert pages == 4
    paged = [row for page in range(pages) for row in rows(web, url="*.example.org", page=page)]
    assert paged == rows(web, url="*.example.org")
    assert web.get("/web/cdx?url=*.example.org&showNumPages=true").json()["pages"] == 4
    assert web.get("/web/cdx?url=*.example.org&page=4").status == 400


def test_pywb_lines_have_key_timestamp_and_json(web: Any) -> None:
    answer = web.get("/web/cdx?url=example.org/page")
    key, stamp, tail = answer.text.splitlines()[2].split(" ", 2)
    assert (key, stamp) == ("org,example)/page", "20240101122000")
    fields = json.loads(tail)
    assert fields["mime"] == "warc/revisit"
    assert "status" not in fields
    assert fields["url"] == "http://example.org/page"


def test_pywb_json_lines_and_fields(web: Any) -> None:
    lines = web.get("/web/cdx?url=example.org/page&output=json&fields=timestamp,statuscode").text.splitlines()
    assert json.loads(lines[0]) == {"timestamp": "20240101120000", "status": "200"}
    one = "/web/cdx?url=example.org/page&fl=timestamp,url&limit=1"
    assert web.get(one).text == 'org,example)/page 20240101120000 {"url": "http://example.org/page"}\n'
    assert web.get(f"{one}&output=text").text == "20240101120000 http://example.org/page\n"


@pytest.mark.parametrize(
    ("parameters", "stamps"),
    [
        ({"closest": "20240101122900", "limit": 3}, ["1230", "1220", "1240"]),
        ({"sort": "closest", "closest": "2023", "limit": 1}, ["1200"]),
        ({"sort": "reverse", "limit": 2}, ["1240", "1230"]),
        ({"filter": "=status:404"}, ["1240"]),
        ({"filter": "!=status:404", "limit": 9}, ["1200", "1210", "1220", "1230"]),
        ({"filter": "~status:2.."}, ["1200", "1210", "1230"]),
        ({"filter": "status:04"}, ["1240"]),
        ({"filter": "revisit"}, ["1220"]),
        ({"filter": "warc/revisit", "resolveRevisits": "true"}, []),
    ],
)
def test_parameters_of_pywb(web: Any, parameters: dict[str, Any], stamps: list[str]) -> None:
    found = rows(web, "/web/cdx", url="example.org/page", fields="timestamp", output="text", **parameters)
    assert [row[0][8:12] for row in found] == stamps


def test_duplicates_and_what_collapsing_left_out_are_counted(web: Any) -> None:
    found = rows(web, url="example.org/page", showDupeCount="true", fl="timestamp,digest")
    assert [row[-1] for row in found] == ["0", "1", "2", "0", "0"]
    found = rows(web, url="example.org/page", collapse="digest", showSkipCount="true", lastSkipTimestamp="true")
    assert [row[-2:] for row in found] == [["2", "20240101122000"], ["0", "20240101123000"], ["0", "20240101124000"]]
    table = web.get("/cdx/search/cdx?url=example.org/page&showDupeCount=true&showSkipCount=true&output=json").json()
    assert table[0][-2:] == ["dupecount", "skipcount"]
    assert table[1][-2:] == ["0", "0"]


def test_revisits_are_resolved_when_asked(web: Any) -> None:
    found = rows(web, url="example.org/page", resolveRevisits="true", limit=3)
    assert found[2][3:5] == ["text/html", "200"]
    assert found[2][-3:] == ["-", "-", "-"]
    lines = web.get("/web/cdx?url=example.org/page&resolveRevisits=true").text.splitlines()
    assert json.loads(lines[2].split(" ", 2)[2])["mime"] == "text/html"


def test_fields_of_files_are_unknown_without_an_export(web: Any) -> None:
    assert rows(web, url="example.org/page", fl="filename,offset,timestamp", limit=1) == [["-", "-", "20240101120000"]]


@pytest.mark.parametrize(
    ("query", "stamp"),
    [
        ("url=example.org/page", "20240101123000"),
        ("url=example.org/page&timestamp=20240101121900", "20240101122000"),
        ("url=http%3A//example.org/page&timestamp=2023", "20240101120000"),
        ("url=nowhere.example", None),
    ],
)
def test_the_nearest_good_capture_is_available(web: Any, query: str, stamp: str | None) -> None:
    found = web.get(f"/wayback/available?{query}").json()["archived_snapshots"]
    if stamp is None:
        assert found == {}
        return
    assert found["closest"] == {
        "status": "200", "available": True, "url": f"{web.address}/web/{stamp}/http://example.org/page",
        "timestamp": stamp,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("captured", "asked", "is_found"),
    [
        ("/lib.js?_=1712345678", "/lib.js?_=1812345678", True),
        ("/lib.js", "/lib.js?cb=1812345678", True),
        ("/lib.js?a=1&_=1712345678", "/lib.js?_=99999&a=1", True),
        ("/api?callback=jQuery1102_1712345&q=1", "/api?callback=jquery1102_99999999&q=1", True),
        ("/page?utm_source=a", "/page?utm_source=b", True),
        ("/lib.js?a=1", "/lib.js?a=2", False),
        ("/lib.js?id=1712345678", "/lib.js?id=1812345678", False),
        ("/other.js?_=1712345678", "/lib.js?_=1712345678", False),
    ],
)
def test_numbers_that_get_past_caches_do_not_hide_captures(
    make_archive: Any, captured: str, asked: str, is_found: bool
) -> None:
    archive = make_archive()
    archive.put("http://a.example" + captured, b"x", at(0))
    with running(archive) as web:
        query = urlencode({"url": "http://a.example" + asked})
        assert bool(web.get(f"/web/cdx?{query}").text) is is_found
        assert web.get(f"/web/cdx?{query}&allowFuzzy=0").text == ""
        assert (web.get(f"/web/2024/http://a.example{asked}").status == 302) is is_found


def test_every_parameter_is_in_the_table_of_the_guide() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "serve.md").read_text("utf-8")
    listed = {name for row in re.findall(r"^\| (`[^|]+) \|", guide, re.M) for name in re.findall(r"`(\w+)`", row)}
    source = "".join(inspect.getsource(module) for module in (cdx, cdx_query))
    read = set(re.findall(r"parameters\.(?:get|flag|number|all)\(\"(\w+)\"", source))
    read |= {name for name, _ in cdx_query._COUNTING}
    assert read - listed == set()


@pytest.mark.parametrize(
    "tail",
    ["", "url=", "url=x&matchType=all", "url=x&limit=many", "url=x&filter=statuscode:(", "url=x&filter=nothing:1",
     "url=x&from=never", "url=x&fl=nothing", "url=x&collapse=nothing", "url=x&resumeKey=!!", "url=x&page=-1",
     "url=x&sort=closest", "url=x&filter=statuscode:" + "a" * 400, "url=x&pageSize=0",
     "&".join("url=x" for _ in range(200))],
)  # fmt: skip
def test_nonsense_is_a_problem_with_a_sentence(web: Any, tail: str) -> None:
    answer = web.get(f"/cdx/search/cdx?{tail}")
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]


def test_a_catastrophic_pattern_is_stopped(make_archive: Any) -> None:
    archive = make_archive()
    archive.put("http://example.org/" + "a" * 3000, b"x")
    query = urlencode({"url": "example.org/a*", "filter": r"original:.*(?:a|a\w|\wa)*(?:a|a\w)*\d"})
    with running(archive) as web:
        answer = web.get(f"/cdx/search/cdx?{query}")
    assert answer.status == 400
    assert "too long" in answer.text


def test_very_many_captures_of_one_page_come_in_order(web: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows(web, url="example.org/page")
    monkeypatch.setattr(captures, "CHUNK", 2)
    assert rows(web, url="example.org/page") == whole
    assert rows(web, url="example.org/page", **{"from": "20240101121500"}) == whole[2:]
    assert len(rows(web, url="*.example.org")) == 11


@given(st.lists(st.binary(min_size=20, max_size=20), max_size=20))
def test_digests_of_many_equal_those_of_each(hashes: list[bytes]) -> None:
    assert digest_texts(hashes) == [digest_text(one) for one in hashes]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(
            ["url", "matchType", "from", "to", "fl", "fields", "filter", "collapse", "limit", "output", "showResumeKey",
             "resumeKey", "page", "pageSize", "showNumPages", "sort", "closest", "offset", "reverse"]
        ),
        st.one_of(
            st.text(max_size=20),
            st.sampled_from(["example.org/page", "*.example.org", "json", "true", "20240101", "-3", "statuscode:2..",
                             "digest", "timestamp:8", "urlkey,digest", "prefix", "domain", "closest"]),
        ),
        max_size=8,
    ),
    st.sampled_from(["/cdx/search/cdx", "/web/cdx"]),
)  # fmt: skip
def test_no_parameters_break_the_server(web: Any, parameters: dict[str, str], path: str) -> None:
    query = urlencode({name: value.encode("utf-8", "surrogatepass") for name, value in parameters.items()})
    assert web.get(f"{path}?{query}").status in (200, 400)
