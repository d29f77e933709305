"""One page with what it loaded, as HAR, MHTML and SingleFile: what readers of others find in the files."""

from __future__ import annotations

import base64
import email
import importlib
import json
import shutil
import subprocess
from email import policy
from hashlib import sha1
from pathlib import Path
from typing import Any

from many_ways import picture
from scripted_site import ScriptedSite
from tries import Score, compared

from letopis import Monitor
from letopis.archive import Archive
from letopis.cli.main import main
from letopis.config import FetchSettings, Settings

_PAGE = """<title>Příliš žluťoučký</title><link rel=stylesheet href=/style.css>
<h1>Příliš žluťoučký kůň</h1><img src=a.png><img srcset="b.png 1x"><iframe src=/frame></iframe><a href=/to?x=1>to</a>"""
_FILES = {
    "/": ("text/html; charset=windows-1250", _PAGE.encode("cp1250")),
    "/frame": ("text/html", b"<img src=/c.png>"),
    "/style.css": ("text/css", b"@import 'more.css'; h1 { background: url(/d.png) }"),
    "/more.css": ("text/css", b"img { width: 30px; border: 3px solid red }"),
    **{f"/{name}.png": ("image/png", picture(bytes((9 * ord(name) % 256, 90, 200)))) for name in "abcd"},
}
_HARALYZER = """
import base64, hashlib, json, sys
from haralyzer import HarParser
(page,) = HarParser.from_file(sys.argv[1]).pages
found = {"haralyzer page": page.title}
for entry in page.entries:
    answer = entry.response
    body = base64.b64decode(answer.text) if answer.textEncoding == "base64" else answer.text.encode()
    told = [entry.request.method, answer.status, answer.mimeType, hashlib.sha1(body).hexdigest()]
    found["haralyzer " + entry.request.url] = told
print(json.dumps(found))
"""
_VALIDATOR = """
const { har } = require("har-validator");
const read = file => JSON.parse(require("fs").readFileSync(file, "utf-8"));
har(read(process.argv[2])).then(() => console.log('"valid"'), error => console.log(JSON.stringify(error.errors)));
"""
_SHOWN = """() => [document.title, document.links[0]?.href,
  Array.from(document.querySelectorAll("h1"), one => getComputedStyle(one).backgroundImage !== "none"),
  Array.from(document.images, one => [one.complete, one.naturalWidth, one.offsetWidth])]"""


def _captured(folder: Path, site: ScriptedSite) -> dict[str, Path]:
    """The page in each of the forms, out of an archive that looked at it."""
    for path, (kind, body) in _FILES.items():
        site.set(path, body, Content_Type=kind)
    settings = Settings(fetch=FetchSettings(private="always"))
    with Archive(folder / "a", settings=settings) as archive, Monitor(archive) as monitor:
        monitor.look([site.url("/")], monitor.options._replace(now=True, requisites=True))
    files = {kind: folder / f"page.{kind}" for kind in ("har", "mhtml")} | {"singlefile": folder / "page.html"}
    for kind, file in files.items():
        assert main(["--archive", str(folder / "a"), "-q", "export", kind, site.url("/"), "-o", str(file)]) == 0
    return files


def _meant(site: ScriptedSite) -> dict[str, tuple[str, str]]:
    return {site.url(path): (kind, sha1(body).hexdigest()) for path, (kind, body) in _FILES.items()}


def _mail_parts(file: Path) -> dict[str, object]:
    """The parts of an MHTML as Python's own reader of mail finds them."""
    whole = email.message_from_bytes(file.read_bytes(), policy=policy.default)
    parts = [part for part in whole.walk() if not part.is_multipart()]
    found: dict[str, object] = {"mail defects": [str(one) for part in whole.walk() for one in part.defects]}
    for part in parts:
        body = part.get_payload(decode=True)
        assert isinstance(body, bytes)
        found[f"mail {part['Content-Location']}"] = sha1(body).hexdigest()
    return found


def _read_here(files: dict[str, Path]) -> dict[str, object]:
    """What the libraries of Python read in the files."""
    found = _mail_parts(files["mhtml"])
    for entry in json.loads(files["har"].read_text("utf-8"))["log"]["entries"]:
        content = entry["response"]["content"]
        body = base64.b64decode(content["text"]) if "encoding" in content else content["text"].encode()
        found[f"json {entry['request']['url']}"] = sha1(body).hexdigest()
    return found


def quick(folder: Path) -> Score:
    """With Python's own readers of mail and JSON."""
    site = ScriptedSite()
    try:
        files, meant = _captured(folder, site), _meant(site)
    finally:
        site.close()
    ours: dict[str, object] = {"mail defects": []}
    for url, (_, digest) in meant.items():
        ours |= {f"mail {url}": digest, f"json {url}": digest}
    return _either(ours, _read_here(files))


def full(folder: Path, environment: Path) -> Score:
    """With haralyzer, har-validator, and Chromium, which has nobody to ask when it opens the files."""
    site = ScriptedSite()
    try:
        files, meant = _captured(folder, site), _meant(site)
        live = _shown(site.url("/"))
    finally:
        site.close()
    ours: dict[str, object] = {"har-validator": "valid", "mail defects": [], "haralyzer page": site.url("/")}
    for url, (kind, digest) in meant.items():
        ours |= {f"mail {url}": digest, f"haralyzer {url}": ["GET", 200, kind, digest]}
    ours |= {f"Chromium {kind}": live for kind in ("mhtml", "singlefile")}
    script = environment / "valid-har.cjs"
    script.write_text(_VALIDATOR, "utf-8")
    theirs = _mail_parts(files["mhtml"]) | {"har-validator": _asked(files["har"], "node", str(script))}
    theirs |= _asked(files["har"], str(environment / "bin" / "python"), "-c", _HARALYZER)
    theirs |= {f"Chromium {kind}": _shown(files[kind].as_uri()) for kind in ("mhtml", "singlefile")}
    return _either(ours, theirs)


def _either(ours: dict[str, object], theirs: dict[str, object]) -> Score:
    """What one of the two alone knows of differs as well."""
    return compared(ours, dict.fromkeys(ours) | theirs)


def _asked(file: Path, *command: str) -> Any:
    told = subprocess.run([*command, str(file)], capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def _shown(address: str) -> object:
    """What Chromium shows of a page: its title, a link, and how large its pictures are."""
    driver = importlib.import_module("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-headless-shell")
    with driver.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            tab = browser.new_page()
            tab.goto(address, wait_until="load")
            return [frame.evaluate(_SHOWN) for frame in tab.frames]
        finally:
            browser.close()
