//! Disks of machines on this host. Only reads.

use super::names_in;
use camino::Utf8Path;

/// Whether a machine's disk is mounted here, whose ever it is.
pub(super) fn is_disk(mount: &str) -> bool {
    let mut parts = Utf8Path::new(mount).components().rev();
    let mut is = |name: &str| parts.next().is_some_and(|part| part.as_str() == name);
    is("data") && (!is("") && is("machines")) && (!is("") && is("clusters"))
}

/// Devices that are files, each with its file.
pub(super) fn loops() -> Vec<(String, String)> {
    let devices = names_in(Utf8Path::new("/sys/block")).into_iter();
    devices
        .filter_map(|name| {
            let path = format!("/sys/block/{name}/loop/backing_file");
            let file = std::fs::read_to_string(path).ok()?;
            let file = file.trim_end_matches('\n').trim_end_matches(" (deleted)");
            Some((name, file.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_of_a_machine_is_known_by_its_place() {
        assert!(is_disk("/tmp/x/data/clusters/c-uid/machines/m-uid/data"));
        for other in [
            "/tmp/x/data/clusters/c-uid/machines/m-uid/root",
            "/tmp/x/data",
            "/data",
            "/srv/machines/m/data",
        ] {
            assert!(!is_disk(other), "{other}");
        }
    }
}
