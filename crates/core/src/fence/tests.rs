//! What a container may be, as tables.

use super::*;

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn container() -> ObservedContainer {
    ObservedContainer {
        id: "c1".to_owned(),
        sandbox: "s1".to_owned(),
        pod: "p1".to_owned(),
        capabilities: names(&["CHOWN", "NET_RAW"]),
        seccomp: Protection::Present,
        masks: Protection::Present,
        no_hooks: Protection::Present,
        mounts: vec![ObservedMount::Kernel {
            kind: "proc".to_owned(),
        }],
    }
}

fn mounted(places: &[&str]) -> Result<(), Refusal> {
    decide_create(&ObservedContainer {
        mounts: vec![ObservedMount::OfNode {
            source: "/asked".to_owned(),
            places: names(places),
        }],
        ..container()
    })
}

fn sentence(outcome: Result<(), Refusal>) -> String {
    outcome.map_or_else(|refusal| refusal.to_string(), |()| "allowed".to_owned())
}

#[test]
fn an_ordinary_container_is_made() {
    assert_eq!(decide_create(&container()), Ok(()));
}

#[test]
fn what_is_refused_is_said_in_one_sentence() {
    let with = |capabilities: &[&str]| {
        sentence(decide_create(&ObservedContainer {
            capabilities: names(capabilities),
            ..container()
        }))
    };
    assert_eq!(
        with(&["CHOWN", "SYS_ADMIN"]),
        "capability SYS_ADMIN is not allowed on this node: the cluster has allowPrivileged false"
    );
    assert_eq!(
        with(&["BPF", "SYS_ADMIN"]),
        "capabilities BPF, SYS_ADMIN are not allowed on this node: the cluster has allowPrivileged false"
    );
    assert_eq!(
        with(&["A", "B", "C", "D", "E"]),
        "capabilities A, B, C and 2 more are not allowed on this node: the cluster has allowPrivileged false"
    );
    assert_eq!(
        sentence(mounted(&["/run"])),
        "host path /asked, which leads to /run, is not allowed on this node: the cluster has allowPrivileged false"
    );
}

#[test]
fn capabilities_are_bounded() {
    let check = |name: &str, allowed: bool| {
        let made = decide_create(&ObservedContainer {
            capabilities: names(&[name]),
            ..container()
        });
        assert_eq!(made.is_ok(), allowed, "{name}");
        assert_eq!(decide_exec(&names(&[name])).is_ok(), allowed, "{name}");
    };
    for name in CAPABILITIES {
        check(name, true);
    }
    for name in [
        "AUDIT_CONTROL",
        "AUDIT_READ",
        "BLOCK_SUSPEND",
        "BPF",
        "CHECKPOINT_RESTORE",
        "DAC_READ_SEARCH",
        "LEASE",
        "LINUX_IMMUTABLE",
        "MAC_ADMIN",
        "MAC_OVERRIDE",
        "PERFMON",
        "SYSLOG",
        "SYS_ADMIN",
        "SYS_BOOT",
        "SYS_MODULE",
        "SYS_NICE",
        "SYS_PACCT",
        "SYS_PTRACE",
        "SYS_RAWIO",
        "SYS_RESOURCE",
        "SYS_TIME",
        "SYS_TTY_CONFIG",
        "WAKE_ALARM",
        "SOMETHING_NEW",
        "",
    ] {
        check(name, false);
    }
}

#[test]
fn only_what_is_the_pods_or_everybodys_is_shown() {
    for place in [
        "/tmp",
        "/tmp/build/1",
        "/var/log",
        "/var/log/pods",
        "/var/cache",
        "/usr/share/zoneinfo",
        "/etc/localtime",
        "/dev/shm",
        "/var/lib/kubelet/pods/p1/etc-hosts",
        "/var/lib/kubelet/pods/p1/containers/main/1f",
        "/var/lib/kubelet/pods/p1/volumes/kubernetes.io~secret/token",
        "/var/lib/kubelet/pods/p1/volumes/kubernetes.io~empty-dir/work/deep/er",
        "/var/lib/kubelet/pods/p1/volume-subpaths/work/main/0",
        "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/s1/hostname",
        "/run/containerd/io.containerd.grpc.v1.cri/sandboxes/s1/shm",
        "/run/containerd/io.containerd.grpc.v1.cri/image-volumes/s1/sha",
        "/var/lib/containerd/io.containerd.grpc.v1.cri/containers/c1/volumes/v",
    ] {
        assert_eq!(mounted(&[place]), Ok(()), "{place}");
    }
    for place in [
        "",
        "/",
        "/dev",
        "/dev/net/tun",
        "/etc",
        "/etc/cni",
        "/etc/cni/net.d",
        "/neap",
        "/neap/bin",
        "/neap/config/kubelet.key",
        "/proc",
        "/proc/sys/net",
        "/run",
        "/run/cdi",
        "/run/containerd",
        "/run/containerd/containerd.sock",
        "/run/nri",
        "/sys",
        "/sys/fs/cgroup",
        "/tmpfoo",
        "/tmp/../run/containerd",
        "/var",
        "/var/lib",
        "/var/lib/cni",
        "/var/lib/containerd",
        "/var/lib/kubelet",
        "/var/lib/kubelet/device-plugins",
        "/var/lib/kubelet/pods",
        "/var/lib/kubelet/pods/p1",
        "/var/lib/kubelet/pods/p1/volumes",
        "/var/lib/kubelet/pods/p1/volumes/kubernetes.io~empty-dir",
        "/var/lib/kubelet/pods/p1/plugins/x/y",
        "/var/lib/kubelet/pods/p2/volumes/kubernetes.io~secret/token",
        "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/s2/hostname",
        "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/s1",
        "/run/containerd/io.containerd.grpc.v1.cri/sandboxes",
        "/run/containerd/io.containerd.runtime.v2.task/k8s.io/c1/config.json",
    ] {
        assert!(mounted(&[place]).is_err(), "{place}");
    }
}

#[test]
fn a_path_that_a_pod_may_change_is_not_steady() {
    for (place, steady) in [
        ("/tmp/a", false),
        ("/var/log", false),
        ("/var/lib/kubelet/pods/p1/etc-hosts", true),
        ("/var/lib/kubelet/pods/p1/volumes/k/work", true),
        ("/var/lib/kubelet/pods/p1/volumes/k/work/deep", false),
        ("/var/lib/kubelet/pods/p1/volume-subpaths/work/main/0", true),
        (
            "/var/lib/kubelet/pods/p1/volume-subpaths/work/main/0/deep",
            false,
        ),
        (
            "/run/containerd/io.containerd.grpc.v1.cri/sandboxes/s1/shm",
            true,
        ),
    ] {
        assert_eq!(is_steady(place), steady, "{place}");
    }
}

#[test]
fn a_bind_is_judged_by_every_place_that_it_leads_to() {
    let own = "/var/lib/kubelet/pods/p1/volume-subpaths/root/main/0";
    assert_eq!(mounted(&[own, "/tmp/work"]), Ok(()));
    assert!(mounted(&[own, "/run/containerd"]).is_err());
    // What cannot be found anywhere is not shown.
    assert!(mounted(&[own, ""]).is_err());
}

#[test]
fn a_container_without_a_name_owns_nothing() {
    for name in ["", ".", "..", "../p1", "a/b"] {
        let nameless = ObservedContainer {
            pod: name.to_owned(),
            sandbox: name.to_owned(),
            id: name.to_owned(),
            ..container()
        };
        for place in [
            "/var/lib/kubelet/pods/p1/etc-hosts",
            "/var/lib/kubelet/pods//etc-hosts",
            "/run/containerd/io.containerd.grpc.v1.cri/sandboxes/s1/shm",
            "/var/lib/kubelet/etc-hosts",
        ] {
            assert!(!is_for(&nameless, place), "{name:?} {place}");
        }
    }
}

#[test]
fn nothing_that_keeps_a_container_in_may_be_missing() {
    let check = |change: fn(&mut ObservedContainer), refusal| {
        let mut changed = container();
        change(&mut changed);
        assert_eq!(decide_create(&changed), Err(refusal));
    };
    check(|c| c.seccomp = Protection::Absent, Refusal::Unconfined);
    check(|c| c.masks = Protection::Absent, Refusal::UnmaskedProc);
    check(|c| c.no_hooks = Protection::Absent, Refusal::Hooks);
    check(
        |c| {
            c.mounts = vec![ObservedMount::Kernel {
                kind: "ext4".to_owned(),
            }];
        },
        Refusal::Kind("ext4".to_owned()),
    );
}
