from hypothesis import given
from hypothesis import strategies as st

from letopis.store import ChainEntry, ContentPlace
from letopis.store.frame_groups import READ_BOUND, affordable_to_read, frame_groups
from letopis.store.pack_compaction import quick_rewrite_count


def entries(packs):
    return [ChainEntry(100 - index, b"", b"", ContentPlace(pack, 16, index)) for index, pack in enumerate(packs)]


def share(packs, logs, solid=()):
    return quick_rewrite_count(
        entries(packs), lambda entry: entry.place.pack in logs, lambda entry: entry.place.pack in solid
    )


@given(st.lists(st.integers(0, 5_000_000), max_size=30), st.integers(1, 4))
def test_every_content_is_in_one_group_whose_head_it_can_afford(lengths, whole):
    found = list(frame_groups(lengths, whole))
    assert sorted(index for group in found for index in group) == list(range(len(lengths)))
    for group in found:
        head = lengths[group[0]]
        assert all(affordable_to_read(head, lengths[index]) for index in group[1:])


def test_small_contents_behind_a_huge_newest_get_a_newest_of_their_own():
    huge = 3_000_000
    assert huge > READ_BOUND
    assert list(frame_groups([huge, 1000, huge, 2000], 1)) == [[0, 2], [1, 3]]


def test_the_hot_versions_stay_whole():
    assert list(frame_groups([10, 11, 12, 13, 14], 3)) == [[0], [1], [2, 3, 4]]


def test_nothing_is_written_anew_when_no_version_is_loose():
    assert share([2, 2, 2], logs={9}) == 0


def test_short_runs_are_merged_and_long_ones_left():
    assert share([9] * 4 + [5] * 8 + [4] * 100, logs={9}) == 12
    assert share([9] * 4 + [5] * 9, logs={9}) == 4


def test_what_has_its_final_form_is_left():
    assert share([9] * 4 + [5] * 2, logs={9}, solid={5}) == 4


def test_a_loose_version_in_the_middle_takes_the_newer_ones_along():
    assert share([5, 9, 5, 5, 5, 5, 5], logs={9}) == 2


def test_versions_are_rewritten_a_logarithmic_number_of_times():
    packs, work, number = [], 0, 100
    for _ in range(256):
        number += 1
        packs = [number, *packs]
        taken = share(packs, logs={number})
        work += taken
        packs = [number + 10_000] * taken + packs[taken:]
        number += 1
    assert work < 256 * 10
