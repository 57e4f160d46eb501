//! Which form a data folder has. An older one is brought up to date when it
//! is served, a newer one is refused before anything in it is touched.

use crate::problem::Problem;
use anyhow::Context as _;
use camino::Utf8Path;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

/// The form that this neap makes and works with. Folders of form 1 do not say
/// theirs; all else in them is the same.
const FORMAT: u32 = 2;
/// The file that says it.
const FILE: &str = "format";
/// The same while it is written.
const NEW_FILE: &str = "format.new";

/// Brings a folder up to date that has an identity, or refuses it.
///
/// # Errors
/// When a newer neap has made it, or it cannot be read or written; it is as it
/// was then.
pub(crate) fn bring_up_to_date(data_dir: &Utf8Path) -> anyhow::Result<()> {
    let found = read(data_dir)?;
    if found > FORMAT {
        return Err(Problem::NewerData {
            path: data_dir.to_owned(),
            found,
            known: FORMAT,
        }
        .into());
    }
    if found < FORMAT {
        write(data_dir).with_context(|| format!("failed to bring {data_dir} up to date"))?;
    }
    Ok(())
}

fn read(data_dir: &Utf8Path) -> anyhow::Result<u32> {
    let path = data_dir.join(FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => text
            .trim()
            .parse()
            .with_context(|| format!("{path} is damaged: it holds {text:?} and no number")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(1),
        Err(error) => Err(error).with_context(|| format!("failed to read {path}")),
    }
}

/// Whole or not at all.
fn write(data_dir: &Utf8Path) -> std::io::Result<()> {
    let temporary = data_dir.join(NEW_FILE);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    writeln!(file, "{FORMAT}")?;
    file.sync_all()?;
    std::fs::rename(&temporary, data_dir.join(FILE))?;
    std::fs::File::open(data_dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::installation::check_contents;
    use camino::Utf8PathBuf;
    use std::collections::BTreeMap;

    /// A copy of a folder that a neap of this form has made.
    fn fixture(name: &str) -> (tempfile::TempDir, Utf8PathBuf) {
        let kept = Utf8Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/data-folders")
            .join(name);
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(folder.path()).unwrap().join("data");
        for (file, bytes) in files(&kept) {
            let to = path.join(file);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::write(to, bytes).unwrap();
        }
        (folder, path)
    }

    fn files(folder: &Utf8Path) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut left = vec![folder.to_owned()];
        while let Some(next) = left.pop() {
            for entry in next.read_dir_utf8().unwrap() {
                let path = entry.unwrap().into_path();
                if path.is_dir() {
                    left.push(path);
                } else {
                    let name = path.strip_prefix(folder).unwrap().to_string();
                    found.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
        found
    }

    #[test]
    fn an_older_folder_is_brought_up_to_date_and_keeps_all_that_is_in_it() {
        let (_keep, path) = fixture("format-1");
        let before = files(&path);
        assert!(before.len() > 3, "{:?}", before.keys());
        bring_up_to_date(&path).unwrap();
        let mut after = files(&path);
        assert_eq!(after.remove("format").unwrap(), b"2\n");
        assert_eq!(after, before);
        check_contents(&path).unwrap();
        bring_up_to_date(&path).unwrap();
    }

    #[test]
    fn a_newer_folder_is_refused_and_left_as_it_is() {
        let (_keep, path) = fixture("format-1");
        std::fs::write(path.join("format"), "3\n").unwrap();
        let before = files(&path);
        let error = bring_up_to_date(&path).unwrap_err();
        match error.downcast_ref::<Problem>() {
            Some(Problem::NewerData { found: 3, .. }) => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(files(&path), before);
    }

    #[test]
    fn a_damaged_form_is_none_that_could_be_guessed() {
        let (_keep, path) = fixture("format-1");
        std::fs::write(path.join("format"), "two").unwrap();
        let error = bring_up_to_date(&path).unwrap_err();
        assert!(
            format!("{error:#}").contains("format is damaged"),
            "{error:#}"
        );
    }
}
