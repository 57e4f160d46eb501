//! Names of control groups.

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Path of a control group below the root of every tree, `neap/a/b`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CgroupPath(Utf8PathBuf);

/// A path that no control group of ours has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not a relative path of plain names")]
pub struct ParseCgroupPathError {
    /// The path.
    pub path: String,
}

impl CgroupPath {
    /// Accepts a relative path without `.` and `..`.
    pub fn new(path: impl Into<String>) -> Result<Self, ParseCgroupPathError> {
        let path = path.into();
        if path.split('/').all(|name| !matches!(name, "" | "." | "..")) {
            Ok(Self(path.into()))
        } else {
            Err(ParseCgroupPathError { path })
        }
    }

    /// A group below this one.
    pub fn join(&self, name: &str) -> Result<Self, ParseCgroupPathError> {
        Self::new(format!("{}/{name}", self.0))
    }

    /// The path below the root of a tree.
    pub fn as_path(&self) -> &Utf8Path {
        &self.0
    }
}

impl TryFrom<String> for CgroupPath {
    type Error = ParseCgroupPathError;

    fn try_from(path: String) -> Result<Self, Self::Error> {
        Self::new(path)
    }
}

impl From<CgroupPath> for String {
    fn from(path: CgroupPath) -> Self {
        path.0.into_string()
    }
}

impl fmt::Display for CgroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_path_cannot_lead_out_of_its_tree() {
        for path in [
            "",
            "/",
            "/neap",
            "..",
            "neap/../x",
            "neap/./x",
            "neap//x",
            "neap/",
            ".",
        ] {
            assert_eq!(CgroupPath::new(path).unwrap_err().path, path);
        }
    }

    #[test]
    fn a_path_is_stored_as_text_and_checked_again() {
        let path = CgroupPath::new("neap/a").unwrap().join("b").unwrap();
        assert_eq!(serde_json::to_string(&path).unwrap(), r#""neap/a/b""#);
        serde_json::from_str::<CgroupPath>(r#""../b""#).unwrap_err();
        path.join("..").unwrap_err();
    }
}
