"""The pipe to a browser of our own: messages, answers, and what is left when the browser or we end early."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import until

from letopis.fetch.devtools import Devtools, DevtoolsError, DevtoolsSession, MessageReader

PROGRAM = shutil.which("chromium-headless-shell") or shutil.which("chromium") or ""
COMMAND = [PROGRAM, "--headless", "--disable-gpu", "--no-startup-window"]
if os.geteuid() == 0:
    COMMAND.append("--no-sandbox")
in_chromium = [
    pytest.mark.browser, pytest.mark.xdist_group("browser"), pytest.mark.skipif(not PROGRAM, reason="NO CHROMIUM"),
]  # fmt: skip


@given(
    st.lists(st.binary(max_size=40).map(lambda text: text.replace(b"\0", b" ")), max_size=8),
    st.integers(1, 50),
    st.integers(1, 60),
)
def test_messages_are_the_same_however_their_bytes_arrive(messages: list[bytes], step: int, most: int) -> None:
    stream, reader, found = b"".join(message + b"\0" for message in messages), MessageReader(most), []
    for at in range(0, len(stream), step):
        found += reader.feed(stream[at : at + step])
    assert found == [(message[:most], len(message) <= most) for message in messages]


def test_a_message_without_an_end_takes_no_more_memory_than_allowed() -> None:
    reader = MessageReader(100)
    for _ in range(1000):
        assert list(reader.feed(b"x" * 1000)) == []
    assert sum(map(len, reader._parts)) == 100


def processes_of(folder: Path) -> list[str]:
    """Programs that know a folder, of whichever parent."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in file.read_bytes():
                found.append(file.parent.name)
        except OSError:  # it has ended meanwhile
            continue
    return found


def is_gone(folder: Path) -> bool:
    return not folder.exists() and not processes_of(folder)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the folders of browsers are made."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


async def test_a_program_that_ends_at_once_tells_its_last_words_and_leaves_nothing(temporary: Path) -> None:
    program = temporary / "browser"
    program.write_text("#!/bin/sh\necho 'no screen here' >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(DevtoolsError, match="no screen here"):
        await Devtools.start([str(program)])
    assert list(temporary.iterdir()) == [program]


async def test_a_program_that_never_answers_is_ended_with_the_task_that_waits_for_it(temporary: Path) -> None:
    program = temporary / "browser"
    program.write_text("#!/bin/sh\necho >$0.begun\nsleep 1000\n")
    program.chmod(0o755)
    start = asyncio.create_task(Devtools.start([str(program)]))
    while not (temporary / "browser.begun").exists():
        await asyncio.sleep(0.01)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    until(lambda: not list(temporary.glob("letopis-*")) and not processes_of(temporary / "letopis-"))


class TestInChromium:
    pytestmark = in_chromium

    @pytest.fixture
    async def devtools(self, temporary: Path) -> AsyncIterator[Devtools]:
        made = await Devtools.start(COMMAND, most=1_000_000)
        yield made
        await made.close()

    async def page(self, devtools: Devtools) -> DevtoolsSession:
        target = await devtools.browser.send("Target.createTarget", {"url": "about:blank"})
        found = await devtools.browser.send("Target.attachToTarget", target | {"flatten": True})
        return devtools.session(found["sessionId"])

    @pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
    def test_large_messages_go_both_ways_in_every_loop(self, loop: str) -> None:
        async def length() -> int:
            devtools = await Devtools.start(COMMAND)
            try:
                page = await self.page(devtools)
                asked = {"expression": f"'{'x' * 3_000_000}' + 'y'", "returnByValue": True}
                return len((await page.send("Runtime.evaluate", asked))["result"]["value"])
            finally:
                await devtools.close()

        factory = pytest.importorskip("uvloop").new_event_loop if loop == "uvloop" else None
        with asyncio.Runner(loop_factory=factory) as runner:
            assert runner.run(length()) == 3_000_001

    async def test_answers_find_whoever_asked(self, devtools: Devtools) -> None:
        page = await self.page(devtools)
        asked = (page.send("Runtime.evaluate", {"expression": f"{number} * 2"}) for number in range(50))
        assert [found["result"]["value"] for found in await asyncio.gather(*asked)] == [2 * n for n in range(50)]
        with pytest.raises(DevtoolsError, match=r"No\.such"):
            await page.send("No.such")

    async def test_an_answer_that_is_too_large_is_an_error_and_the_next_comes(self, devtools: Devtools) -> None:
        page = await self.page(devtools)
        asked = {"expression": "'x'.repeat(3000000)", "returnByValue": True}
        with pytest.raises(DevtoolsError, match="too large"):
            await page.send("Runtime.evaluate", asked)
        assert (await page.send("Runtime.evaluate", {"expression": "1"}))["result"]["value"] == 1

    async def test_a_page_that_goes_away_ends_the_calls_that_wait_for_it(self, devtools: Devtools) -> None:
        page = await self.page(devtools)
        endless = {"expression": "new Promise(() => 0)", "awaitPromise": True}
        call = asyncio.ensure_future(page.send("Runtime.evaluate", endless))
        await page.send("Runtime.evaluate", {"expression": "1"})
        (target,) = (await devtools.browser.send("Target.getTargets"))["targetInfos"]
        await devtools.browser.send("Target.closeTarget", {"targetId": target["targetId"]})
        with pytest.raises(DevtoolsError):
            await asyncio.wait_for(call, 300)

    @pytest.mark.parametrize("ending", ["killed", "closed"])
    async def test_a_browser_that_ends_under_calls_ends_them_all(self, devtools: Devtools, ending: str) -> None:
        page = await self.page(devtools)
        endless = {"expression": "new Promise(() => 0)", "awaitPromise": True}
        calls = [asyncio.ensure_future(page.send("Runtime.evaluate", endless)) for _ in range(3)]
        await page.send("Runtime.evaluate", {"expression": "1"})
        if ending == "killed":
            os.killpg(devtools.pid, signal.SIGKILL)
        else:
            await devtools.close()
        found = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 300)
        assert [type(one) for one in found] == [DevtoolsError] * 3
        with pytest.raises(DevtoolsError):
            await devtools.browser.send("Browser.getVersion")

    async def test_after_close_there_is_no_process_and_no_folder(self, devtools: Devtools) -> None:
        await self.page(devtools)
        assert len(processes_of(devtools.folder)) > 1
        await devtools.close()
        until(lambda: is_gone(devtools.folder))
        await devtools.close()

    async def test_a_close_that_is_cancelled_ends_the_browser_all_the_same(self, devtools: Devtools) -> None:
        await self.page(devtools)
        closing = asyncio.create_task(devtools.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        while not is_gone(devtools.folder):
            await asyncio.sleep(0.01)

    @pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
    def test_whoever_started_it_may_be_killed_and_nothing_is_left(self, tmp_path: Path, name: str) -> None:
        program = (
            "import asyncio, json, sys; from letopis.fetch.chromium import Devtools\n"
            "async def main():\n"
            "    devtools = await Devtools.start(json.loads(sys.argv[1]))\n"
            "    print(devtools.folder, flush=True)\n"
            "    await asyncio.Event().wait()\n"
            "asyncio.run(main())"
        )
        words = [sys.executable, "-c", program, json.dumps(COMMAND)]
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        pipe = subprocess.PIPE
        with subprocess.Popen(words, env=environment, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            folder = Path(process.stdout.readline().strip())
            assert folder.parent == tmp_path
            assert processes_of(folder)
            process.send_signal(getattr(signal, name))
        until(lambda: is_gone(folder))
