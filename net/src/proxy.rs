//! The PROXY protocol, versions 1 and 2: a balancer's line in front of a connection that says whose it is. Read to its
//! end and no further. Only who trusts the balancer may ask for it: the line is believed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt};

/// What version 2 begins with.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// No header of version 1 is longer.
const LINE_BYTES_MAX: usize = 107;
/// The longest header of version 2 that is read: the 16 fixed bytes, addresses, and what a balancer adds.
pub const HEADER_BYTES_MAX: usize = 536;
const FIXED_BYTES: usize = 16;

/// Why no address came of it. The balancer's fault, or a stranger's who came around it.
#[derive(Debug, thiserror::Error)]
pub enum BadHeader {
    #[error("the connection broke in its PROXY header: {0}")]
    Io(#[from] io::Error),
    #[error("there is no PROXY header; connect through the balancer")]
    Missing,
    #[error("the PROXY header can't be read: {0}")]
    Unreadable(&'static str),
}

/// Whose connection it is. `None`: the balancer's own, such as a health check, or one whose owner it doesn't know.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<SocketAddr>, BadHeader> {
    let mut header = Vec::with_capacity(LINE_BYTES_MAX);
    header.resize(SIGNATURE.len(), 0);
    stream.read_exact(&mut header).await?;
    if header == SIGNATURE {
        header.resize(FIXED_BYTES, 0);
        stream.read_exact(&mut header[SIGNATURE.len()..]).await?;
        let len = usize::from(u16::from_be_bytes([header[14], header[15]]));
        if FIXED_BYTES + len > HEADER_BYTES_MAX {
            return Err(BadHeader::Unreadable("it is longer than 536 bytes"));
        }
        header.resize(FIXED_BYTES + len, 0);
        stream.read_exact(&mut header[FIXED_BYTES..]).await?;
        return binary(&header);
    }
    if !header.starts_with(b"PROXY ") {
        return Err(BadHeader::Missing);
    }
    // What follows the line is another's to read, so the line is read byte by byte.
    while !header.ends_with(b"\r\n") {
        if header.len() == LINE_BYTES_MAX {
            return Err(BadHeader::Unreadable("its line is longer than 107 bytes"));
        }
        header.push(stream.read_u8().await?);
    }
    line(&header)
}

/// Version 1, from `PROXY ` to the end of the line.
fn line(header: &[u8]) -> Result<Option<SocketAddr>, BadHeader> {
    let bad = BadHeader::Unreadable;
    let text = std::str::from_utf8(header).map_err(|_| bad("its line is no text"))?;
    let text = text.strip_suffix("\r\n").ok_or(bad("its line has no end"))?;
    let words: Vec<&str> = text.split(' ').collect();
    let (from, to, from_port, to_port) = match words[..] {
        ["PROXY", "UNKNOWN", ..] => return Ok(None),
        ["PROXY", "TCP4", from, to, from_port, to_port] => {
            let ip = |text: &str| text.parse::<Ipv4Addr>().ok().map(IpAddr::V4);
            (ip(from), ip(to), from_port, to_port)
        }
        ["PROXY", "TCP6", from, to, from_port, to_port] => {
            let ip = |text: &str| text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
            (ip(from), ip(to), from_port, to_port)
        }
        _ => return Err(bad("its line is not of the form PROXY TCP4 FROM TO PORT PORT")),
    };
    // `parse` takes a plus sign, the protocol doesn't.
    let port =
        |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u16>().ok()).flatten();
    match (from, to, port(from_port), port(to_port)) {
        (Some(from), Some(_), Some(port), Some(_)) => Ok(Some(SocketAddr::new(from, port))),
        _ => Err(bad("an address or a port in its line")),
    }
}

/// Version 2, whole. What stands behind the addresses is not looked at.
fn binary(header: &[u8]) -> Result<Option<SocketAddr>, BadHeader> {
    let bad = BadHeader::Unreadable;
    let (fixed, rest) = header.split_at(FIXED_BYTES);
    match fixed[12] {
        0x20 => return Ok(None),
        0x21 => {}
        _ => return Err(bad("its version or command is unknown")),
    }
    match fixed[13] {
        0x11 | 0x12 => {
            let v4 = rest.first_chunk::<12>().ok_or(bad("it is too short for its addresses"))?;
            let [a, b, c, d, _, _, _, _, high, low, _, _] = *v4;
            let port = u16::from_be_bytes([high, low]);
            Ok(Some(SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), port)))
        }
        0x21 | 0x22 => {
            let v6 = rest.first_chunk::<36>().ok_or(bad("it is too short for its addresses"))?;
            let mut ip = [0; 16];
            ip.copy_from_slice(&v6[..16]);
            let port = u16::from_be_bytes([v6[32], v6[33]]);
            Ok(Some(SocketAddr::new(Ipv6Addr::from(ip).into(), port)))
        }
        // Unspecified, and sockets of the balancer's own machine.
        0x00 | 0x31 | 0x32 => Ok(None),
        _ => Err(bad("its address family is unknown")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> (Result<Option<SocketAddr>, BadHeader>, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut rest = bytes;
        let result = runtime.block_on(read(&mut rest));
        (result, rest.to_vec())
    }

    fn address(bytes: &[u8]) -> Option<SocketAddr> {
        let (result, rest) = parse(&[bytes, b"the rest"].concat());
        assert_eq!(rest, b"the rest");
        result.unwrap()
    }

    fn v2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        [&SIGNATURE[..], &[command, family], &(body.len() as u16).to_be_bytes(), body].concat()
    }

    /// Ports from 32,768 on, which the ancestor read as negative; both families; what a balancer adds.
    ///
    /// Holds: Q12.
    #[test]
    fn the_client_is_named_whatever_the_version() {
        let v4: SocketAddr = "203.0.113.7:56324".parse().unwrap();
        let v6: SocketAddr = "[2001:db8::7]:65535".parse().unwrap();
        assert_eq!(address(b"PROXY TCP4 203.0.113.7 10.0.0.1 56324 443\r\n"), Some(v4));
        assert_eq!(address(b"PROXY TCP6 2001:db8::7 ::1 65535 443\r\n"), Some(v6));
        assert_eq!(address(b"PROXY UNKNOWN\r\n"), None);
        assert_eq!(address(b"PROXY UNKNOWN whatever stands here\r\n"), None);
        let (from4, to4) = ([203, 0, 113, 7], [10, 0, 0, 1]);
        let ports = [0xdc, 0x04, 0x01, 0xbb];
        let body = [&from4[..], &to4, &ports].concat();
        assert_eq!(address(&v2(0x21, 0x11, &body)), Some(v4));
        let tlvs = [&body[..], &[0x02, 0, 3, b'a', b'b', b'c'], &[0x04; 400]].concat();
        assert_eq!(address(&v2(0x21, 0x11, &tlvs)), Some(v4));
        assert_eq!(address(&v2(0x20, 0x00, b"")), None);
        assert_eq!(address(&v2(0x20, 0x11, &body)), None);
        assert_eq!(address(&v2(0x21, 0x00, b"")), None);
        assert_eq!(address(&v2(0x21, 0x31, &[0; 216])), None);
        let SocketAddr::V6(six) = v6 else { panic!() };
        let body = [&six.ip().octets()[..], &[0; 16], &[0xff, 0xff, 0, 80]].concat();
        assert_eq!(address(&v2(0x21, 0x21, &body)), Some(v6));
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let missing = |bytes: &[u8]| matches!(parse(bytes).0, Err(BadHeader::Missing));
        assert!(missing(b"GET / HTTP/1.1\r\n") && missing(&[0; 20]) && missing(b"proxy TCP4 1.1.1.1"));
        let unreadable = |bytes: &[u8]| matches!(parse(bytes).0, Err(BadHeader::Unreadable(_)));
        assert!(unreadable(b"PROXY TCP4 203.0.113.7 10.0.0.1 65536 443\r\n"));
        assert!(unreadable(b"PROXY TCP4 203.0.113.7 10.0.0.1 +5 443\r\n"));
        assert!(unreadable(b"PROXY TCP4 2001:db8::7 ::1 5 443\r\n"));
        assert!(unreadable(b"PROXY TCP4 1.2.3.4\r\n"));
        assert!(unreadable(&[b"PROXY TCP4 ".as_slice(), &[b'1'; 200]].concat()));
        assert!(unreadable(&v2(0x11, 0x11, &[0; 12])));
        assert!(unreadable(&v2(0x22, 0x11, &[0; 12])));
        assert!(unreadable(&v2(0x21, 0x11, &[0; 11])));
        assert!(unreadable(&v2(0x21, 0x41, &[0; 12])));
        assert!(unreadable(&v2(0x21, 0x11, &[0; HEADER_BYTES_MAX - FIXED_BYTES + 1])));
        assert!(matches!(parse(b"PROXY TCP4 1.2.").0, Err(BadHeader::Io(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(start in 0..3usize, bytes in prop::collection::vec(any::<u8>(), 0..700)) {
            let start: &[u8] = [b"".as_slice(), b"PROXY ", &SIGNATURE][start];
            let _ = parse(&[start, &bytes[..]].concat());
        }

        #[test]
        fn an_address_comes_back(ip: IpAddr, port: u16) {
            let (kind, to) = if ip.is_ipv4() { ("TCP4", "10.0.0.1") } else { ("TCP6", "::1") };
            let text = format!("PROXY {kind} {ip} {to} {port} 443\r\n");
            prop_assert_eq!(address(text.as_bytes()), Some(SocketAddr::new(ip, port)));
        }
    }
}
