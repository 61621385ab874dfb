//! Where messages may go: nowhere inside.
//!
//! Whoever may write the address of a webhook must not reach through it what only this machine and its neighbours can reach
//! (the cloud's metadata, a database, the router). So an address is looked at when it is connected to, whether it stood in
//! the setting or came from DNS, and the one that was looked at is the one that is connected to. Hosts that are named in
//! `alerts.internal_hosts` may be inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Addresses that may be connected to.
pub(super) fn admit(
    found: Vec<SocketAddr>,
    host: &str,
    internal_hosts: &[String],
) -> Result<Vec<SocketAddr>, String> {
    if internal_hosts.iter().any(|known| known.eq_ignore_ascii_case(host)) {
        return Ok(found);
    }
    let (inside, outside): (Vec<_>, Vec<_>) = found.into_iter().partition(|addr| is_internal(addr.ip()));
    match (outside.is_empty(), inside.first()) {
        (true, Some(addr)) => Err(format!(
            "{host} is the internal address {}, to which nothing is sent; alerts.internal_hosts can name hosts that may be inside",
            addr.ip()
        )),
        _ => Ok(outside),
    }
}

/// Whether an address is anything but a public one.
pub(super) fn is_internal(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => is_internal_v4(v4),
        IpAddr::V6(v6) => is_internal_v6(v6),
    }
}

fn is_internal_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    match a {
        // This network, private, loopback; multicast and what is reserved, with broadcast.
        0 | 10 | 127 | 224..=255 => true,
        // Carrier-grade NAT.
        100 => b & 0xC0 == 64,
        // Link-local, with the metadata of clouds.
        169 => b == 254,
        172 => b & 0xF0 == 16,
        // IETF assignments, documentation, the former 6to4 relays, private.
        192 => matches!((b, c), (0, 0 | 2) | (88, 99) | (168, _)),
        // Benchmarks, documentation.
        198 => b & 0xFE == 18 || (b, c) == (51, 100),
        203 => (b, c) == (0, 113),
        _ => false,
    }
}

fn is_internal_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    let v4_of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match segments {
        // The IPv4 address in it is what is reached: mapped, translated (NAT64), 6to4.
        [0, 0, 0, 0, 0, 0xFFFF, high, low] | [0x64, 0xFF9B, 0, 0, 0, 0, high, low] => {
            is_internal_v4(v4_of(high, low))
        }
        [0x2002, high, low, ..] => is_internal_v4(v4_of(high, low)),
        // Documentation, Teredo and other assignments of the IETF.
        [0x2001, 0x0DB8 | 0..=0x01FF, ..] | [0x3FFF, 0..=0x0FFF, ..] => true,
        // Only these are public at all: not loopback, unspecified, unique local, link-local, site-local, multicast, discard.
        [first, ..] => first & 0xE000 != 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both edges of every range.
    const INTERNAL: &str = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.0.3 \
        169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 \
        198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 \
        ::2 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::7f00:1 \
        64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1::1 2002:a00:1:: 3fff::1 \
        fc00::1 fd12:3456::1 fe80::1 febf::1 fec0::1 ff02::1 4000::1";

    /// Their neighbours.
    const PUBLIC: &str = "1.1.1.1 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.0.0.1 128.0.0.1 169.253.0.1 \
        169.255.0.1 172.15.0.1 172.32.0.1 192.0.1.1 192.167.0.1 192.169.0.1 198.17.0.1 198.20.0.1 \
        203.0.114.1 223.255.255.255 ::ffff:1.1.1.1 64:ff9b::101:101 2001:200::1 2606:4700::1111 2a00:1450::1 \
        2002:101:101::1 3fff:1000::1";

    #[test]
    fn what_is_internal() {
        for (ips, expected) in [(INTERNAL, true), (PUBLIC, false)] {
            for ip in ips.split_whitespace() {
                assert_eq!(is_internal(ip.parse().unwrap()), expected, "{ip}");
            }
        }
    }

    #[test]
    fn only_public_ones_of_several_addresses_are_used() {
        let both: Vec<SocketAddr> = vec!["10.0.0.1:443".parse().unwrap(), "1.1.1.1:443".parse().unwrap()];
        assert_eq!(admit(both.clone(), "h", &[]), Ok(vec![both[1]]));
        let error = admit(vec![both[0]], "h", &[]).unwrap_err();
        assert!(error.contains("internal address 10.0.0.1"), "{error}");
        assert_eq!(admit(both.clone(), "H.intranet", &["h.Intranet".to_owned()]), Ok(both));
        assert_eq!(admit(vec![], "h", &[]), Ok(vec![]));
    }
}
