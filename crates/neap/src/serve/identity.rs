//! Identity of an installation: written once, on all that it makes.

use anyhow::{Context as _, bail};
use camino::Utf8Path;
use neap_core::ids::InstallationId;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

/// Reads it, or makes it. A file that holds something else is an error: a new
/// identity would disown all that there is.
pub(super) fn load_or_make(data_dir: &Utf8Path) -> anyhow::Result<InstallationId> {
    let path = data_dir.join("installation");
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&text).with_context(|| format!("{path} is damaged")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid")
                .context("failed to make a UUID")?;
            let id = parse(&text)?;
            write(data_dir, &path, &format!("{id}\n"))
                .with_context(|| format!("failed to write {path}"))?;
            Ok(id)
        }
        Err(error) => Err(error).with_context(|| format!("failed to read {path}")),
    }
}

/// Whole or not at all.
fn write(folder: &Utf8Path, path: &Utf8Path, text: &str) -> std::io::Result<()> {
    let temporary = folder.join("installation.new");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    std::fs::File::open(folder)?.sync_all()
}

fn parse(text: &str) -> anyhow::Result<InstallationId> {
    let id = text.trim();
    let dashes: Vec<usize> = id.match_indices('-').map(|(at, _)| at).collect();
    if id.len() != 36
        || dashes != [8, 13, 18, 23]
        || !id.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
    {
        bail!("{id:?} is no UUID");
    }
    Ok(InstallationId::new(id))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn it_is_made_once_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        let made = load_or_make(path).unwrap();
        assert_eq!(load_or_make(path).unwrap(), made);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(
            load_or_make(Utf8Path::from_path(other.path()).unwrap()).unwrap(),
            made
        );
    }

    #[test]
    fn a_damaged_one_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap();
        for text in ["", "nonsense", "../../etc/passwd-000000000000000000000"] {
            std::fs::write(path.join("installation"), text).unwrap();
            assert!(load_or_make(path).is_err(), "{text:?}");
            assert_eq!(
                std::fs::read_to_string(path.join("installation")).unwrap(),
                text
            );
        }
    }
}
