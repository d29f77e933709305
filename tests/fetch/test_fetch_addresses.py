from ipaddress import IPv4Address, IPv4Network, IPv6Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letopis.fetch import is_public

FORBIDDEN = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1", "224.0.0.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.0.2.1", "192.88.99.1",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:c0a8:101::1", "2001::1", "fe80::1", "fe80::1%eth0",
    "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "100::1", "", "not an address", "1.2.3",
]  # fmt: skip
PUBLIC = [
    "93.184.216.34",
    "1.1.1.1",
    "2606:4700::1111",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
    "172.32.0.1",
    "100.63.0.1",
]


@pytest.mark.parametrize("address", FORBIDDEN)
def test_refuses_what_is_not_the_public_internet(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_allows_the_public_internet(address: str) -> None:
    assert is_public(address)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_ipv6_forms_are_judged_by_the_ipv4_address_they_carry(number: int) -> None:
    plain = IPv4Address(number)
    for prefix in (0xFFFF << 32, 0x64FF9B << 96):
        assert is_public(str(IPv6Address(prefix | number))) == is_public(str(plain))


@given(st.sampled_from(["10.0.0.0/8", "127.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12"]), st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_every_address_of_private_networks_is_refused(network: str, number: int) -> None:
    net = IPv4Network(network)
    assert not is_public(str(net[number % net.num_addresses]))
