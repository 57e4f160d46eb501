//! What must be so before `serve` touches anything, each with its way out.

use crate::problem::Problem;
use camino::Utf8Path;
use std::net::{SocketAddr, TcpListener};

/// Where control groups are mounted.
pub(crate) const CGROUPS: &str = "/sys/fs/cgroup";
/// Controllers that bound a node.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
/// Controllers that version 1 needs besides.
const CONTROLLERS_V1: [&str; 3] = ["cpuset", "devices", "freezer"];
/// The kernel's `sun_path` without its closing zero.
const SOCKET_PATH: usize = 107;
/// The longest path of a socket below the data folder.
const LONGEST_SOCKET: &str =
    "/clusters/00000000-0000-0000-0000-000000000000/control-plane/kine.sock";

/// Namespaces, mounts and cgroups are root's.
pub(crate) fn check_root(what: &'static str) -> Result<(), Problem> {
    if rustix::process::geteuid().is_root() {
        Ok(())
    } else {
        Err(Problem::NotRoot { what })
    }
}

/// The stores of the clusters have sockets below the folder.
pub(crate) fn check_data_dir(path: &Utf8Path) -> Result<(), Problem> {
    let (length, limit) = (path.as_str().len(), SOCKET_PATH - LONGEST_SOCKET.len());
    if length <= limit {
        Ok(())
    } else {
        Err(Problem::PathTooLong {
            path: path.to_owned(),
            length,
            limit,
        })
    }
}

/// Said before anything is started; the listener itself is opened later.
pub(crate) fn check_listen(listen: SocketAddr) -> Result<(), Problem> {
    match TcpListener::bind(listen) {
        Ok(_) => Ok(()),
        Err(why) => Err(Problem::Listen {
            listen: listen.to_string(),
            why,
        }),
    }
}

/// Nodes have the size of their class by these.
pub(crate) fn check_controllers(root: &Utf8Path) -> Result<(), Problem> {
    let missing = match std::fs::read_to_string(root.join("cgroup.controllers")) {
        Ok(unified) => missing_of(&CONTROLLERS, |name| {
            unified.split_whitespace().any(|found| found == name)
        }),
        Err(_) => {
            let of_v1 = |name: &str| root.join(name).is_dir();
            let mut missing = missing_of(&CONTROLLERS, of_v1);
            missing.extend(missing_of(&CONTROLLERS_V1, of_v1));
            missing
        }
    };
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Problem::NoControllers { missing })
    }
}

fn missing_of(wanted: &[&'static str], there: impl Fn(&str) -> bool) -> Vec<&'static str> {
    wanted.iter().copied().filter(|name| !there(name)).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_folder_is_refused_at_the_byte_that_is_too_much() {
        let limit = SOCKET_PATH - LONGEST_SOCKET.len();
        let of = |length: usize| format!("/{}", "x".repeat(length - 1));
        assert!(check_data_dir(of(limit).as_str().into()).is_ok());
        match check_data_dir(of(limit + 1).as_str().into()) {
            Err(Problem::PathTooLong {
                length,
                limit: said,
                ..
            }) => assert_eq!((length, said), (limit + 1, limit)),
            other => panic!("{other:?}"),
        }
        assert!(check_data_dir(crate::cli::DEFAULT_DATA_DIR.into()).is_ok());
    }

    #[test]
    fn a_taken_port_is_said_before_anything_starts() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        assert!(matches!(check_listen(address), Err(Problem::Listen { .. })));
        assert!(check_listen("127.0.0.1:0".parse().unwrap()).is_ok());
    }

    #[test]
    fn missing_controllers_are_named_on_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap();
        for name in ["cpu", "memory", "cpuset", "devices", "freezer"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        match check_controllers(root) {
            Err(Problem::NoControllers { missing }) => assert_eq!(missing, ["pids"]),
            other => panic!("{other:?}"),
        }
        std::fs::write(root.join("cgroup.controllers"), "cpuset cpu io pids\n").unwrap();
        match check_controllers(root) {
            Err(Problem::NoControllers { missing }) => assert_eq!(missing, ["memory"]),
            other => panic!("{other:?}"),
        }
    }
}
