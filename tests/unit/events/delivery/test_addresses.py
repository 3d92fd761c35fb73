"""A webhook is sent to public addresses only."""

from __future__ import annotations

import random
from ipaddress import IPv4Address, IPv6Network, ip_address

import pytest
from ssrfguard import Policy

from orchestrator.common.errors import InvalidRequest
from orchestrator.events.delivery.addresses import MAX_URL, AddressRules, Target

RULES = AddressRules(own_hosts=frozenset({"hooks.berth.example"}))
LOCAL = AddressRules(plain_http=True, loopback=True)

PUBLIC = (
    *("1.1.1.1", "8.8.8.8", "52.95.110.1", "203.0.114.1", "2606:4700::1111", "2a00:1450:4001:80e::200e"),
    # The neighbours of networks that are inside.
    *("9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255"),
    *("169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0"),
    *("223.255.255.255", "::ffff:8.8.8.8", "2001:200::1", "2003::1"),
)
INSIDE = (
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.8.8.8"),
    *("169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.0.170", "192.0.2.1"),
    *("192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::ffff:0:7f00:1"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2001:10::1"),
    *("2002:7f00:1::1", "2002:a9fe:a9fe::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1"),
    *("fec0::1", "ff02::1", "fe80::1%eth0", "not an address", ""),
    # Services of cloud providers: metadata, credentials, time, names.
    *("169.254.169.253", "169.254.169.123", "169.254.170.23", "100.100.100.200", "192.0.0.192", "fd00:ec2::23"),
    # The last addresses of networks, and an IPv4 address in other clothes, public or not.
    *("127.255.255.255", "192.168.255.255", "0.0.0.1", "255.255.255.254", "fdff:ffff::1", "febf::1"),
    *(
        "::ffff:100.64.0.1",
        "::ffff:192.168.0.1",
        "::808:808",
        "::ffff:0:808:808",
        "64:ff9b::808:808",
        "2002:808:808::1",
    ),
    *("4000::1", "e000::1", "2001:20::1", "010.0.0.1", "0x7f.0.0.1", "127.1", "2130706433", "127.0.0.1 ", "[::1]"),
)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert RULES.allows(address)


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_inside_is_not_allowed(address: str) -> None:
    assert not RULES.allows(address)


ODD_NETWORKS = (
    *("::/8", "::ffff:0:0/96", "64:ff9b::/96", "100::/64", "2000::/3", "2001::/23", "2002::/16", "2620:4f:8000::/48"),
    *("3fff::/20", "4000::/2", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
)


def test_nothing_is_allowed_that_another_implementation_refuses() -> None:
    """``ssrfguard`` keeps its own table of the registries of special addresses."""
    rng, oracle = random.Random(20_261_117), Policy()
    networks = [IPv6Network(each) for each in ODD_NETWORKS]
    allowed = []
    for _ in range(10_000):
        network = rng.choice(networks)
        for address in (IPv4Address(rng.getrandbits(32)), network[rng.getrandbits(128 - network.prefixlen)]):
            if RULES.allows(str(address)):
                allowed.append(address)
    assert len(allowed) > 5_000
    assert [address for address in allowed if not oracle.permits_address(address)] == []


@pytest.mark.parametrize("address", PUBLIC)
def test_another_implementation_allows_the_same_public_addresses(address: str) -> None:
    assert Policy().permits_address(ip_address(address))


def test_no_host_is_allowed_that_another_implementation_refuses_or_reads_otherwise() -> None:
    """Hosts of odd pieces: two programs that read one URL in two ways are how filters are passed."""
    rng = random.Random(20_261_118)
    oracle = Policy(allowed_schemes=frozenset({"https"}), allowed_ports=frozenset(range(1, 65_536)))
    odd = (
        "127.0.0.1",
        "8.8.8.8",
        "::1",
        "::ffff:127.0.0.1",
        "0x7f",
        "017",
        "localhost",
        "example",
        "com",
        "xn--a",
        ":8443",
    )
    pieces = [*odd, *"...@@::##??//[]01a- \\\t\n$!*+~,;=", "%2e", "%00", *"\u3002\uff0e\u2460\xad\u0131"]
    allowed = 0
    for _ in range(20_000):
        url = "https://" + "".join(rng.choices(pieces, k=rng.randint(1, 5)))
        try:
            target = RULES.parse(url)
        except InvalidRequest:
            continue
        allowed += 1
        other = oracle.check_url(url)
        assert (other.host.removesuffix("."), other.port) == (target.host, target.port), url
    assert allowed > 100


@pytest.mark.parametrize("inside", ["127.0.0.1", "169.254.169.254", "fd00:ec2::254"])
def test_a_name_with_one_address_inside_is_refused(inside: str) -> None:
    assert RULES.choose(["8.8.8.8", inside, "1.1.1.1"]) is None


def test_a_name_without_an_address_is_refused() -> None:
    assert RULES.choose([]) is None


def test_ipv4_comes_first() -> None:
    assert RULES.choose(["2606:4700::1111", "8.8.8.8", "1.1.1.1"]) == "8.8.8.8"


URLS = {
    "https://example.com": Target("https", "example.com", 443, "/"),
    "https://EXAMPLE.com./a/b?c=d": Target("https", "example.com", 443, "/a/b?c=d"),
    "https://example.com:8443/a": Target("https", "example.com", 8_443, "/a"),
    "https://example.com:30000/?": Target("https", "example.com", 30_000, "/"),
    "https://8.8.8.8/a": Target("https", "8.8.8.8", 443, "/a"),
    "https://[2606:4700::1111]:443/a": Target("https", "2606:4700::1111", 443, "/a"),
    "https://a_b.xn--bcher-kva.example/%20": Target("https", "a_b.xn--bcher-kva.example", 443, "/%20"),
}


@pytest.mark.parametrize(("url", "target"), URLS.items(), ids=URLS)
def test_a_url_is_taken_apart_once(url: str, target: Target) -> None:
    assert RULES.parse(url) == target


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://example.com/a", "example.com"),
        ("https://example.com:8443/a", "example.com:8443"),
        ("https://[2606:4700::1111]/a", "[2606:4700::1111]"),
        ("https://[2606:4700::1111]:8443/a", "[2606:4700::1111]:8443"),
    ],
)
def test_the_host_header_names_a_port_only_if_it_is_unusual(url: str, authority: str) -> None:
    target = RULES.parse(url)
    assert target.authority == authority
    assert target.url == url


NOT_ALLOWED = (
    *("https://localhost/", "https://LOCALHOST./", "https://metadata/", "https://hooks.berth.example/hooks/src_1"),
    *("https://HOOKS.berth.example./", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:169.254.169.254]/"),
    *("https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://127.1/", "https://1.2.3/"),
    *(
        "https://0/",
        "https://8.8.8.8./",
        "https://example.0x7f/",
        "https://169.254.169.254/latest/meta-data/",
        "https://10.0.0.1:8443/",
    ),
    *("https://example.com:22/", "https://example.com:80/", "https://example.com:0/", "https://example.com:3306/"),
    *("https://example.com:6379/", "https://example.com:9200/", "https://example.com:27017/"),
)
MALFORMED = (
    *("", "example.com", "//example.com", "http://example.com/", "ftp://example.com/", "file:///etc/passwd"),
    *("gopher://example.com/", "javascript:alert(1)", "https://", "https:///path", "https://user@example.com/"),
    *("https://user:secret@example.com/", "https://example.com#@evil.example/", "https://example.com/#a"),
    *(
        "https://example.com\\@evil.example/",
        "https://example.com /",
        "https://exa mple.com/",
        "https://ex\tample.com/",
    ),
    *("https://example.com/\r\nHost: inside", "https://①②⑦.0.0.1/", "https://bücher.example/", "https://.example.com/"),
    *("https://exa..mple.com/", "https://-a.example/", "https://a-.example/", "https://%31%32%37.0.0.1/"),
    *(
        "https://example.com:99999/",
        "https://example.com:-1/",
        "https://example.com:a/",
        "https://[::1/",
        "https://[1]/",
    ),
    *("https://[fe80::1%25eth0]/", f"https://{'a' * 64}.example/", f"https://example.com/{'a' * MAX_URL}"),
)


@pytest.mark.parametrize("url", NOT_ALLOWED)
def test_a_url_inside_is_refused_without_saying_which_address_it_was(url: str) -> None:
    with pytest.raises(
        InvalidRequest, match=r"^address: a webhook cannot be sent there, because the address is not allowed\.$"
    ):
        RULES.parse(url)


@pytest.mark.parametrize("url", MALFORMED, ids=lambda url: url[:40])
def test_a_url_that_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^address: a webhook cannot be sent there"):
        RULES.parse(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:3000/hook", "http://localhost:3000/hook", "http://[::1]:80/"])
def test_a_developer_receives_on_the_own_machine(url: str) -> None:
    assert LOCAL.parse(url).scheme == "http"


@pytest.mark.parametrize("address", [each for each in INSIDE if "127." not in each and each != "::1"])
def test_a_developer_reaches_nothing_else_inside(address: str) -> None:
    assert not LOCAL.allows(address)
