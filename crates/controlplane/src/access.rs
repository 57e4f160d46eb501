//! How people reach the API servers from this machine.
//!
//! Two doors: [`socket`] mints short credentials for root alone; [`listener`]
//! reads the server name of a TLS ClientHello and passes the bytes through to
//! the API server of that name, which does the authentication. Neither ever
//! decrypts anything.

pub mod client_hello;
pub mod directory;
pub mod listener;
pub mod protocol;
pub mod socket;

pub use directory::Directory;
pub use listener::Listener;
pub use protocol::{MintedCredential, Refusal, Reply, Request, StatusReport};
