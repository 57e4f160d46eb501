//! How large logs may grow. A log is a file and at most one older one, so that
//! it takes twice its limit at the most.

/// Bytes of a file that holds the output of a control plane.
pub const CONTROL_PLANE: u64 = 16 * 1024 * 1024;

/// MiB of a file that holds the audit log of a control plane. Its API server
/// turns it, keeps one older file, and counts in MiB.
pub const AUDIT_MIB: u64 = 16;

/// Bytes of a file that holds the output of one program of a node. There are
/// five: agent, containerd, kubelet, kube-proxy and the import of images.
pub const NODE_PROGRAM: u64 = 4 * 1024 * 1024;

/// Bytes of a file that holds what a shim itself says.
pub const SHIM: u64 = 64 * 1024;

/// A log file as it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogFill {
    /// Bytes in it.
    pub bytes: u64,
    /// Its last line has no end yet.
    pub within_line: bool,
}

/// How many bytes of what comes next still belong to a file of at most `limit`
/// bytes. With fewer than all of them, the file is to be put aside after them.
/// A line is cut only if it is longer than a whole file.
pub fn bytes_that_fit(limit: u64, file: LogFill, next: &[u8]) -> usize {
    let room = usize::try_from(limit.saturating_sub(file.bytes)).unwrap_or(usize::MAX);
    let Some((head, _)) = next.split_at_checked(room) else {
        return next.len();
    };
    if head.len() == next.len() {
        return next.len();
    }
    match head.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => at.saturating_add(1),
        None if file.bytes > 0 && !file.within_line => 0,
        None => head.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(bytes: u64, within_line: bool, next: &str) -> usize {
        bytes_that_fit(10, LogFill { bytes, within_line }, next.as_bytes())
    }

    #[test]
    fn a_file_is_filled_up_to_its_limit() {
        assert_eq!(fit(0, false, "one\ntwo\n"), 8);
        assert_eq!(fit(2, false, "one\ntwo\n"), 8);
        assert_eq!(fit(10, false, ""), 0);
    }

    #[test]
    fn a_line_that_does_not_fit_begins_the_next_file() {
        assert_eq!(fit(3, false, "one\ntwo\n"), 4);
        assert_eq!(fit(8, false, "one\n"), 0);
        assert_eq!(fit(10, false, "one\n"), 0);
    }

    #[test]
    fn a_line_longer_than_a_file_is_cut() {
        assert_eq!(fit(0, false, "a very long line\n"), 10);
        assert_eq!(fit(4, true, "very long line\n"), 6);
    }

    #[test]
    fn a_file_beyond_its_limit_takes_nothing() {
        assert_eq!(fit(99, true, "one\n"), 0);
        assert_eq!(fit(99, false, "one\n"), 0);
    }
}
