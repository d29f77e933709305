"""Settings of compaction do what they say."""

import pytest
from ledger import Ledger
from pagemaker import history

from letopis.binary import sha1_digest
from letopis.errors import UsageError
from letopis.store import solid
from letopis.store.frame_groups import frames_read_back
from letopis.store.frame_groups import solid_frames as solid_framing
from letopis.store.solid import frame_format
from letopis.store.solid.frame_reader import _frame_text, _opened
from letopis.store.solid.frame_writer import SolidOptions, encode_solid, frames_size
from letopis.store.solid.stream import parse_head


def depths(data):
    """How many differences each version of a first frame is away from the newest."""
    head = parse_head(data)
    scripts = _opened(_frame_text(data, head, None, b"", None), head, None).scripts
    found = [0]
    for index, script in enumerate(scripts, 1):
        base, at = frame_format.base_version(script, index)
        found.append(found[base] + (at < len(script)))
    return found


def pages(versions=14):
    return history(3, versions, 4000)[::-1]


@pytest.mark.parametrize("chain", [1, 3])
def test_no_more_differences_in_a_row_than_asked_for(chain):
    (frame,) = encode_solid(pages(), way=SolidOptions(chain=chain))
    assert max(depths(frame.data)) == chain
    assert solid.decode_all(frame.data) == pages()


def test_an_exact_repeat_is_no_difference():
    bodies = [body for body in pages(3) for _ in range(4)]
    (frame,) = encode_solid(bodies, way=SolidOptions(chain=2))
    assert max(depths(frame.data)) <= 2
    assert solid.decode_all(frame.data) == bodies


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_single_level_reads_back_and_never_beats_the_contest(level):
    frames = encode_solid(pages(), way=SolidOptions(level=level))
    assert frames[0].data[0] >> 3 & 3 == level - 1
    assert [body for frame in frames for body in solid.decode_all(frame.data)] == pages()
    assert frames_size(encode_solid(pages())) <= frames_size(frames)


def stored(opened, **changes):
    ledger, store = Ledger(), opened(**changes)
    for number, body in enumerate(history(3, 8, 4000)):
        ledger.put(store, [(b"k", number, b"", body)])
    for batch in store.compact(ledger.chains()):
        ledger.move(batch)
    store.release(ledger.live(), ledger.keep)
    (chain,) = ledger.chains()
    found = [store.read(entry.place) for entry in chain.entries]
    assert [sha1_digest(one.body) for one in found] == [entry.digest for entry in chain.entries]
    assert not list(store.verify(ledger.live()))
    return found


def test_a_newest_version_that_may_grow_is_kept_in_the_faster_form(opened):
    found = stored(opened, newest_growth=1.0)
    assert [one.method for one in found] == ["run"] + ["solid"] * 7
    assert found[0].decoded_bytes == len(found[0].body)


def test_a_newest_version_that_may_not_grow_stays_small(opened):
    assert {one.method for one in stored(opened)} == {"solid"}


def test_without_brotli_full_compaction_makes_the_quick_form(opened):
    assert {one.method for one in stored(opened, methods=("stored", "zstd"))} == {"run"}


def test_frames_behind_a_newest_elsewhere_are_sound_for_a_single_version_too():
    group = solid_framing(SolidOptions(), 1.0)([pages()[0]], [])
    assert [frame.count for frame in group.frames] == [1]
    assert frames_read_back(group, [pages()[0]])


def test_methods_of_the_thesis_compete_for_what_comes_in(opened):
    ledger, store = Ledger(), opened(methods=("gzip", "mgz1"))
    body = b"<TABLE>" + b"<td align=left width=10><font><a href=x>word</a></font></td>\n" * 40
    (placed,) = ledger.put(store, [(b"k", 1, b"", body)])
    assert placed.method == "mgz1"
    (fact,) = store.scan()
    found = store.read(placed.place)
    assert (found.body, found.method, fact.method) == (body, "mgz1", "mgz1")
    assert not list(store.verify())


def test_a_method_that_does_not_exist_is_refused_with_the_nearest_name(opened):
    with pytest.raises(UsageError, match="did you mean 'bzip2'"):
        opened(methods=("bzip",))


def test_what_no_method_shortens_is_stored(opened):
    ledger, store = Ledger(), opened(methods=("gzip", "xz"))
    (placed,) = ledger.put(store, [(b"k", 1, b"", b"\x8a\xf1")])
    assert placed.method == "stored"


@pytest.mark.parametrize("method", ["mgz1i", "mbz1i", "mgz2i", "mbz2i"])
def test_methods_that_do_not_give_the_same_bytes_back_are_refused(opened, method):
    with pytest.raises(UsageError, match=f"{method}, which changes the case of tags.*take {method[:-1]} instead"):
        opened(methods=("gzip", method))
