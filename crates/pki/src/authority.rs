//! Authorities and what they issue.

mod profile;

use crate::key::{self, ParseKeyError};
use jiff::{SignedDuration, Timestamp};
use p256::SecretKey;
use p256::ecdsa::{DerSignature, SigningKey};
use profile::{AuthorityProfile, LeafProfile, subject};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;
use x509_cert::Certificate;
use x509_cert::builder::{Builder, CertificateBuilder};
use x509_cert::der::pem::LineEnding;
use x509_cert::der::{DateTime, DecodePem, EncodePem};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::SubjectPublicKeyInfo;
use x509_cert::time::{Time, Validity};

/// How long an authority is valid.
const AUTHORITY_LIFETIME: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// How far clocks may differ.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// An authority could not be made.
#[derive(Debug, thiserror::Error)]
#[error("failed to make the certificate authority {name:?}")]
pub struct GenerateAuthorityError {
    /// Its common name.
    name: String,
    /// Why.
    #[source]
    source: BuildError,
}

/// Stored PEM is no authority.
#[derive(Debug, thiserror::Error)]
pub enum ParseAuthorityError {
    /// The certificate cannot be read.
    #[error("failed to parse the certificate of an authority")]
    Certificate(#[source] x509_cert::der::Error),
    /// The key cannot be read.
    #[error("failed to parse the key of an authority")]
    Key(#[source] ParseKeyError),
    /// Certificate and key belong to different authorities.
    #[error("the certificate of an authority is not that of its key")]
    Mismatch,
}

/// A certificate could not be issued.
#[derive(Debug, thiserror::Error)]
pub enum IssueCertificateError {
    /// A serving certificate says for which names it is.
    #[error("a serving certificate for {common_name:?} needs a name or an address")]
    NoName {
        /// The common name asked for.
        common_name: String,
    },
    /// The authority itself is no longer, or not yet, valid.
    #[error(
        "the authority is valid until {not_after}, and cannot issue a certificate for {common_name:?} at {now}"
    )]
    AuthorityExpired {
        /// The common name asked for.
        common_name: String,
        /// End of the authority.
        not_after: Timestamp,
        /// Time of the request.
        now: Timestamp,
    },
    /// It cannot be built.
    #[error("failed to build the certificate for {common_name:?}")]
    Build {
        /// The common name asked for.
        common_name: String,
        /// Why.
        #[source]
        source: BuildError,
    },
}

/// A certificate cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A field cannot be encoded.
    #[error("a field cannot be encoded")]
    Encode(#[from] x509_cert::der::Error),
    /// The certificate cannot be assembled or signed.
    #[error("it cannot be signed")]
    Sign(#[from] x509_cert::builder::Error),
    /// The public key cannot be encoded.
    #[error("its public key cannot be encoded")]
    PublicKey(#[from] x509_cert::spki::Error),
    /// The private key cannot be encoded.
    #[error("its private key cannot be encoded")]
    PrivateKey(#[from] p256::pkcs8::Error),
    /// A time lies before 1970 or after 9999.
    #[error("{0} cannot stand in a certificate")]
    Time(Timestamp),
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// To say who a client is.
    Client,
    /// To serve.
    Server,
}

/// What a certificate is asked to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateRequest {
    /// The user, to Kubernetes.
    pub common_name: String,
    /// Its groups, to Kubernetes. All of them survive.
    pub organizations: Vec<String>,
    /// What it is for.
    pub usage: Usage,
    /// DNS names that it serves.
    pub names: Vec<String>,
    /// Addresses that it serves.
    pub addresses: Vec<IpAddr>,
    /// How long from now; never longer than the authority.
    pub lifetime: SignedDuration,
}

/// A certificate and its key.
#[derive(Clone)]
pub struct Credential {
    /// The certificate, PEM.
    pub certificate_pem: String,
    /// Its key, PKCS#8 PEM.
    pub key_pem: String,
    /// When it ends.
    pub not_after: Timestamp,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

/// An authority: a certificate that signs others.
#[derive(Clone)]
pub struct CertificateAuthority {
    certificate: Certificate,
    certificate_pem: String,
    key: SecretKey,
    not_after: Timestamp,
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateAuthority")
            .field(
                "subject",
                &self.certificate.tbs_certificate().subject().to_string(),
            )
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

impl CertificateAuthority {
    /// A new authority, valid for ten years.
    pub fn generate(common_name: &str, now: Timestamp) -> Result<Self, GenerateAuthorityError> {
        Self::build(common_name, now).map_err(|source| GenerateAuthorityError {
            name: common_name.to_owned(),
            source,
        })
    }

    fn build(common_name: &str, now: Timestamp) -> Result<Self, BuildError> {
        let key = key::generate();
        let not_after = whole_second(now) + AUTHORITY_LIFETIME;
        let builder = CertificateBuilder::new(
            AuthorityProfile {
                subject: subject(&[], common_name)?,
            },
            random_serial()?,
            validity(now, not_after)?,
            SubjectPublicKeyInfo::from_key(&key.public_key())?,
        )?;
        let certificate = builder.build::<_, DerSignature>(&SigningKey::from(key.clone()))?;
        Ok(Self {
            certificate_pem: certificate.to_pem(LineEnding::LF)?,
            certificate,
            key,
            not_after,
        })
    }

    /// The authority in this certificate and key.
    pub fn from_pem(certificate_pem: &str, key_pem: &str) -> Result<Self, ParseAuthorityError> {
        let certificate =
            Certificate::from_pem(certificate_pem).map_err(ParseAuthorityError::Certificate)?;
        let key = key::parse_private_pem(key_pem).map_err(ParseAuthorityError::Key)?;
        let own = SubjectPublicKeyInfo::from_key(&key.public_key())
            .map_err(|_| ParseAuthorityError::Mismatch)?;
        if *certificate.tbs_certificate().subject_public_key_info() != own {
            return Err(ParseAuthorityError::Mismatch);
        }
        let not_after = certificate
            .tbs_certificate()
            .validity()
            .not_after
            .to_unix_duration();
        Ok(Self {
            certificate_pem: certificate_pem.to_owned(),
            certificate,
            key,
            not_after: i64::try_from(not_after.as_secs())
                .ok()
                .and_then(|seconds| Timestamp::from_second(seconds).ok())
                .unwrap_or(Timestamp::MAX),
        })
    }

    /// Its certificate, PEM: what a verifier trusts.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Its key, PKCS#8 PEM.
    pub fn key_pem(&self) -> Result<String, ParseKeyError> {
        key::private_pem(&self.key).map_err(ParseKeyError)
    }

    /// When it ends.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Issues a certificate for a new key.
    pub fn issue(
        &self,
        request: &CertificateRequest,
        now: Timestamp,
    ) -> Result<Credential, IssueCertificateError> {
        let common_name = request.common_name.clone();
        if request.usage == Usage::Server
            && request.names.is_empty()
            && request.addresses.is_empty()
        {
            return Err(IssueCertificateError::NoName { common_name });
        }
        if now >= self.not_after {
            return Err(IssueCertificateError::AuthorityExpired {
                common_name,
                not_after: self.not_after,
                now,
            });
        }
        self.sign(request, now)
            .map_err(|source| IssueCertificateError::Build {
                common_name,
                source,
            })
    }

    fn sign(&self, request: &CertificateRequest, now: Timestamp) -> Result<Credential, BuildError> {
        let key = key::generate();
        let not_after = whole_second(now)
            .checked_add(request.lifetime)
            .map_or(self.not_after, |end| end.min(self.not_after));
        let builder = CertificateBuilder::new(
            LeafProfile {
                issuer: self.certificate.tbs_certificate().subject().clone(),
                subject: subject(&request.organizations, &request.common_name)?,
                usage: request.usage,
                names: profile::alternative_names(&request.names, &request.addresses)?,
            },
            random_serial()?,
            validity(now, not_after)?,
            SubjectPublicKeyInfo::from_key(&key.public_key())?,
        )?;
        let certificate = builder.build::<_, DerSignature>(&SigningKey::from(self.key.clone()))?;
        Ok(Credential {
            certificate_pem: certificate.to_pem(LineEnding::LF)?,
            key_pem: key::private_pem(&key)?,
            not_after,
        })
    }
}

/// Certificates know no fractions of seconds.
fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn validity(now: Timestamp, not_after: Timestamp) -> Result<Validity, BuildError> {
    let not_before = whole_second(now)
        .checked_sub(BACKDATE)
        .map_err(|_| BuildError::Time(now))?;
    Ok(Validity::new(
        certificate_time(not_before)?,
        certificate_time(not_after)?,
    ))
}

fn certificate_time(time: Timestamp) -> Result<Time, BuildError> {
    u64::try_from(time.as_second())
        .ok()
        .and_then(|seconds| DateTime::from_unix_duration(Duration::from_secs(seconds)).ok())
        .map(Time::from)
        .ok_or(BuildError::Time(time))
}

/// 127 random bits; the first byte is never 0, so that all have one length.
fn random_serial() -> Result<SerialNumber, x509_cert::der::Error> {
    let mut bytes = key::random_bytes::<16>();
    if let Some(first) = bytes.first_mut() {
        *first = (*first & 0x7f) | 0x40;
    }
    SerialNumber::new(&bytes)
}

#[cfg(test)]
mod tests;
