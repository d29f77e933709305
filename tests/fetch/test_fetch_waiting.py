"""The end of a hop wakes the task that waits for it, at once where that is safe."""

from __future__ import annotations

import asyncio

import pytest

from letopis.fetch.curl_multi import TransferWaiter


async def _told(waiter: TransferWaiter, seen: list[object]) -> None:
    seen.append(await waiter)


@pytest.mark.parametrize(("at_once", "then"), [(True, [(0, "")]), (False, [])], ids=["at once", "in the next turn"])
async def test_the_task_goes_on_inside_finish_where_that_is_wanted(at_once: bool, then: list[object]) -> None:
    loop, seen = asyncio.get_running_loop(), list[object]()
    waiter, after = TransferWaiter(loop=loop), loop.create_future()
    task = asyncio.create_task(_told(waiter, seen))
    await asyncio.sleep(0)

    def libcurl_is_done() -> None:
        waiter.finish(0, "", at_once=at_once)
        after.set_result(list(seen))

    loop.call_soon(libcurl_is_done)
    assert await after == then
    await task
    assert seen == [(0, "")]


async def test_inside_another_task_it_waits_for_the_next_turn() -> None:
    seen: list[object] = []
    waiter = TransferWaiter(loop=asyncio.get_running_loop())
    task = asyncio.create_task(_told(waiter, seen))
    await asyncio.sleep(0)
    waiter.finish(7, "refused", at_once=True)
    assert seen == []
    await task
    assert seen == [(7, "refused")]


async def test_what_has_ended_already_is_not_waited_for() -> None:
    waiter = TransferWaiter(loop=asyncio.get_running_loop())
    waiter.finish(0, "", at_once=True)
    assert await waiter == (0, "")


async def test_only_the_first_verdict_counts() -> None:
    waiter = TransferWaiter(loop=asyncio.get_running_loop())
    waiter.finish(0, "", at_once=True)
    waiter.finish(28, "too late", at_once=True)
    assert await waiter == (0, "")


async def test_a_cancelled_task_ends_and_a_late_verdict_is_harmless() -> None:
    waiter = TransferWaiter(loop=asyncio.get_running_loop())
    task = asyncio.create_task(_told(waiter, []))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    waiter.finish(0, "", at_once=True)
    assert waiter.cancelled()


async def test_further_listeners_hear_of_it_too() -> None:
    seen: list[object] = []
    waiter = TransferWaiter(loop=asyncio.get_running_loop())
    task = asyncio.create_task(_told(waiter, seen))
    await asyncio.sleep(0)
    waiter.add_done_callback(lambda done: seen.append("listener"))
    waiter.finish(0, "", at_once=True)
    await task
    await asyncio.sleep(0)
    assert sorted(map(str, seen)) == ["(0, '')", "listener"]
