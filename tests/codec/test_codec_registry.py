"""Every method by name: exact, bounded, and deaf to garbage."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from contextlib import suppress
from pathlib import Path

import brotli
import pytest
from bare_installation import run_without_packages
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis import codec
from letopis.codec.methods import Gzip
from letopis.errors import CodecRefused, Damaged, UsageError
from letopis.zstandard import zstd

NAMES = codec.names()
QUICK = [name for name in NAMES if name not in ("brotli-html", "xz")]
PAGE = (
    b'<!DOCTYPE html>\n<html lang="cs"><head><title>Letopis</title></head>\n'
    b'<body><div class="x"><p>One page of many, one page of many.</p></div></body></html>\n'
)
# Data as it lies in archives: made once, readable for good.
GOLDEN = {
    "stored": (
        "3c21444f43545950452068746d6c3e0a3c68746d6c206c616e673d226373223e3c686561643e3c7469746c653e4c65746f70"
        "69733c2f7469746c653e3c2f686561643e0a3c626f64793e3c64697620636c6173733d2278223e3c703e4f6e652070616765"
        "206f66206d616e792c206f6e652070616765206f66206d616e792e3c2f703e3c2f6469763e3c2f626f64793e3c2f68746d6c"
        "3e0a"
    ),
    "gzip": (
        "1f8b0800000000000203b35174f1770e890c7055c828c9cdb1e3b201510a398979e9b64ac9c54a763619a989297636259925"
        "39a9763ea925f90599c536fa10ae8d3e5892cb26293fa5d2ce2625b34c213927b1b8d856a902a8b1c0ce3f2f55a120313d55"
        "213f4d213731af5247211f4d44cf46bf00680c5027908498a20f71070032248c3998000000"
    ),
    "bzip2": (
        "425a683931415926535986520b6200000d5f800010700580070e04c4203fe7cd602000750954d1a191a000d3d403409453d2"
        "3536147a868c23d40f498a7e9f9d4d48293fb6a1b8e12520a3d98552ad2aaf2b4e2753067698bddaa91e8d1a57e0a4c92de0"
        "9170332030f4ee516c2760aa1df1a1c51d67170a9a460962f4be11630e1bd717bdc5132b8cb9943f8bb9229c2848432905b1"
        "00"
    ),
    "mgz1": (
        "1f8b08000000000002036350606078c0c5c027c3d9e1107e7ec6010634602cd095e02400e3d928baf83b874406b82a6494e4"
        "e6d871712ae424e6a5db2a25172bd971d8f1f8a496e4176416b33271b1d9b12bf02a5528d971dbf9e7a52a1424a6a72ae4a7"
        "29e426e655ea28e4a389e8b1303230730100a7b6a7228a000000"
    ),
    "mbz1": (
        "425a6839314159265359f612fb2e000005ffe57fff4004700508075e04c4a06be7cc60005000404000c0002000741a913219"
        "3268311a0da468326d27a4c46f4a7a0d53d24f480da47a47a83d04f5189a66a0d1901a0fa601380c1f058b19945e4eb05abf"
        "a107184b31a45ec761629a1a24212a7d30f809b824f3dac759c9357943d51d2847b510d7f86c84602d20cfd1e9ccec995166"
        "ca668cd30322895df4bc2825ad69c45dc914e14243d84becb8"
    ),
    "mgz1i": (
        "1f8b08000000000002036350606078c0c5c027c3d9e1107e7ec6010634602cd095e024c060a3e8e2ef1c1219e0aa9051929b"
        "63c7c5a9909398976eab945cac64c761c7e3935a925f9059cccac4c566c7aec0ab54a164c76de79f97aa5090989eaa909fa6"
        "909b9857a9a3908f26a2c7c2c8c0cc0500708113c983000000"
    ),
    "mbz1i": (
        "425a6839314159265359d7e25cfd000003ffe57fff4004700508075e04c4a06be7cc60005000404000c0002000742244c993"
        "4c4c264c260023346934c329ea114c800132604c04c4c1a001346e840c96350181a088dcd4e8004dff596341012a38e078bf"
        "333840204620919e2693909d824d568853514985c35f094831e462837b839dc380d0a08ec1efa2a888cf29cc49092403918a"
        "6b195c3d6e739ebfe2ee48a70a121afc4b9fa0"
    ),
    "mgz2": (
        "1f8b08000000000002036350606078c0c5c027c3d9e1107e7ec6016381ae0427010628b05174f1770e890c7055c828c9cdb1"
        "e3e254c849cc4bb7554a2e56b2e3b0e3f1492dc92fc82c6665e262b36357e055aa50b2e3b6f3cf4b5528484c4f55c84f53c8"
        "4dccabd451c84713d163616460e60200138dd4f17a000000"
    ),
    "mbz2": (
        "425a683931415926535949e32b7d000003ffe57fff4004700508075e04c4a06be7cc60005000404000c0002000742224f48d"
        "3083430083041e46a304fd29ea114f50d01a21a6d11e8264d34c1310c230e021c9244a02aac8987e90e02eecd34440ab4477"
        "d272435816044211b99491e61a9d3ce9bcbda8149fba3c1faa508b9421bf307f887d0bc418c80fada608ae5ab490c4314342"
        "85566c743c8ad6bf7fc5dc914e14241278cadf40"
    ),
    "mgz2i": (
        "1f8b08000000000002036350606078c0c5c027c3d9e1107e7ec6016381ae042701061b45177fe790c80057858c92dc1c3b2e"
        "4e859cc4bc745ba5e462253b0e3b1e9fd492fc82cc6256262e363b76055ea50a253b6e3bffbc548582c4f45485fc3485dcc4"
        "bc4a1d857c34113d164606662e0028bc198b73000000"
    ),
    "mbz2i": (
        "425a683931415926535914f48bb6000001ffe57fff4004700508075e04c4a06be7cc60005000404000c0002000742220004d"
        "0c00081a3342193626a11404c4cd4c04c0681180000054a441430e3ca672f4e812c76211a409081d68b5a266b0ac202406b6"
        "b10f60e8578e5c876f436785c4f3857990991cc1c760e500143e9812fc17b2c2423c2bac2504a0c13398fe1e703d1508476f"
        "e2ee48a70a12029e9176c0"
    ),
    "fsg": (
        "1f8b08000000000002037bc0801f6494e4e6d829e426e6552a1424a6a72ad828baf83b874406b82a3070d98024157212f3d2"
        "6d95928b95ec6c32521353ec6c4a324b7252ed7c524bf20b328b6df4215c1b7db024974d527e4aa59d4d4a669942724e6271"
        "b1ad52055063819d7f5eaa0293427e9a02a38e423e9cad67a35f00d40a540d24213af519b8000447874ab4000000"
    ),
    "fsb": (
        "425a6839314159265359c7a9be9600004cff8170100008700580070e04c4203fe7cd6040002000750d534c4646801a062680"
        "6812a04ca69e5369a9a64c8d03419ea88b1f16302c62a9999ab5f4f896a5daa605070a9d61842e68b59a374b15542c2e6242"
        "99ba394d23dcf484d3e11cb5d7c029a0203140f47670744a81f782189327b3862cca51362a5552935fb93bd70838a17b0bf8"
        "da78fe2ee48a70a1218f537d2c"
    ),
    "zstd": (
        "28b52ffd20989d03004207181860ad0e0b51ede6f8582390ca2d89dd7261ce26162f215838aae5bc90b177141d7b57768172"
        "30416db243f93dadf28390aeef25adc1da261b8ea27b4f8e3257ecec36567adfd14fde78dfae3df85eb659c30335c9572de7"
        "856c248b422005f0050049183e6b7601aab5c84452560103"
    ),
    "brotli": (
        "1f9700a0ac8eb721784750351cbf231c9162fb5a8427ed4d8de1a58fc85cc281cce58b1b5d963d31e9e4400fc8df49038983"
        "f74581730c6ce6e7f1f0e8c1c35877d1328e45b499d752402d2ad6384510f8e3f86d6b4c10a2f15c03"
    ),
    "xz": (
        "fd377a585a0000016922de36020021011c00000010cf58cce0009700785d001e084506d0efa8281759d9a9f5eaa7253ec56c"
        "03dc40ae3128fafef072ad1a0d22a270189ed97e3055765312a9c42884e0fe88a31d8bf0ce974d57e48c5aeea982d8a71912"
        "4afd82f35665e267efe0930adc189d30f82e3b76c539f5257c96930a144e90784a19f62e923dc7dd5071bc4309c297c4eee0"
        "000032248c3900019001980100005248659a3e300d8b020000000001595a"
    ),
    "zstd-html": (
        "28b52ffd20980d020004023c6373223e4c65746f70697378223e3c703e4f6e656f66206d616e792c206f2e0a00d9a7223870"
        "b5b8351d49d2e11c453de01df049c4302903c30f7408cd15"
    ),
    "brotli-html": (
        "710900de7960db5eca126569a9417d5e5996f65663780de20337a7999edce8e8e4400fc8df834c83b8b7280fb81126a5b086"
        "b3312c44121d5f07e2f0fe496649c3d0022e39fb96f10bd156e503"
    ),
}
pages = st.lists(
    st.one_of(st.sampled_from([b"<p>", b"</p>", b'<a href="', b"<DIV", b"word ", b"\xc5\x99"]), st.binary(max_size=9)),
    max_size=40,
).map(b"".join)


def test_names_and_numbers_are_those_of_the_format() -> None:
    assert {name: codec.get(name).id for name in NAMES} == {
        "stored": 1, "gzip": 2, "bzip2": 3, "zstd": 32, "brotli": 33, "xz": 34, "zstd-html": 37, "brotli-html": 38,
        "mgz1": 4, "mbz1": 5, "mgz1i": 6, "mbz1i": 7, "mgz2": 8, "mbz2": 9, "mgz2i": 10, "mbz2i": 11,
        "fsg": 35, "fsb": 36,
    }  # fmt: skip
    assert {name for name in NAMES if codec.get(name).lossy} == {"mgz1i", "mbz1i", "mgz2i", "mbz2i"}
    for name in NAMES:
        assert codec.by_id(codec.get(name).id) is codec.get(name)


def test_methods_of_a_package_that_is_not_installed_name_it(tmp_path: Path) -> None:
    script = (
        "from letopis import codec\n"
        "from letopis.errors import MissingExtra\n"
        "assert codec.get('zstd').id == 32 and 'mgz1' not in codec.names()\n"
        "for ask in (lambda: codec.get('mgz1'), lambda: codec.by_id(36)):\n"
        "    try:\n"
        "        ask()\n"
        "    except MissingExtra as error:\n"
        "        print(error)\n"
    )
    done = run_without_packages(tmp_path, "-c", script)
    wanted = [f"the compression method {name} needs 'pip install letopis-codecs'" for name in ("mgz1", "fsb")]
    assert (done.stdout.splitlines(), done.stderr) == (wanted, "")


def test_unknown_names_and_numbers_say_what_to_do() -> None:
    with pytest.raises(UsageError, match="'brotli'"):
        codec.get("broti")
    with pytest.raises(Damaged, match="77"):
        codec.by_id(77)
    with pytest.raises(UsageError, match="dictionary"):
        codec.by_id(39)
    shared = codec.html_dictionary()
    assert [codec.by_id(number, shared).name for number in (39, 40)] == ["zstd-dict", "brotli-dict"]


def _check_round_trip(name: str, data: bytes) -> None:
    method = codec.get(name)
    try:
        made = method.encode(data)
    except CodecRefused:
        assert name.startswith(("mgz2", "mbz2"))
        return
    back = method.decode(made, len(data))
    assert back.lower() == data.lower() if method.lossy else back == data
    assert method.decode(made) == back


@pytest.mark.parametrize("name", QUICK)
@given(data=pages)
@settings(max_examples=40, deadline=None)
def test_round_trip(name: str, data: bytes) -> None:
    _check_round_trip(name, data)


@pytest.mark.parametrize("name", ["brotli-html", "xz"])
@given(data=pages)
@settings(max_examples=8, deadline=None)
def test_round_trip_of_the_slow_ones(name: str, data: bytes) -> None:
    _check_round_trip(name, data)


@pytest.mark.parametrize("name", NAMES)
def test_every_cut_and_every_tail_is_damaged(name: str) -> None:
    made = codec.get(name).encode(PAGE)
    if name == "stored":
        return
    for length in range(len(made)):
        with pytest.raises(Damaged):
            codec.get(name).decode(made[:length])
    with pytest.raises(Damaged):
        codec.get(name).decode(made + b"\0")


@pytest.mark.parametrize("name", NAMES)
def test_one_byte_less_than_needed_is_too_little(name: str) -> None:
    made = codec.get(name).encode(PAGE)
    with pytest.raises(Damaged):
        codec.get(name).decode(made, len(PAGE) - 1)
    assert codec.get(name).decode(made, len(PAGE)).lower() == PAGE.lower()


@pytest.mark.parametrize("name", NAMES)
@given(data=st.binary(max_size=200), place=st.integers(0, 10**6), value=st.integers(1, 255))
@settings(max_examples=60, deadline=None)
def test_garbage_and_flipped_bytes_never_crash(name: str, data: bytes, place: int, value: int) -> None:
    made = bytearray(bytes.fromhex(GOLDEN[name]))
    made[place % len(made)] ^= value
    for broken in (data, bytes(made)):
        with suppress(Damaged):
            assert len(codec.get(name).decode(broken, 10_000)) <= 10_000


BOMBS = {
    "gzip": lambda zeros: gzip.compress(zeros),
    "bzip2": lambda zeros: bz2.compress(zeros),
    "xz": lambda zeros: lzma.compress(zeros),
    "zstd": lambda zeros: zstd.compress(zeros, 19),
    "brotli": lambda zeros: brotli.compress(zeros),
    "mgz1": lambda zeros: gzip.compress(zeros),
    "fsb": lambda zeros: bz2.compress(zeros),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_stop_at_the_bound(name: str) -> None:
    bomb = BOMBS[name](bytes(20_000_000))
    assert len(bomb) < 30_000
    with pytest.raises(Damaged, match=r"more than|too much"):
        codec.get(name).decode(bomb, 100_000)


def test_a_frame_cannot_claim_a_window_beyond_the_bound() -> None:
    wide = zstd.compress(b"x" * 100, options={zstd.CompressionParameter.window_log: 27})
    assert codec.get("zstd").decode(wide, 1 << 20) == b"x" * 100
    head = bytes.fromhex("28b52ffd") + bytes([0x00, (27 - 10) << 3]) + bytes.fromhex("010000")
    assert codec.get("zstd").decode(head) == b""
    with pytest.raises(Damaged):
        codec.get("zstd").decode(head, 1000)


def test_plain_methods_are_what_their_tools_read() -> None:
    assert gzip.decompress(codec.get("gzip").encode(PAGE)) == PAGE
    assert bz2.decompress(codec.get("bzip2").encode(PAGE)) == PAGE
    assert lzma.decompress(codec.get("xz").encode(PAGE)) == PAGE
    assert zstd.decompress(codec.get("zstd").encode(PAGE)) == PAGE
    assert brotli.decompress(codec.get("brotli").encode(PAGE)) == PAGE
    assert Gzip().encode(PAGE) == Gzip().encode(PAGE)
    assert zlib.decompress(codec.get("mgz1").encode(PAGE), 31)[46:].count(b"<") < PAGE.count(b"<")


@pytest.mark.parametrize("name", NAMES)
def test_golden_data_stays_readable(name: str) -> None:
    assert codec.get(name).decode(bytes.fromhex(GOLDEN[name])) == PAGE
