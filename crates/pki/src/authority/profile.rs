//! What stands in our certificates.

use super::Usage;
use std::net::IpAddr;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::builder::Result;
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::certificate::TbsCertificate;
use x509_cert::der::asn1::{Any, Ia5String, ObjectIdentifier, Utf8StringRef};
use x509_cert::der::{self};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages,
    SubjectAltName, SubjectKeyIdentifier,
};
use x509_cert::ext::{Extension, ToExtension};
use x509_cert::name::{Name, RdnSequence, RelativeDistinguishedName};
use x509_cert::spki::SubjectPublicKeyInfoRef;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");
const SERVER_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const CLIENT_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");

/// A subject: each organization an entry of its own, then the common name.
/// Built by hand, because the text form would need escapes.
pub(super) fn subject(organizations: &[String], common_name: &str) -> der::Result<Name> {
    let mut entries = RdnSequence::default();
    for organization in organizations {
        entries.push(entry(ORGANIZATION, organization)?);
    }
    entries.push(entry(COMMON_NAME, common_name)?);
    Ok(Name::hazmat_from_rdn_sequence(entries))
}

fn entry(oid: ObjectIdentifier, value: &str) -> der::Result<RelativeDistinguishedName> {
    let value = Any::encode_from(&Utf8StringRef::new(value)?)?;
    RelativeDistinguishedName::try_from(vec![AttributeTypeAndValue { oid, value }])
}

pub(super) fn alternative_names(
    names: &[String],
    addresses: &[IpAddr],
) -> der::Result<Vec<GeneralName>> {
    let mut all = Vec::with_capacity(names.len() + addresses.len());
    for name in names {
        all.push(GeneralName::DnsName(Ia5String::new(name)?));
    }
    all.extend(addresses.iter().copied().map(GeneralName::from));
    Ok(all)
}

/// An authority that signs itself, and leaves alone.
pub(super) struct AuthorityProfile {
    pub(super) subject: Name,
}

impl BuilderProfile for AuthorityProfile {
    fn get_issuer(&self, subject: &Name) -> Name {
        subject.clone()
    }

    fn get_subject(&self) -> Name {
        self.subject.clone()
    }

    fn build_extensions(
        &self,
        own: SubjectPublicKeyInfoRef<'_>,
        issuer: SubjectPublicKeyInfoRef<'_>,
        tbs: &TbsCertificate,
    ) -> Result<Vec<Extension>> {
        let mut extensions = Vec::new();
        let mut add = |extension: Extension| extensions.push(extension);
        let subject = tbs.subject();
        add((&BasicConstraints {
            ca: true,
            path_len_constraint: Some(0),
        })
            .to_extension(subject, &[])?);
        add(
            (&KeyUsage(KeyUsages::DigitalSignature | KeyUsages::KeyCertSign | KeyUsages::CRLSign))
                .to_extension(subject, &[])?,
        );
        add((&SubjectKeyIdentifier::try_from(own)?).to_extension(subject, &[])?);
        add((&AuthorityKeyIdentifier::try_from(issuer)?).to_extension(subject, &[])?);
        Ok(extensions)
    }
}

/// A client or a server.
pub(super) struct LeafProfile {
    pub(super) issuer: Name,
    pub(super) subject: Name,
    pub(super) usage: Usage,
    pub(super) names: Vec<GeneralName>,
}

impl BuilderProfile for LeafProfile {
    fn get_issuer(&self, _subject: &Name) -> Name {
        self.issuer.clone()
    }

    fn get_subject(&self) -> Name {
        self.subject.clone()
    }

    fn build_extensions(
        &self,
        own: SubjectPublicKeyInfoRef<'_>,
        issuer: SubjectPublicKeyInfoRef<'_>,
        tbs: &TbsCertificate,
    ) -> Result<Vec<Extension>> {
        let mut extensions = Vec::new();
        let mut add = |extension: Extension| extensions.push(extension);
        let subject = tbs.subject();
        add((&BasicConstraints {
            ca: false,
            path_len_constraint: None,
        })
            .to_extension(subject, &[])?);
        add((&KeyUsage(KeyUsages::DigitalSignature.into())).to_extension(subject, &[])?);
        let purpose = match self.usage {
            Usage::Client => CLIENT_AUTH,
            Usage::Server => SERVER_AUTH,
        };
        add((&ExtendedKeyUsage(vec![purpose])).to_extension(subject, &[])?);
        add((&SubjectKeyIdentifier::try_from(own)?).to_extension(subject, &[])?);
        add((&AuthorityKeyIdentifier::try_from(issuer)?).to_extension(subject, &[])?);
        if !self.names.is_empty() {
            add((&SubjectAltName(self.names.clone())).to_extension(subject, &[])?);
        }
        Ok(extensions)
    }
}
