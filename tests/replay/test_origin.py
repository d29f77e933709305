"""Names of archived sites on the replay origin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letopis.errors import SettingError
from letopis.replay.origin import NO_ORIGIN, ReplayDoor, ReplayOrigin, ReplaySite, configured_origin, site_of_label

AT = 1_714_979_289_000
ORIGIN = ReplayOrigin("http", "letopis.localhost:8081")
part = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)


@given(
    scheme=st.sampled_from(["http", "https"]),
    parts=st.lists(part, min_size=1, max_size=5),
    port=st.none() | st.integers(1, 65535),
    seconds=st.integers(0, 4_000_000_000),
)
def test_a_site_at_a_time_has_a_name_that_stands_for_nothing_else(
    scheme: str, parts: list[str], port: int | None, seconds: int
) -> None:
    site = ReplaySite(scheme, ".".join(parts) + (f":{port}" if port else ""), seconds * 1000)
    label = site.label
    if label is None:
        assert len(site.host) > 40
    else:
        assert len(label) <= 63
        assert site_of_label(label) == site


def test_a_host_with_two_hyphens_before_digits_has_no_port() -> None:
    site = ReplaySite("https", "intranet--17", AT // 1000 * 1000)
    assert site.label is not None
    assert site_of_label(site.label) == site


@pytest.mark.parametrize(
    "url",
    ["https://www.example.org/a?b=c&d#e", "http://a-b.example:8080/", "https://127.0.0.1/x", "https://xn--bcher-kva.example/?q=%20"],
)  # fmt: skip
def test_paths_and_queries_stay_as_they_were(url: str) -> None:
    address = ORIGIN.address(url, AT)
    assert address is not None
    assert address.partition(":8081")[2] == url.partition("//")[2][url.partition("//")[2].index("/") :]
    assert ORIGIN.original(address) == url


@pytest.mark.parametrize("host", ["a" * 60 + ".example", "[::1]", "-odd.example"])
def test_a_host_that_fits_into_no_name_has_none(host: str) -> None:
    assert ORIGIN.address(f"https://{host}/", AT) is None


def test_two_times_and_two_schemes_of_one_host_are_two_sites() -> None:
    names = {
        ORIGIN.address(url, time) for url in ("http://a.example/", "https://a.example/") for time in (AT, AT + 1000)
    }
    assert len(names) == 4


@pytest.mark.parametrize("host", ["letopis.localhost:8081", "x.letopis.localhost:8081", "sabc-evil.example:8081", ""])
def test_other_hosts_are_no_sites(host: str) -> None:
    assert ORIGIN.site_of(host) is None


def test_readers_on_the_machine_itself_need_no_setting() -> None:
    door = ReplayDoor("", 8081)
    for host in ("localhost:8080", "127.0.0.1:8080", "[::1]:8080", "letopis.localhost:8080"):
        assert door.origin_for(host) == ORIGIN
    for host in ("192.168.1.5:8080", "archive.example.org", "localhost.example.org"):
        assert door.origin_for(host) is None
    assert ReplayDoor(NO_ORIGIN, 8081).origin_for("localhost:8080") is None
    assert ReplayDoor("https://replay.example.org", 8081).origin_for("archive.example.org") == ReplayOrigin(
        "https", "replay.example.org"
    )


@pytest.mark.parametrize(
    "setting", ["ftp://a.example", "https://localhost", "https://a.example/path", "https://10.0.0.1"]
)
def test_what_is_no_origin_is_refused_with_what_to_write(setting: str) -> None:
    with pytest.raises(SettingError, match="such as https://replay"):
        configured_origin(setting)


WROTE = ("origin=http%3A%2F%2F{host}&x=1", "at=https://{host}/a?b", "host={host}", '{{"page": "https://{host}/a"}}')


@pytest.mark.parametrize("wrote", WROTE)
@pytest.mark.parametrize("host", ["embed-server.example", "127.0.0.1:8000"])
def test_where_a_page_is_stands_in_a_query_as_its_scripts_wrote_it_then(wrote: str, host: str) -> None:
    scheme = "https" if "https" in wrote else "http"
    colon = "%3A" if "%3A" in wrote else ":"
    then = wrote.format(host=host.replace(":", colon))
    place = f"{ReplaySite(scheme, host, AT).label}.{ORIGIN.host}".replace(":", colon)
    assert ORIGIN.restored(wrote.replace("https", "http").format(host=place)) == then
    assert ORIGIN.restored(then) == then
