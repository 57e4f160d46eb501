//! P-256 keys, and the bytes that must not be guessed.

use p256::SecretKey;
use p256::elliptic_curve::Generate;
use p256::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey, LineEnding};
use rand::RngCore;
use std::fmt;

/// A key is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("failed to parse a P-256 private key")]
pub struct ParseKeyError(#[source] pub(crate) p256::pkcs8::Error);

/// A private key as PKCS#8, which Go and rustls both read.
pub(crate) fn private_pem(key: &SecretKey) -> Result<String, p256::pkcs8::Error> {
    Ok(key.to_pkcs8_pem(LineEnding::LF)?.to_string())
}

pub(crate) fn parse_private_pem(pem: &str) -> Result<SecretKey, ParseKeyError> {
    SecretKey::from_pkcs8_pem(pem).map_err(ParseKeyError)
}

pub(crate) fn generate() -> SecretKey {
    SecretKey::generate()
}

/// Bytes from the system's generator.
#[expect(
    clippy::disallowed_methods,
    reason = "key material is the edge where entropy enters"
)]
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

/// The key that signs the tokens of ServiceAccounts.
#[derive(Clone)]
pub struct ServiceAccountKey {
    private_pem: String,
    public_pem: String,
}

impl fmt::Debug for ServiceAccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAccountKey").finish_non_exhaustive()
    }
}

impl ServiceAccountKey {
    /// A new key.
    pub fn generate() -> Self {
        Self::from_key(&generate()).expect("a key that was just made can be encoded")
    }

    /// The key in this PEM.
    pub fn from_pem(pem: &str) -> Result<Self, ParseKeyError> {
        Self::from_key(&parse_private_pem(pem)?).map_err(ParseKeyError)
    }

    fn from_key(key: &SecretKey) -> Result<Self, p256::pkcs8::Error> {
        Ok(Self {
            private_pem: private_pem(key)?,
            public_pem: key.public_key().to_public_key_pem(LineEnding::LF)?,
        })
    }

    /// The private half, PKCS#8.
    pub fn private_pem(&self) -> &str {
        &self.private_pem
    }

    /// The public half.
    pub fn public_pem(&self) -> &str {
        &self.public_pem
    }
}
