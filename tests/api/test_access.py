"""Who may call what: every route, for nobody, guest, user and owner; sessions, forms and logins."""

from __future__ import annotations

import asyncio
import gzip
import re
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest
from argon2 import PasswordHasher, Type, extract_parameters
from served_archive import PAGE, WebClient, fill, running
from starlette.routing import Mount

from letopis.api.access import PUBLIC, required_permission
from letopis.api.app import create_app
from letopis.api.server import Server, listen
from letopis.api.sessions import Sessions
from letopis.archive import Archive
from letopis.archive.accounts import LOGIN_TRIES, LOGIN_WINDOW, LoginThrottle
from letopis.archive.audit import audit_entries
from letopis.catalog.accounts import HASHINGS, Accounts, is_password
from letopis.catalog.sessions import SessionRows
from letopis.model.rights import OWN, READ, ROLES, WRITE
from letopis.web.login import HashingPool

PASSWORD = "correct horse"

EXPECTED: dict[str, int] = {
    "GET /cdx/search/cdx": READ, "GET /web/cdx": READ, "GET /web/{rest:path}": READ, "GET /feed/{rest:path}": READ,
    "GET /api/v1/versions": READ, "GET /api/v1/history": READ, "GET /api/v1/content": READ, "GET /api/v1/diff": READ,
    "GET /api/v1/links": READ, "GET /api/v1/stats": READ, "GET /api/v1/changes": READ, "GET /api/v1/events": READ,
    "POST /mcp": READ, "POST /api/v1/check": WRITE, "POST /api/v1/changes/ack": WRITE,
    "GET /api/v1/projects": READ, "GET /api/v1/projects/{name}": READ, "POST /api/v1/projects": WRITE,
    "DELETE /api/v1/projects/{name}": WRITE,
    "GET /api/v1/watches": READ, "POST /api/v1/watches": WRITE, "DELETE /api/v1/watches": WRITE,
    "GET /api/v1/watches/alerts": READ,
    "GET /api/v1/tokens": WRITE, "POST /api/v1/tokens": WRITE, "DELETE /api/v1/tokens/{name}": WRITE,
    "GET /api/v1/usage": OWN, "GET /statistics": OWN, "GET /audit": OWN,
    "GET /api/v1/users": OWN, "POST /api/v1/users": OWN, "DELETE /api/v1/users/{name}": OWN,
    "PUT /api/v1/users/{name}/password": WRITE, "PUT /api/v1/users/{name}/role": OWN,
    "PUT /api/v1/users/{name}/group": OWN, "GET /api/v1/audit": OWN, "PUT /api/v1/content": OWN,
    "GET /healthz": PUBLIC, "GET /metrics": READ, "GET /docs": PUBLIC, "GET /openapi.json": PUBLIC,
    "GET /docs/{name}": PUBLIC,
    "GET /api/v1/invitations": OWN, "POST /api/v1/invitations": OWN, "DELETE /api/v1/invitations/{id}": OWN,
    "POST /api/v1/users/{name}/two-factor": WRITE, "PUT /api/v1/users/{name}/two-factor": WRITE,
    "POST /api/v1/users/{name}/two-factor/off": WRITE, "POST /accounts/two-factor": WRITE,
    "POST /accounts/users/invite": OWN, "POST /accounts/users/uninvite": OWN, "POST /accounts/users/two-factor": OWN,
    "PUT /api/v1/settings/{name}": OWN, "DELETE /api/v1/settings/{name}": OWN, "POST /settings": OWN,
    "GET /login/code": PUBLIC, "POST /login/code": PUBLIC, "GET /join": PUBLIC, "POST /join": PUBLIC,
    "GET /login": PUBLIC, "POST /login": PUBLIC, "POST /setup": PUBLIC, "POST /logout": READ,
    "POST /alerts": READ,
    "POST /crawl": OWN, "GET /welcome": OWN, "POST /welcome": OWN,
    "GET /accounts": WRITE, "POST /accounts/users": OWN, "POST /accounts/users/remove": OWN,
    "POST /accounts/users/role": OWN, "POST /accounts/users/group": OWN, "GET /projects/{name}": READ,
    "GET /language/{code}": PUBLIC, "GET /as-of": PUBLIC, "POST /accounts/users/password": OWN,
    "POST /api/v1/import": OWN, "POST /api/v1/runs/import": OWN, "POST /api/v1/watches/preview": READ,
    "GET /api/v1/crawls": READ, "POST /api/v1/crawls": OWN, "DELETE /api/v1/crawls": OWN, "GET /api/v1/why": READ,
    "GET /api/v1/jobs": READ, "POST /api/v1/jobs": WRITE, "DELETE /api/v1/jobs/{id}": WRITE,
    "POST /api/v1/jobs/clean": OWN, "POST /api/v1/search/chosen": READ,
    "POST /api/v1/jobs/{id}/refresh": WRITE, "GET /api/v1/jobs/{id}/result": READ, "POST /jobs": WRITE,
}  # fmt: skip
"""What routes need; those that are not named follow the rule: reading READ, anything else WRITE."""


def routes(app: Any) -> list[str]:
    """Every method and path that the application answers, static files aside."""
    found = []
    for route in _flat(app.routes):
        for method in sorted((route.methods or set()) - {"HEAD", "OPTIONS"}):
            found.append(f"{method} {route.path}")
    return sorted(found)


def _flat(items: Any) -> Iterator[Any]:
    """Routes, also those inside included routers, which FastAPI joins only when a request comes."""
    for item in items:
        if isinstance(item, Mount):
            assert item.path == "/static"
        elif hasattr(item, "effective_candidates"):
            yield from _flat(item.effective_candidates())
        else:
            yield getattr(item, "starlette_route", None) or item


ENDLESS = ("/api/v1/events", "/jobs/events")
"""Answers that go on for as long as somebody listens."""
SIGNING = ("POST /login", "POST /login/code", "POST /logout", "POST /setup", "POST /join")
"""They are open to all and judge what is in the form; further tests here attack them."""


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Archive, WebClient, dict[str, dict[str, str]]]]:
    """A server with a token for each role."""
    with Archive(tmp_path_factory.mktemp("people") / "archive") as archive:
        fill(archive)
        accounts = Accounts(archive.catalog.database)
        heads: dict[str, dict[str, str]] = {"nobody": {}}
        for role in ROLES:
            user = accounts.add(f"{role}1", role, PASSWORD, 0)
            heads[role] = {"Authorization": f"Bearer {accounts.create_token(role, user, 'write', 0)}"}
        with running(archive) as web:
            yield archive, web, heads


def test_every_route_is_in_the_table_or_follows_the_rule(people: Any) -> None:
    found = routes(create_app(people[0]))
    assert set(EXPECTED) <= set(found)
    for name in found:
        method, path = name.split(" ")
        rule = READ if method == "GET" else WRITE
        assert required_permission(method, path) == EXPECTED.get(name, rule), name


@pytest.mark.parametrize("role", ["nobody", "guest", "user", "owner"])
def test_no_route_lets_anyone_do_more_than_the_table_says(people: Any, role: str) -> None:
    archive, web, heads = people
    mask = ROLES.get(role, READ)
    for name in routes(create_app(archive)):
        method, path = name.split(" ")
        needs = required_permission(method, path)
        if name in SIGNING or (needs & mask == needs and path in ENDLESS):
            continue
        # A broken body proves the order: whoever may not come in is told so before the body is looked at.
        address = re.sub(r"\{[^}]*\}", "x", path)
        answer = web.ask(
            method, address, b"{" if method != "GET" else None, Content_Type="application/json", **heads[role]
        )
        wanted = {401} if role == "nobody" else {403}
        assert (answer.status in wanted) == (needs & mask != needs), (name, role, answer.status)
        assert answer.status < 500, (name, role)


@pytest.mark.parametrize(
    "path", ["/", "/web/" + PAGE, "/cdx/search/cdx?url=x", "/feed/" + PAGE, "/api/v1/stats", "/metrics"]
)
def test_a_closed_archive_reads_only_for_those_who_may(make_archive: Any, path: str) -> None:
    archive = make_archive(public=False)
    fill(archive)
    accounts = Accounts(archive.catalog.database)
    token = accounts.create_token("r", accounts.add("g", "guest", None, 0), "read", 0)
    with running(archive) as web:
        assert web.get(path).status == 401
        assert web.get(path, Authorization=f"Bearer {token}").status < 400
        assert web.get("/healthz").status == 200


def test_people_are_led_to_the_login_page_of_a_closed_archive(make_archive: Any) -> None:
    with running(make_archive(public=False)) as web:
        answer = web.get("/", Accept="text/html")
    assert (answer.status, answer.headers["location"]) == (303, "/login?next=/")


@pytest.mark.parametrize("value", ["Bearer nonsense", "Bearer", "Basic YTpi", "Bearer let_" + "A" * 43])
def test_wrong_credentials_are_401_even_for_reading(people: Any, value: str) -> None:
    answer = people[1].get("/api/v1/stats", Authorization=value)
    assert (answer.status, answer.headers["content-type"]) == (401, "application/problem+json")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_read_token_of_an_owner_only_reads(people: Any) -> None:
    archive, web, _ = people
    accounts = Accounts(archive.catalog.database)
    head = {"Authorization": f"Bearer {accounts.create_token('ro', accounts.user('owner1'), 'read', 0)}"}
    assert web.get("/api/v1/stats", **head).status == 200
    assert web.post("/api/v1/check", {"url": PAGE}, **head).status == 403
    accounts.revoke("ro")
    assert web.get("/api/v1/stats", **head).status == 401


def sign_in(web: Any, name: str, password: str = PASSWORD, **more: str) -> Any:
    form = urlencode({"name": name, "password": password, **more})
    return web.ask("POST", "/login", form, Content_Type="application/x-www-form-urlencoded")


def cookie(answer: Any) -> str:
    return str(answer.headers["set-cookie"].split(";")[0])


def test_signing_in_gives_a_fresh_cookie_that_scripts_cannot_read(people: Any) -> None:
    answer = sign_in(people[1], "user1")
    assert answer.status == 303
    flags = answer.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=lax" in flags
    assert cookie(answer) != cookie(sign_in(people[1], "user1"))


def test_changes_by_cookie_need_the_token_of_the_form(people: Any) -> None:
    archive, web, _ = people
    held = cookie(sign_in(web, "user1"))
    body = {"name": "byform", "urls": []}
    assert web.post("/api/v1/projects", body, Cookie=held).status == 403
    assert web.post("/api/v1/projects", body, Cookie=held, X_CSRF_Token="wrong").status == 403
    csrf = session_of(archive, held)
    foreign = {"Cookie": held, "X_CSRF_Token": csrf, "Origin": "http://evil.example"}
    assert web.post("/api/v1/projects", body, **foreign).status == 403
    assert web.post("/api/v1/projects", body, **foreign | {"Origin": "null"}).status == 403
    assert web.post("/api/v1/projects", body, Cookie=held, X_CSRF_Token=csrf, Sec_Fetch_Site="cross-site").status == 403
    assert web.post("/api/v1/projects", body, Cookie=held, X_CSRF_Token=csrf, Origin=web.address).status == 201


def session_of(archive: Archive, held: str) -> str:
    sessions = Sessions(Accounts(archive.catalog.database), SessionRows(archive.catalog.database))
    host = held.partition("=")[0].replace("letopis_session_", "localhost:")
    session = sessions.read({"headers": [(b"host", host.encode()), (b"cookie", held.encode())]})
    assert session is not None
    return session.csrf


def test_forms_carry_the_token_in_a_field(people: Any) -> None:
    archive, web, _ = people
    held = cookie(sign_in(web, "guest1"))
    kind = "application/x-www-form-urlencoded"
    assert web.ask("POST", "/logout", "csrf=wrong", Content_Type=kind, Cookie=held).status == 403
    form = urlencode({"csrf": session_of(archive, held)})
    assert web.ask("POST", "/logout", form, Content_Type=kind, Cookie=held).status == 303
    # The session is over on the server too, not only in the browser.
    with pytest.raises(AssertionError):
        session_of(archive, held)


def test_forged_and_old_cookies_are_nobody(people: Any) -> None:
    archive, web, _ = people
    held = cookie(sign_in(web, "owner1"))
    assert web.get("/api/v1/users", Cookie=held).status == 200
    name, value = held.split("=", 1)
    assert web.get("/api/v1/users", Cookie=f"{name}={value[:-2]}xx").status == 401
    assert web.get("/api/v1/users", Cookie=f"{name}={value[1:]}").status == 401
    Accounts(archive.catalog.database).set_password("owner1", PASSWORD + "2")
    assert web.get("/api/v1/users", Cookie=held).status == 401
    Accounts(archive.catalog.database).set_password("owner1", PASSWORD)


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb"]
)
def test_nobody_is_sent_elsewhere_after_signing_in(people: Any, target: str) -> None:
    assert sign_in(people[1], "user1", next=target).headers["location"] == "/"
    assert sign_in(people[1], "user1", next="/watches").headers["location"] == "/watches"


def test_passwords_are_costly_to_hash(costly_hasher: PasswordHasher) -> None:
    stored = costly_hasher.hash(PASSWORD)
    found = extract_parameters(stored)
    assert found.type is Type.ID
    assert (found.time_cost, found.memory_cost) >= (3, 64 << 10)
    assert is_password(stored, PASSWORD)
    assert not is_password(stored, "wrong password")


def test_guessing_passwords_is_slowed_down(make_archive: Any) -> None:
    archive = make_archive()
    Accounts(archive.catalog.database).add("anna", "user", PASSWORD, 0)
    with running(archive) as web:
        tries = [sign_in(web, "anna", "wrong password") for _ in range(LOGIN_TRIES + 1)]
        assert [one.status for one in tries] == [401] * LOGIN_TRIES + [429]
        assert int(tries[-1].headers["retry-after"]) > 0
        assert sign_in(web, "anna").status == 429
    assert [deed.action for deed in _audit(archive)].count("login failed") == LOGIN_TRIES


def _audit(archive: Archive) -> Any:
    return audit_entries(archive, 100)


def test_a_throttle_forgets_after_its_window() -> None:
    now = [0.0]
    throttle = LoginThrottle(lambda: now[0])
    assert [throttle.begin("a") for _ in range(LOGIN_TRIES)] == [0] * LOGIN_TRIES
    assert throttle.begin("a", "b") > 0
    assert [throttle.begin("b") for _ in range(LOGIN_TRIES)] == [0] * LOGIN_TRIES, "what was refused counts for nobody"
    now[0] = LOGIN_WINDOW + 1
    assert throttle.begin("a") == 0


def test_a_right_password_gives_its_try_back() -> None:
    """Else a house of many people behind one address would lock itself out."""
    throttle = LoginThrottle()
    for _ in range(3 * LOGIN_TRIES):
        assert throttle.begin("name", "address") == 0
        throttle.give_back("name", "address")


PAGE_THREADS = 40
"""In which a service answers, see anyio."""


def at_once(number: int, ask: Callable[[int], Any]) -> list[Any]:
    """All of them together, begun when all are there."""
    gate = threading.Barrier(number)

    def one(index: int) -> Any:
        gate.wait(300)
        return ask(index)

    with ThreadPoolExecutor(number) as people:
        return list(people.map(one, range(number)))


def test_tries_at_once_are_counted_before_any_password_is_looked_at(make_archive: Any) -> None:
    archive = make_archive()
    Accounts(archive.catalog.database).add("anna", "user", PASSWORD, 0)
    with running(archive) as web:
        statuses = [one.status for one in at_once(40, lambda index: sign_in(web, "anna", f"wrong {index}"))]
    assert sorted(set(statuses)) == [401, 429]
    assert statuses.count(401) == LOGIN_TRIES


def test_a_crowd_that_signs_in_neither_hashes_at_once_nor_keeps_pages_waiting(make_archive: Any) -> None:
    """From many addresses, with names that nobody has: few wait for a hash, others are told so, pages answer."""
    archive = make_archive(trusted_proxies=("127.0.0.0/8",))
    fill(archive)

    def ask(index: int) -> Any:
        if index % 4 == 0:
            return web.get(f"/api/v1/versions?url={PAGE}")
        form = urlencode({"name": f"nobody{index}", "password": "x" * 10})
        kind = "application/x-www-form-urlencoded"
        return web.ask("POST", "/login", form, Content_Type=kind, X_Forwarded_For=f"9.9.{index}.9")

    before = set(threading.enumerate())
    with running(archive) as web:
        found = at_once(80, ask)
        begun = [thread.name for thread in set(threading.enumerate()) - before]
    hashing = [name for name in begun if name.startswith("letopis-hashing")]
    assert 1 <= len(hashing) <= HASHINGS
    assert len(begun) <= 1 + PAGE_THREADS + HASHINGS, "the server, its pages and its hashes"
    assert {one.status for one in found[::4]} == {200}
    tried = [one.status for index, one in enumerate(found) if index % 4]
    assert set(tried) <= {401, 503}
    assert tried.count(401) >= HashingPool.most_waiting + HASHINGS


def device(answer: Any) -> str:
    values = [value.split(";")[0] for name, value in answer.all_headers if name == "set-cookie"]
    return next(value for value in values if value.startswith("letopis_device_"))


def test_a_stranger_cannot_lock_people_out_of_the_devices_they_use(make_archive: Any) -> None:
    archive = make_archive()
    accounts = Accounts(archive.catalog.database)
    accounts.add("anna", "owner", PASSWORD, 0)
    accounts.add("eve", "user", PASSWORD, 0)
    with running(archive) as web:
        hers, others = device(sign_in(web, "anna")), device(sign_in(web, "eve"))
        for _ in range(LOGIN_TRIES):
            sign_in(web, "anna", "wrong password")

        def from_device(held: str, password: str = PASSWORD) -> int:
            form = urlencode({"name": "anna", "password": password})
            kind = "application/x-www-form-urlencoded"
            return int(web.ask("POST", "/login", form, Content_Type=kind, Cookie=held).status)

        assert from_device(hers) == 303
        assert from_device(others) == 429, "a device of somebody else is none of hers"
        assert [from_device(hers, "wrong") for _ in range(LOGIN_TRIES + 1)] == [401] * LOGIN_TRIES + [429]
        accounts.remove("eve")
        assert SessionRows(archive.catalog.database).owner(others.partition("=")[2], "device", 0) is None


def test_nobody_gets_the_rights_of_whoever_is_added_after_them(make_archive: Any) -> None:
    archive = make_archive()
    accounts = Accounts(archive.catalog.database)
    accounts.add("anna", "owner", PASSWORD, 0)
    removed = accounts.add("eve", "guest", PASSWORD, 0)
    with running(archive) as web:
        held = cookie(sign_in(web, "eve"))
        assert web.get("/api/v1/users", Cookie=held).status == 403
        accounts.remove("eve")
        added = accounts.add("olga", "owner", PASSWORD, 0)
        assert added.id > removed.id
        assert web.get("/api/v1/users", Cookie=held).status == 401
    accounts.remove("olga")
    assert accounts.add("petr", "user", None, 0).id > added.id


def test_two_services_on_one_host_keep_their_sessions_apart(make_archive: Any) -> None:
    """A browser sends the cookies of a host to all its ports."""
    archive = make_archive()
    Accounts(archive.catalog.database).add("anna", "owner", PASSWORD, 0)
    with running(archive) as one, running(archive) as other:
        first, second = cookie(sign_in(one, "anna")), cookie(sign_in(other, "anna"))
        assert first.partition("=")[0] != second.partition("=")[0]
        assert one.get("/api/v1/users", Cookie=f"{second}; {first}").status == 200
        assert one.get("/api/v1/users", Cookie=second).status == 401


def test_a_copy_of_the_catalogue_has_nothing_that_lets_anybody_in(make_archive: Any) -> None:
    archive = make_archive()
    Accounts(archive.catalog.database).add("anna", "owner", PASSWORD, 0)
    with running(archive) as web:
        name, _, value = cookie(sign_in(web, "anna")).partition("=")
        rows = archive.catalog.database.all("SELECT hash FROM account_session WHERE kind = 'session'")
        for (kept,) in rows:
            for text in (kept.hex(), urlsafe_b64encode(kept).decode().rstrip("=")):
                assert text != value
                assert web.get("/api/v1/users", Cookie=f"{name}={text}").status == 401


def test_one_code_makes_one_owner_however_many_use_it_at_once(make_archive: Any) -> None:
    archive = make_archive()
    server, ready = Server(archive, listen("127.0.0.1", 0)), threading.Event()
    code = server.setup_address.split("setup=")[1]
    thread = threading.Thread(target=lambda: asyncio.run(server.run(ready.set)), daemon=True)
    thread.start()
    assert ready.wait(300)
    web = WebClient(server.address)

    def set_up(index: int) -> int:
        form = urlencode({"name": f"owner{index}", "password": PASSWORD, "code": code})
        return int(web.ask("POST", "/setup", form, Content_Type="application/x-www-form-urlencoded").status)

    statuses = at_once(12, set_up)
    accounts = Accounts(archive.catalog.database)
    assert (statuses.count(303), len(accounts.users())) == (1, 1)
    accounts.remove(accounts.users()[0].name)
    assert set_up(99) == 403, "the code is used up"
    server.stop()
    thread.join(300)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8080", "[::1", ""])
def test_a_name_that_is_not_ours_is_not_answered(make_archive: Any, host: str) -> None:
    archive = make_archive(hosts=("archive.example",))
    fill(archive)
    with running(archive) as web:
        for path in ("/", "/api/v1/stats", f"/web/{PAGE}", "/static/letopis.css", "/login"):
            assert web.get(path, Host=host).status == 421, path
        assert web.get("/healthz", Host=host).status == 200


@pytest.mark.parametrize(
    "host", ["localhost:99", "127.0.0.1", "[::1]:8080", "ARCHIVE.example", "a.localhost", "192.0.2.1"]
)
def test_our_own_names_and_addresses_are_answered(make_archive: Any, host: str) -> None:
    with running(make_archive(hosts=("archive.example",))) as web:
        assert web.get("/api/v1/stats", Host=host).status == 200


def test_styles_are_sent_packed_and_pages_with_secrets_in_their_forms_are_not(make_archive: Any) -> None:
    with running(make_archive()) as web:
        packed = web.get("/static/letopis.css", Accept_Encoding="gzip, br")
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.headers["vary"] == "Accept-Encoding"
        assert gzip.decompress(packed.body) == web.get("/static/letopis.css").body
        assert "content-encoding" not in web.get("/", Accept="text/html", Accept_Encoding="gzip").headers


def test_other_sites_may_read_archived_content_only_where_the_owner_says_so(make_archive: Any) -> None:
    archive = make_archive()
    fill(archive)
    name, asked = "access-control-allow-origin", {"Origin": "https://reader.example"}
    with running(archive) as web:
        for path in (f"/web/20240101120000/{PAGE}", f"/web/20240101120000id_/{PAGE}", "/api/v1/stats"):
            assert name not in web.get(path, **asked).headers
    archive = make_archive(cors=("https://reader.example",))
    with running(archive) as web:
        found = web.get(f"/web/20240101120000/{PAGE}", **asked).headers
        assert (found[name], "origin" in found["vary"]) == ("https://reader.example", True)
        assert name not in web.get(f"/web/20240101120000/{PAGE}", Origin="https://evil.example").headers


def test_the_code_of_the_first_owner_cannot_be_guessed_and_whoever_has_it_may_try_names_and_passwords(
    make_archive: Any,
) -> None:
    server, ready = Server(make_archive(), listen("127.0.0.1", 0)), threading.Event()
    code = server.setup_address.split("setup=")[1]
    thread = threading.Thread(target=lambda: asyncio.run(server.run(ready.set)), daemon=True)
    thread.start()
    assert ready.wait(300)
    web = WebClient(server.address)

    def set_up(code: str, password: str) -> Any:
        form = urlencode({"name": "anna", "password": password, "code": code})
        return web.ask("POST", "/setup", form, Content_Type="application/x-www-form-urlencoded")

    assert [set_up(code, "short").status for _ in range(LOGIN_TRIES + 2)] == [422] * (LOGIN_TRIES + 2)
    assert [set_up("guess", PASSWORD).status for _ in range(LOGIN_TRIES)] == [403] * LOGIN_TRIES
    refused = set_up(code, PASSWORD)
    assert (refused.status, 0 < int(refused.headers["retry-after"]) <= LOGIN_WINDOW + 1) == (429, True)
    server.stop()
    thread.join(300)


def test_the_first_owner_needs_the_code_from_the_terminal(make_archive: Any) -> None:
    archive = make_archive()
    server, ready = Server(archive, listen("127.0.0.1", 0)), threading.Event()
    code = server.setup_address.split("setup=")[1]
    thread = threading.Thread(target=lambda: asyncio.run(server.run(ready.set)), daemon=True)
    thread.start()
    assert ready.wait(300)
    web, kind = WebClient(server.address), "application/x-www-form-urlencoded"
    form = {"name": "anna", "password": PASSWORD, "code": "guess"}
    assert "Create the owner account" in web.get("/login").text
    assert "Code from the terminal" not in web.get(f"/login?setup={code}").text, "its address brings the code along"
    refused = web.ask("POST", "/setup", urlencode(form), Content_Type=kind)
    assert refused.status == 403
    assert "The code is wrong. It is shown in the terminal" in refused.text
    assert 'name="name" value="anna"' in refused.text, "what was typed stays"
    assert web.ask("POST", "/setup", urlencode(form | {"code": code}), Content_Type=kind).status == 303
    assert web.ask("POST", "/setup", urlencode(form | {"code": code, "name": "eve"}), Content_Type=kind).status == 403
    assert server.setup_address == ""
    server.stop()
    thread.join(300)
    assert [(user.name, user.role) for user in Accounts(archive.catalog.database).users()] == [("anna", "owner")]


def test_the_word_of_a_proxy_counts_only_if_it_is_trusted(make_archive: Any, tmp_path: Any) -> None:
    archive = make_archive()
    fill(archive)
    forwarded = {"X_Forwarded_Proto": "https", "X_Forwarded_Host": "archive.example", "X_Forwarded_For": "9.9.9.9"}
    with running(archive) as web:
        assert web.get(f"/web/{PAGE}", **forwarded).headers["location"].startswith(web.address)
    trusting = make_archive(trusted_proxies=("127.0.0.0/8",), hosts=("archive.example",))
    with running(trusting) as web:
        assert web.get(f"/web/{PAGE}", **forwarded).headers["location"].startswith("https://archive.example/web/")
        sign_in(web, "x")
    web_tries = [deed.address for deed in _audit(trusting)]
    assert web_tries == ["127.0.0.1"]


def test_a_huge_body_is_refused_before_it_is_read(people: Any) -> None:
    import socket

    _archive, web, heads = people
    host, port = web.netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=300) as raw:
        head = f"Authorization: {heads['user']['Authorization']}\r\nContent-Type: application/json\r\n"
        head += "Host: localhost\r\nContent-Length: 99999999999\r\n"
        raw.sendall(f"POST /api/v1/check HTTP/1.1\r\n{head}\r\n".encode())
        assert b" 413 " in raw.recv(200)


def test_the_last_owner_cannot_be_lost(make_archive: Any) -> None:
    from letopis.errors import UsageError

    accounts = Accounts(make_archive().catalog.database)
    accounts.add("anna", "owner", None, 0)
    accounts.add("bert", "user", None, 0)
    with pytest.raises(UsageError, match="only owner"):
        accounts.remove("anna")
    with pytest.raises(UsageError, match="only owner"):
        accounts.set_role("anna", "user")
    accounts.set_role("bert", "owner")
    accounts.remove("anna")


@pytest.mark.files
def test_accounts_cost_an_archive_without_them_nothing(make_archive: Any) -> None:
    archive = make_archive()
    accounts = Accounts(archive.catalog.database)
    assert (accounts.users(), accounts.tokens(), accounts.bearer("x", 0), accounts.sign_in("a", "b")) == (
        [],
        [],
        None,
        None,
    )
    tables = archive.catalog.database.all("SELECT name FROM sqlite_master WHERE name LIKE 'account%'")
    assert tables == []
