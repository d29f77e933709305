from hypothesis import given, settings
from hypothesis import strategies as st
from memory_frontier import MemoryLeases

from letopis.frontier.leases import LeaseKeeper


def test_a_host_has_one_owner_and_a_higher_fence_for_the_next() -> None:
    store = MemoryLeases([1, 2])
    first, second = LeaseKeeper(store, "a", 60.0), LeaseKeeper(store, "b", 60.0)
    assert {lease.host for lease in first.want(0, 10)} == {1, 2}
    assert second.want(1000, 10) == []
    taken = second.want(60_000, 1)
    assert [lease.fence for lease in taken] == [2]
    assert not store.accepts(taken[0].host, 1)
    assert store.accepts(taken[0].host, 2)
    assert first.keep(60_000) == [1, 2]


def test_leases_are_extended_in_time_and_given_up_at_the_end() -> None:
    store = MemoryLeases([1])
    keeper = LeaseKeeper(store, "a", 60.0)
    keeper.want(0, 1)
    assert keeper.safe(1, 40_000)
    assert not keeper.safe(1, 55_000)
    assert keeper.keep(10_000) == []
    assert keeper.keep(30_000) == []
    assert keeper.safe(1, 75_000)
    keeper.give_up()
    assert keeper.held == {}
    assert [lease.fence for lease in LeaseKeeper(store, "b").want(31_000, 1)] == [2]


steps = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["want", "keep", "give up"]), st.integers(0, 50_000)), max_size=60
)


@given(steps)
@settings(max_examples=100)
def test_no_two_agents_are_ever_safe_on_one_host(history: list[tuple[str, str, int]]) -> None:
    store = MemoryLeases(range(4))
    agents = {name: LeaseKeeper(store, name, 60.0) for name in "abc"}
    now = 0
    for name, action, wait in history:
        now += wait
        agent = agents[name]
        if action == "want":
            agent.want(now, 2)
        elif action == "keep":
            agent.keep(now)
        else:
            agent.give_up()
        for host in range(4):
            assert sum(one.safe(host, now) for one in agents.values()) <= 1
