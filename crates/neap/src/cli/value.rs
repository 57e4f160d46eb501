//! Values on the command line: what is checked before anything is done with them.

use neap_api::names::CLUSTER_NAME_MAX;
use neap_core::duration::parse_duration;
use std::time::Duration;

/// Longest name of an account, cluster or machine.
pub(super) const LABEL_MAX: usize = 63;

/// Names become parts of URLs, of files and of other names: nothing but a
/// DNS label goes on from here.
pub(super) fn label(text: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ends = |b: Option<&u8>| b.is_some_and(|b| plain(*b));
    let bytes = text.as_bytes();
    if ends(bytes.first())
        && ends(bytes.last())
        && bytes.len() <= LABEL_MAX
        && bytes.iter().all(|b| plain(*b) || *b == b'-')
    {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "a name has at most {LABEL_MAX} lower-case letters, digits and dashes, with no dash at either end"
        ))
    }
}

/// The name of a cluster that is to be made.
pub(super) fn cluster_name(text: &str) -> Result<String, String> {
    if text.len() > CLUSTER_NAME_MAX {
        return Err(format!(
            "the name of a cluster has at most {CLUSTER_NAME_MAX} characters: its nodes are named after it"
        ));
    }
    label(text)
}

/// As `spec.version`.
pub(super) fn minor_version(text: &str) -> Result<String, String> {
    let minor = text.strip_prefix("1.").unwrap_or_default();
    if (1..=4).contains(&minor.len()) && minor.bytes().all(|b| b.is_ascii_digit()) {
        Ok(text.to_owned())
    } else {
        Err("a minor version of Kubernetes is written like 1.37".to_owned())
    }
}

/// Checks a hold and keeps its written form, which is what the record holds.
pub(super) fn hold(text: &str) -> Result<String, String> {
    parse_duration(text)
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

pub(super) fn timeout(text: &str) -> Result<Duration, String> {
    let parsed = parse_duration(text).map_err(|error| error.to_string())?;
    Duration::try_from(parsed).map_err(|error| error.to_string())
}
