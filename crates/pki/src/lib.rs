//! Certificate authorities, short credentials, and the files that carry them.
//!
//! What it does: makes a [`CertificateAuthority`] and issues from it; keeps
//! the keys of a cluster in a [`KeyStore`]; writes kubeconfigs, the encryption
//! configuration and the answer of an exec plugin. Everything is P-256.
//!
//! What it must never do: talk to a network; read a clock; show a key in a
//! log. Apart from the key store it touches no file.
//!
//! Who calls it: `neap-controlplane` for clusters and the hub, and the program
//! for `neap credential`.

mod authority;
mod cluster;
mod encryption;
mod exec;
mod key;
pub mod kubeconfig;
mod store;

pub use authority::{
    CertificateAuthority, CertificateRequest, Credential, GenerateAuthorityError,
    IssueCertificateError, ParseAuthorityError, Usage,
};
pub use cluster::{ClusterPki, LoadPkiError};
pub use encryption::{EncryptionKey, ParseEncryptionKeyError, encryption_config};
pub use exec::exec_credential;
pub use key::{ParseKeyError, ServiceAccountKey};
pub use store::{FileKeyStore, KeyStore, LoadKeyError, StoreKeyError};
