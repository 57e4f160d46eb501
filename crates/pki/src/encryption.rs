//! Encryption of secrets at rest.

use crate::key::random_bytes;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::fmt;

/// Stored bytes are no encryption key.
#[derive(Debug, thiserror::Error)]
#[error("an encryption key has 32 bytes, and this has {length}")]
pub struct ParseEncryptionKeyError {
    /// Bytes that were found.
    pub length: usize,
}

/// The key that secrets are encrypted with at rest.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKey([u8; 32]);

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey")
    }
}

impl EncryptionKey {
    /// A new key.
    pub fn generate() -> Self {
        Self(random_bytes())
    }

    /// The key in these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ParseEncryptionKeyError> {
        bytes
            .try_into()
            .map(Self)
            .map_err(|_| ParseEncryptionKeyError {
                length: bytes.len(),
            })
    }

    /// Its bytes, to be stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The EncryptionConfiguration of an API server: secrets with this key, and
/// what was written without one stays readable. JSON, which is YAML too.
pub fn encryption_config(key: &EncryptionKey) -> String {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{
            "resources": ["secrets"],
            "providers": [
                {"secretbox": {"keys": [{"name": "key1", "secret": STANDARD.encode(key.0)}]}},
                {"identity": {}},
            ],
        }],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn secrets_are_encrypted_first_and_plain_ones_stay_readable() {
        let key = EncryptionKey::from_bytes(&[7; 32]).unwrap();
        let config: serde_json::Value = serde_json::from_str(&encryption_config(&key)).unwrap();
        let providers = config["resources"][0]["providers"].as_array().unwrap();
        assert_eq!(
            providers[0]["secretbox"]["keys"][0]["secret"],
            "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="
        );
        assert_eq!(providers.last().unwrap(), &json!({"identity": {}}));
        assert_eq!(config["resources"][0]["resources"], json!(["secrets"]));
    }

    #[test]
    fn a_key_of_another_length_is_refused() {
        assert!(EncryptionKey::from_bytes(&[0; 16]).is_err());
    }

    #[test]
    fn two_keys_differ_and_neither_is_shown() {
        let (one, other) = (EncryptionKey::generate(), EncryptionKey::generate());
        assert_ne!(one, other);
        assert_eq!(format!("{one:?}"), "EncryptionKey");
    }
}
