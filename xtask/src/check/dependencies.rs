//! Which crate may depend on which.

use std::collections::BTreeSet;

use crate::workspace::{Dependency, Package};

/// The crates of neap from the ground up. A crate depends only on crates of
/// earlier rows; crates of one row do not know each other.
const ROWS: [&[&str]; 9] = [
    &["neap-core"],
    &["neap-api"],
    &["neap-pki", "neap-process", "neap-net"],
    &["neap-kube"],
    &["neap-operator"],
    &["neap-controlplane", "neap-machine"],
    &["neap-gateway"],
    &["neap"],
    &[
        "neap-bench",
        "neap-cases",
        "neap-proofs",
        "neap-sim",
        "xtask",
        "xtask-generate",
    ],
];

/// May be a dev-dependency of every crate, and nothing else of anybody's.
const FOR_TESTS_ALONE: &str = "neap-testkit";

/// What a crate must never name, beside the rows.
const FORBIDDEN: [(&str, &[&str]); 4] = [
    (
        "neap-core",
        &[
            "async-trait",
            "futures",
            "http",
            "k8s-openapi",
            "kube",
            "rand",
            "rustix",
            "tokio",
            "tracing",
        ],
    ),
    (
        "neap-api",
        &["futures", "rand", "rustix", "tokio", "tracing"],
    ),
    (
        "neap-pki",
        &["http", "hyper-util", "kube", "tokio", "tokio-rustls"],
    ),
    (
        "neap-operator",
        &["hyper-util", "rtnetlink", "rustix", "rustls"],
    ),
];

/// Starts every build, so it must not wait for a crate of neap.
const TASK_RUNNER: &str = "xtask";

/// One TLS stack, and each of these once: two would not fit together, or
/// would both have to be kept safe.
const SECOND_STACKS: [&str; 4] = ["boring-sys", "native-tls", "openssl-sys", "ring"];
const ONCE: [&str; 4] = ["jiff", "k8s-openapi", "kube", "rustls"];

/// Every breach, as a sentence.
pub(super) fn problems(packages: &[Package]) -> Vec<String> {
    packages
        .iter()
        .flat_map(|package| {
            package
                .dependencies
                .iter()
                .filter_map(|dependency| problem(&package.name, dependency))
                .chain(unknown(&package.name))
        })
        .collect()
}

fn unknown(package: &str) -> Option<String> {
    (row(package).is_none() && package != FOR_TESTS_ALONE)
        .then(|| format!("{package} has no row: place it in xtask/src/check/dependencies.rs"))
}

fn problem(package: &str, dependency: &Dependency) -> Option<String> {
    let name = dependency.name.as_str();
    let is_dev = dependency.kind.as_deref() == Some("dev");
    let forbidden = FORBIDDEN
        .iter()
        .any(|(who, what)| *who == package && what.contains(&name));
    if forbidden && !is_dev {
        return Some(format!("{package} must never depend on {name}"));
    }
    // Only crates of this workspace have rows.
    dependency.path.as_ref()?;
    if name == FOR_TESTS_ALONE {
        return (!is_dev).then(|| format!("{package} may use {name} in its tests alone"));
    }
    if package == TASK_RUNNER {
        return Some(format!(
            "{package} depends on {name}, and has to start without neap"
        ));
    }
    let (own, other) = (row(package)?, row(name)?);
    (other >= own).then(|| format!("{package} depends on {name}, which is not below it"))
}

/// Breaches in what is compiled into neap: lines of `cargo tree` that are
/// `NAME VERSION`.
pub(super) fn problems_of_tree(tree: &str) -> Vec<String> {
    let compiled: BTreeSet<(&str, &str)> = tree
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect();
    let versions = |name: &str| compiled.iter().filter(|(other, _)| *other == name).count();
    let second = SECOND_STACKS
        .iter()
        .filter(|name| versions(name) > 0)
        .map(|name| format!("{name} is compiled in, a second TLS stack"));
    let twice = ONCE
        .iter()
        .filter(|name| versions(name) > 1)
        .map(|name| format!("{name} is compiled in {} versions", versions(name)));
    second.chain(twice).collect()
}

fn row(package: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&package))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(package: &str, name: &str, kind: Option<&str>, is_local: bool) -> Option<String> {
        let dependency = Dependency {
            name: name.to_owned(),
            kind: kind.map(str::to_owned),
            path: is_local.then(|| format!("/crates/{name}").into()),
        };
        problem(package, &dependency)
    }

    #[test]
    fn only_lower_rows_may_be_used() {
        assert_eq!(check("neap-operator", "neap-core", None, true), None);
        assert!(check("neap-core", "neap-operator", None, true).is_some());
        assert!(check("neap-machine", "neap-controlplane", None, true).is_some());
        assert!(check("neap-net", "neap-process", Some("dev"), true).is_some());
    }

    #[test]
    fn the_kit_is_for_tests() {
        assert_eq!(check("neap-core", "neap-testkit", Some("dev"), true), None);
        assert!(check("neap-core", "neap-testkit", None, true).is_some());
    }

    #[test]
    fn the_pure_layer_names_no_runtime() {
        assert!(check("neap-core", "tokio", None, false).is_some());
        assert_eq!(check("neap-core", "tokio", Some("dev"), false), None);
        assert_eq!(check("neap-net", "tokio", None, false), None);
    }

    #[test]
    fn xtask_starts_without_neap() {
        assert!(check("xtask", "neap-api", None, true).is_some());
    }

    #[test]
    fn a_second_tls_stack_or_version_is_found() {
        let tree = "rustls v0.23.1\nkube v5.0.0 (*)\nkube v5.0.0\n\nserde v1.0.1\nserde v2.0.0\n";
        assert_eq!(problems_of_tree(tree), Vec::<String>::new());
        let worse = format!("{tree}ring v0.17.1\nrustls v0.24.0\n");
        assert_eq!(
            problems_of_tree(&worse),
            [
                "ring is compiled in, a second TLS stack",
                "rustls is compiled in 2 versions",
            ]
        );
    }

    #[test]
    fn a_new_crate_needs_a_row() {
        assert!(unknown("neap-unheard-of").is_some());
        assert_eq!(unknown("neap-testkit"), None);
    }
}
