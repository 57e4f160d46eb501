#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use std::net::Ipv4Addr;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer, X509Certificate};

fn now() -> Timestamp {
    "2026-11-29T12:00:00.5Z".parse().unwrap()
}

fn der(pem: &str) -> Vec<u8> {
    parse_x509_pem(pem.as_bytes()).unwrap().1.contents
}

fn request(usage: Usage) -> CertificateRequest {
    CertificateRequest {
        common_name: "system:node:web, the first + only-node1".into(),
        organizations: vec!["system:nodes".into(), "neap:machines".into()],
        usage,
        names: vec!["web-node1".into()],
        addresses: vec![IpAddr::V4(Ipv4Addr::new(10, 250, 0, 11))],
        lifetime: SignedDuration::from_hours(1),
    }
}

#[test]
fn every_group_survives_in_order() {
    let authority = CertificateAuthority::generate("neap client CA", now()).unwrap();
    let issued = authority.issue(&request(Usage::Client), now()).unwrap();
    let der = der(&issued.certificate_pem);
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    let groups: Vec<_> = certificate
        .subject()
        .iter_organization()
        .map(|organization| organization.as_str().unwrap())
        .collect();
    assert_eq!(groups, ["system:nodes", "neap:machines"]);
    let names: Vec<_> = certificate
        .subject()
        .iter_common_name()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(names, ["system:node:web, the first + only-node1"]);
}

#[test]
fn the_authority_signed_it() {
    let authority = CertificateAuthority::generate("neap client CA", now()).unwrap();
    let other = CertificateAuthority::generate("neap client CA", now()).unwrap();
    let issued = authority.issue(&request(Usage::Server), now()).unwrap();
    let (issued, own, foreign) = (
        der(&issued.certificate_pem),
        der(authority.certificate_pem()),
        der(other.certificate_pem()),
    );
    let (_, issued) = X509Certificate::from_der(&issued).unwrap();
    let (_, own) = X509Certificate::from_der(&own).unwrap();
    let (_, foreign) = X509Certificate::from_der(&foreign).unwrap();
    assert_eq!(issued.issuer(), own.subject());
    let identifier = |certificate: &X509Certificate<'_>| {
        let (mut subject, mut authority) = (None, None);
        for extension in certificate.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => subject = Some(id.0.to_vec()),
                ParsedExtension::AuthorityKeyIdentifier(id) => {
                    authority = id.key_identifier.as_ref().map(|id| id.0.to_vec());
                }
                _ => {}
            }
        }
        (subject.unwrap(), authority.unwrap())
    };
    assert_eq!(identifier(&issued).1, identifier(&own).0);
    assert_ne!(identifier(&issued).1, identifier(&foreign).0);
}

#[test]
fn extensions_fit_the_usage() {
    let authority = CertificateAuthority::generate("neap server CA", now()).unwrap();
    for usage in [Usage::Client, Usage::Server] {
        let issued = authority.issue(&request(usage), now()).unwrap();
        let der = der(&issued.certificate_pem);
        let (_, certificate) = X509Certificate::from_der(&der).unwrap();
        let purpose = certificate.extended_key_usage().unwrap().unwrap().value;
        assert_eq!(purpose.client_auth, usage == Usage::Client);
        assert_eq!(purpose.server_auth, usage == Usage::Server);
        let key_usage = certificate.key_usage().unwrap().unwrap();
        assert!(key_usage.critical && key_usage.value.digital_signature());
        assert!(!key_usage.value.key_cert_sign());
        assert!(!certificate.is_ca());
        let names = certificate.subject_alternative_name().unwrap().unwrap();
        assert_eq!(
            names.value.general_names,
            [
                GeneralName::DNSName("web-node1"),
                GeneralName::IPAddress(&[10, 250, 0, 11])
            ]
        );
    }
}

#[test]
fn an_authority_may_sign_leaves_and_nothing_below() {
    let authority = CertificateAuthority::generate("neap server CA", now()).unwrap();
    let der = der(authority.certificate_pem());
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    let constraints = certificate.basic_constraints().unwrap().unwrap();
    assert!(constraints.critical && constraints.value.ca);
    assert_eq!(constraints.value.path_len_constraint, Some(0));
    assert!(
        certificate
            .key_usage()
            .unwrap()
            .unwrap()
            .value
            .key_cert_sign()
    );
    assert_eq!(
        certificate.validity().not_after.timestamp() - now().as_second(),
        10 * 365 * 24 * 3600
    );
}

#[test]
fn it_is_valid_from_five_minutes_ago_to_the_end_of_its_lifetime() {
    let authority = CertificateAuthority::generate("neap client CA", now()).unwrap();
    let issued = authority.issue(&request(Usage::Client), now()).unwrap();
    let der = der(&issued.certificate_pem);
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    assert_eq!(
        certificate.validity().not_before.timestamp(),
        now().as_second() - 300
    );
    assert_eq!(
        certificate.validity().not_after.timestamp(),
        now().as_second() + 3600
    );
    assert_eq!(issued.not_after.as_second(), now().as_second() + 3600);
}

#[test]
fn it_never_outlives_its_authority() {
    let authority = CertificateAuthority::generate("neap client CA", now()).unwrap();
    let long = CertificateRequest {
        lifetime: SignedDuration::from_hours(20 * 365 * 24),
        ..request(Usage::Client)
    };
    let issued = authority.issue(&long, now()).unwrap();
    assert_eq!(issued.not_after, authority.not_after());
    let after = authority.not_after() + SignedDuration::from_secs(1);
    assert!(matches!(
        authority.issue(&long, after),
        Err(IssueCertificateError::AuthorityExpired { .. })
    ));
}

#[test]
fn a_server_without_a_name_is_refused() {
    let authority = CertificateAuthority::generate("neap server CA", now()).unwrap();
    let nameless = CertificateRequest {
        names: vec![],
        addresses: vec![],
        ..request(Usage::Server)
    };
    assert!(matches!(
        authority.issue(&nameless, now()),
        Err(IssueCertificateError::NoName { .. })
    ));
    let client = CertificateRequest {
        usage: Usage::Client,
        ..nameless
    };
    assert!(authority.issue(&client, now()).is_ok());
}

#[test]
fn serials_and_keys_are_never_the_same() {
    let authority = CertificateAuthority::generate("neap client CA", now()).unwrap();
    let mut serials = std::collections::BTreeSet::new();
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..32 {
        let issued = authority.issue(&request(Usage::Client), now()).unwrap();
        let der = der(&issued.certificate_pem);
        let (_, certificate) = X509Certificate::from_der(&der).unwrap();
        assert_eq!(certificate.raw_serial().len(), 16);
        serials.insert(certificate.raw_serial().to_vec());
        keys.insert(issued.key_pem);
    }
    assert_eq!((serials.len(), keys.len()), (32, 32));
}

#[test]
fn an_authority_is_read_back_and_issues_alike() {
    let made = CertificateAuthority::generate("neap client CA", now()).unwrap();
    let read =
        CertificateAuthority::from_pem(made.certificate_pem(), &made.key_pem().unwrap()).unwrap();
    assert_eq!(read.not_after(), made.not_after());
    let issued = read.issue(&request(Usage::Client), now()).unwrap();
    let (issued, own) = (der(&issued.certificate_pem), der(made.certificate_pem()));
    assert_eq!(
        X509Certificate::from_der(&issued).unwrap().1.issuer(),
        X509Certificate::from_der(&own).unwrap().1.subject()
    );
}

#[test]
fn a_certificate_with_the_key_of_another_is_refused() {
    let one = CertificateAuthority::generate("one", now()).unwrap();
    let other = CertificateAuthority::generate("other", now()).unwrap();
    assert!(matches!(
        CertificateAuthority::from_pem(one.certificate_pem(), &other.key_pem().unwrap()),
        Err(ParseAuthorityError::Mismatch)
    ));
}

#[test]
fn keys_are_pkcs8() {
    let authority = CertificateAuthority::generate("neap client CA", now()).unwrap();
    let issued = authority.issue(&request(Usage::Client), now()).unwrap();
    for pem in [issued.key_pem, authority.key_pem().unwrap()] {
        assert!(
            pem.starts_with("-----BEGIN PRIVATE KEY-----\n"),
            "{}",
            &pem[..30]
        );
    }
}
