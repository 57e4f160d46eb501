//! All keys of one cluster.

use crate::authority::{CertificateAuthority, GenerateAuthorityError, ParseAuthorityError};
use crate::encryption::{EncryptionKey, ParseEncryptionKeyError};
use crate::key::{ParseKeyError, ServiceAccountKey};
use crate::store::{KeyStore, LoadKeyError, StoreKeyError};
use jiff::Timestamp;

/// The keys of a cluster could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LoadPkiError {
    /// The store cannot be read.
    #[error("failed to load {name}")]
    Load {
        /// Name in the store.
        name: &'static str,
        /// Why.
        #[source]
        source: LoadKeyError,
    },
    /// The store cannot be written.
    #[error("failed to store {name}")]
    Store {
        /// Name in the store.
        name: &'static str,
        /// Why.
        #[source]
        source: StoreKeyError,
    },
    /// An authority cannot be made.
    #[error("failed to generate {name}")]
    Generate {
        /// Name in the store.
        name: &'static str,
        /// Why.
        #[source]
        source: GenerateAuthorityError,
    },
    /// What is stored is no text.
    #[error("{name} is no PEM")]
    NoPem {
        /// Name in the store.
        name: &'static str,
    },
    /// What is stored is no authority.
    #[error("{name} is no authority")]
    ParseAuthority {
        /// Name in the store.
        name: &'static str,
        /// Why.
        #[source]
        source: ParseAuthorityError,
    },
    /// What is stored is no key.
    #[error("{name} is no key")]
    ParseKey {
        /// Name in the store.
        name: &'static str,
        /// Why.
        #[source]
        source: ParseKeyError,
    },
    /// What is stored is no encryption key.
    #[error("{name} is no encryption key")]
    ParseEncryptionKey {
        /// Name in the store.
        name: &'static str,
        /// Why.
        #[source]
        source: ParseEncryptionKeyError,
    },
}

/// All keys of one cluster: an authority for each direction of trust, so that
/// a serving certificate is never taken for a client's.
#[derive(Clone, Debug)]
pub struct ClusterPki {
    /// Signs what serves.
    pub server: CertificateAuthority,
    /// Signs who calls.
    pub client: CertificateAuthority,
    /// Signs the API server as a proxy in front of other API servers.
    pub front_proxy: CertificateAuthority,
    /// Signs the tokens of ServiceAccounts.
    pub service_account: ServiceAccountKey,
    /// Encrypts secrets at rest.
    pub encryption_key: EncryptionKey,
}

impl ClusterPki {
    /// Loads the keys, and makes and stores those that are absent. What is
    /// there and cannot be read is an error, never made anew: data may be
    /// encrypted with it.
    pub fn load_or_generate(store: &dyn KeyStore, now: Timestamp) -> Result<Self, LoadPkiError> {
        Ok(Self {
            server: authority(store, "server-ca.pem", "neap server CA", now)?,
            client: authority(store, "client-ca.pem", "neap client CA", now)?,
            front_proxy: authority(store, "front-proxy-ca.pem", "neap front proxy CA", now)?,
            service_account: service_account(store, "service-account.pem")?,
            encryption_key: encryption_key(store, "encryption.key")?,
        })
    }
}

fn load(store: &dyn KeyStore, name: &'static str) -> Result<Option<Vec<u8>>, LoadPkiError> {
    store
        .load(name)
        .map_err(|source| LoadPkiError::Load { name, source })
}

fn save(store: &dyn KeyStore, name: &'static str, bytes: &[u8]) -> Result<(), LoadPkiError> {
    store
        .store(name, bytes)
        .map_err(|source| LoadPkiError::Store { name, source })
}

fn text(name: &'static str, bytes: Vec<u8>) -> Result<String, LoadPkiError> {
    String::from_utf8(bytes).map_err(|_| LoadPkiError::NoPem { name })
}

/// Certificate and key are one entry, so that one is never without the other.
fn authority(
    store: &dyn KeyStore,
    name: &'static str,
    common_name: &str,
    now: Timestamp,
) -> Result<CertificateAuthority, LoadPkiError> {
    const KEY: &str = "-----BEGIN PRIVATE KEY-----";
    if let Some(bytes) = load(store, name)? {
        let pem = text(name, bytes)?;
        let (certificate, key) = pem
            .find(KEY)
            .map(|at| pem.split_at(at))
            .ok_or(LoadPkiError::NoPem { name })?;
        return CertificateAuthority::from_pem(certificate, key)
            .map_err(|source| LoadPkiError::ParseAuthority { name, source });
    }
    let made = CertificateAuthority::generate(common_name, now)
        .map_err(|source| LoadPkiError::Generate { name, source })?;
    let key = made
        .key_pem()
        .map_err(|source| LoadPkiError::ParseKey { name, source })?;
    save(
        store,
        name,
        format!("{}{key}", made.certificate_pem()).as_bytes(),
    )?;
    Ok(made)
}

fn service_account(
    store: &dyn KeyStore,
    name: &'static str,
) -> Result<ServiceAccountKey, LoadPkiError> {
    if let Some(bytes) = load(store, name)? {
        return ServiceAccountKey::from_pem(&text(name, bytes)?)
            .map_err(|source| LoadPkiError::ParseKey { name, source });
    }
    let made = ServiceAccountKey::generate();
    save(store, name, made.private_pem().as_bytes())?;
    Ok(made)
}

fn encryption_key(store: &dyn KeyStore, name: &'static str) -> Result<EncryptionKey, LoadPkiError> {
    if let Some(bytes) = load(store, name)? {
        return EncryptionKey::from_bytes(&bytes)
            .map_err(|source| LoadPkiError::ParseEncryptionKey { name, source });
    }
    let made = EncryptionKey::generate();
    save(store, name, made.as_bytes())?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    #[derive(Default)]
    struct MemoryStore(Mutex<BTreeMap<String, Vec<u8>>>);

    impl KeyStore for MemoryStore {
        fn load(&self, name: &str) -> Result<Option<Vec<u8>>, LoadKeyError> {
            Ok(self.0.lock().unwrap().get(name).cloned())
        }

        fn store(&self, name: &str, bytes: &[u8]) -> Result<(), StoreKeyError> {
            self.0.lock().unwrap().insert(name.into(), bytes.into());
            Ok(())
        }
    }

    fn now() -> Timestamp {
        "2026-11-29T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_second_load_finds_what_the_first_made() {
        let store = MemoryStore::default();
        let first = ClusterPki::load_or_generate(&store, now()).unwrap();
        let second = ClusterPki::load_or_generate(&store, now()).unwrap();
        for (one, other) in [
            (&first.server, &second.server),
            (&first.client, &second.client),
            (&first.front_proxy, &second.front_proxy),
        ] {
            assert_eq!(one.certificate_pem(), other.certificate_pem());
            assert_eq!(one.key_pem().unwrap(), other.key_pem().unwrap());
        }
        assert_eq!(
            first.service_account.public_pem(),
            second.service_account.public_pem()
        );
        assert_eq!(first.encryption_key, second.encryption_key);
        assert_eq!(store.0.lock().unwrap().len(), 5);
    }

    #[test]
    fn the_authorities_share_no_key() {
        let pki = ClusterPki::load_or_generate(&MemoryStore::default(), now()).unwrap();
        let mut keys = vec![
            pki.server.key_pem().unwrap(),
            pki.client.key_pem().unwrap(),
            pki.front_proxy.key_pem().unwrap(),
            pki.service_account.private_pem().to_owned(),
        ];
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 4);
    }

    #[test]
    fn what_cannot_be_read_is_not_made_anew() {
        for name in ["server-ca.pem", "service-account.pem", "encryption.key"] {
            let store = MemoryStore::default();
            ClusterPki::load_or_generate(&store, now()).unwrap();
            store.store(name, b"damaged").unwrap();
            let error = ClusterPki::load_or_generate(&store, now()).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
            assert_eq!(store.load(name).unwrap().unwrap(), b"damaged");
        }
    }

    #[test]
    fn a_debug_print_shows_no_key() {
        let pki = ClusterPki::load_or_generate(&MemoryStore::default(), now()).unwrap();
        let shown = format!("{pki:?}");
        assert!(!shown.contains("PRIVATE"), "{shown}");
        assert!(shown.contains("neap server CA"), "{shown}");
    }
}
