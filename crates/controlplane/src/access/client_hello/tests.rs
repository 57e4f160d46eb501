#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::cast_possible_truncation, reason = "lengths of fixtures")]

use super::*;
use rustls::pki_types::ServerName;
use std::sync::Arc;

/// What rustls, as kubectl's counterpart, really sends.
pub(in crate::access) fn rustls_hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}

fn complete(name: &str) -> ParsedHello {
    ParsedHello::Complete {
        server_name: Some(name.to_owned()),
    }
}

/// A record around a payload.
fn record(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![22, 3, 1];
    bytes.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A minimal ClientHello message with the given extensions.
fn message(extensions: &[u8]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend_from_slice(&[7; 32]);
    body.push(0);
    body.extend_from_slice(&[0, 2, 0x13, 0x01, 1, 0]);
    body.extend_from_slice(&(extensions.len() as u16).to_be_bytes());
    body.extend_from_slice(extensions);
    let mut message = vec![1];
    message.extend_from_slice(&(body.len() as u32).to_be_bytes()[1..]);
    message.extend_from_slice(&body);
    message
}

fn name_extension(name: &[u8]) -> Vec<u8> {
    let length = name.len() as u16;
    let mut bytes = vec![0, 0];
    bytes.extend_from_slice(&(length + 5).to_be_bytes());
    bytes.extend_from_slice(&(length + 3).to_be_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(name);
    bytes
}

#[test]
fn reads_the_name_of_a_real_client_hello() {
    let hello = rustls_hello("ci.team.clusters.neap.internal");
    assert_eq!(
        parse_client_hello(&hello),
        Ok(complete("ci.team.clusters.neap.internal"))
    );
}

#[test]
fn every_prefix_of_a_real_client_hello_asks_for_more() {
    let hello = rustls_hello("hub.neap.internal");
    for end in 0..hello.len() {
        let parsed = parse_client_hello(&hello[..end]).unwrap();
        let ParsedHello::Incomplete { need } = parsed else {
            panic!("complete after {end} of {} bytes", hello.len());
        };
        assert!(
            need > end && need <= hello.len(),
            "needs {need} after {end} of {}",
            hello.len()
        );
    }
}

#[test]
fn a_message_in_many_records_is_put_together() {
    let whole = message(&name_extension(b"hub.neap.internal"));
    for size in [1, 3, 7] {
        let bytes: Vec<u8> = whole.chunks(size).flat_map(record).collect();
        assert_eq!(
            parse_client_hello(&bytes),
            Ok(complete("hub.neap.internal"))
        );
    }
}

#[test]
fn upper_case_names_are_the_same_names() {
    let bytes = record(&message(&name_extension(b"HUB.neap.Internal")));
    assert_eq!(
        parse_client_hello(&bytes),
        Ok(complete("hub.neap.internal"))
    );
}

#[test]
fn an_address_brings_no_name() {
    let hello = rustls_hello("127.0.0.1");
    assert_eq!(
        parse_client_hello(&hello),
        Ok(ParsedHello::Complete { server_name: None })
    );
}

#[test]
fn plain_http_is_refused_at_its_first_byte() {
    assert_eq!(parse_client_hello(b"G"), Err(ParseClientHelloError::NotTls));
    assert_eq!(
        parse_client_hello(&[22, 2]),
        Err(ParseClientHelloError::NotTls)
    );
    assert_eq!(
        parse_client_hello(&record(&[2, 0, 0, 0])),
        Err(ParseClientHelloError::NotTls)
    );
}

#[test]
fn endless_messages_are_refused_before_they_are_held() {
    let announced = record(&[1, 0xff, 0xff, 0xff]);
    assert_eq!(
        parse_client_hello(&announced),
        Err(ParseClientHelloError::TooLong)
    );
    // A record that alone is beyond the limit.
    assert_eq!(
        parse_client_hello(&[22, 3, 1, 0x40, 0x00]),
        Err(ParseClientHelloError::TooLong)
    );
    // Records without content never make progress.
    assert_eq!(
        parse_client_hello(&[22, 3, 1, 0, 0]),
        Err(ParseClientHelloError::Malformed("record length"))
    );
}

#[test]
fn names_that_no_host_can_bear_are_refused() {
    for name in [
        b"".as_slice(),
        b"a b",
        b"a\0b",
        b"../x",
        "ü".as_bytes(),
        &[b'a'; 254],
    ] {
        let bytes = record(&message(&name_extension(name)));
        assert_eq!(
            parse_client_hello(&bytes),
            Err(ParseClientHelloError::Malformed("server name")),
            "{name:?}"
        );
    }
}

#[test]
fn no_single_changed_byte_makes_the_parser_panic_or_read_on_for_ever() {
    let hello = rustls_hello("hub.neap.internal");
    for at in 0..hello.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = hello.clone();
            changed[at] = value;
            if let Ok(ParsedHello::Incomplete { need }) = parse_client_hello(&changed) {
                assert!(need > changed.len() && need <= LIMIT);
            }
        }
    }
}

#[test]
fn lengths_that_point_outside_are_malformed() {
    let mut whole = message(&name_extension(b"hub.neap.internal"));
    // The last two bytes before the extensions are their length.
    let at = whole.len() - name_extension(b"hub.neap.internal").len() - 2;
    whole[at] = 0xff;
    assert_eq!(
        parse_client_hello(&record(&whole)),
        Err(ParseClientHelloError::Malformed("extensions"))
    );
}
