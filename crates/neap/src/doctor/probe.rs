//! Reads the facts that the doctor judges; changes nothing that stays.

use crate::clock::Stopwatch;
use crate::inotify::InotifyLimit;
use crate::problem::chain;
use anyhow::{Context as _, bail};
use camino::{Utf8Path, Utf8PathBuf};
use jiff::SignedDuration;
use neap_core::addressing::{BRIDGE_ADDRESS, NODE_NETWORK};
use neap_core::host::{Finding, HostFact, Verdict};
use neap_net::{ClusterNetwork, NetworkNamespace, ensure_cluster_network};
use rustix::process::{Resource, getrlimit};
use std::io::Write as _;
use std::process::Command;

/// Writes that are timed.
const SYNCS: usize = 9;

/// A fact, or what is said of one that cannot be read.
type Read = Result<HostFact, Finding>;

/// All that is a number or a yes or no. `place` is where the data lies.
pub(super) fn facts(place: &Utf8Path) -> Vec<Read> {
    let sysctl = |path: &str| -> anyhow::Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/sys/{path}"))?;
        Ok(text.trim().parse()?)
    };
    vec![
        read(HostFact::InotifyInstances, || {
            Ok(InotifyLimit::of_host()?.now())
        }),
        read(HostFact::InotifyWatches, || {
            sysctl("fs/inotify/max_user_watches")
        }),
        read(HostFact::RootKeys, || sysctl("kernel/keys/root_maxkeys")),
        read(HostFact::Pids, || {
            Ok(sysctl("kernel/pid_max")?.min(sysctl("kernel/threads-max")?))
        }),
        read(HostFact::OpenFiles, || {
            Ok(getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX))
        }),
        read(HostFact::FreeDisk, || free_disk(place)),
        read(HostFact::FreeMemory, free_memory),
        sync_time(place),
        Ok(HostFact::Kvm(opens("/dev/kvm"))),
    ]
}

/// A number as a fact; one that cannot be read is a warning of its own.
fn read(fact: fn(u64) -> HostFact, number: impl FnOnce() -> anyhow::Result<u64>) -> Read {
    number()
        .map(fact)
        .map_err(|error| unknown(fact(0).check(), &error))
}

fn unknown(check: &'static str, error: &anyhow::Error) -> Finding {
    Finding {
        check,
        verdict: Verdict::Warn,
        found: format!("cannot be read: {}", chain(error.as_ref())),
        remedy: None,
    }
}

fn opens(path: &str) -> bool {
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path);
    opened.is_ok()
}

fn free_disk(place: &Utf8Path) -> anyhow::Result<u64> {
    let stat = rustix::fs::statvfs(place.as_std_path())?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn free_memory() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().nth(1));
    let kibibytes: u64 = kibibytes.context("no MemAvailable")?.parse()?;
    Ok(kibibytes.saturating_mul(1024))
}

/// The median of a few small writes that reach the disk, as a store makes them.
fn sync_time(place: &Utf8Path) -> Read {
    let time = || -> anyhow::Result<SignedDuration> {
        let mut file = tempfile::tempfile_in(place.as_std_path())?;
        let mut times = Vec::with_capacity(SYNCS);
        for _ in 0..SYNCS {
            let started = Stopwatch::start();
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
            times.push(started.elapsed());
        }
        times.sort_unstable();
        times.get(SYNCS / 2).copied().context("no write was timed")
    };
    time()
        .map(HostFact::Sync)
        .map_err(|error| unknown(HostFact::Sync(SignedDuration::ZERO).check(), &error))
}

/// Makes what a cluster's network is made of, in a namespace of its own, and
/// removes it.
pub(super) async fn network(software: Option<&Utf8Path>) -> Vec<Finding> {
    let namespace = NetworkNamespace::new(format!("neap-doctor-{}", std::process::id()));
    let bridge = async {
        namespace.ensure().await?;
        let network = ClusterNetwork {
            namespace: namespace.clone(),
            address: BRIDGE_ADDRESS,
            prefix: NODE_NETWORK.prefix,
        };
        ensure_cluster_network(&network).await?;
        anyhow::Ok(())
    }
    .await;
    let mut findings = vec![tried(
        "network",
        "namespaces and bridges can be made",
        bridge,
        "the kernel has to have network namespaces (CONFIG_NET_NS) and bridges (modprobe bridge)",
    )];
    if let Some(software) = software {
        let nftables = nftables(&namespace, software.join("root")).await;
        findings.push(tried(
            "nftables",
            "rules can be read",
            nftables,
            "services of pods need it: modprobe nf_tables, or a kernel with CONFIG_NF_TABLES",
        ));
    }
    let removed = namespace.remove().map_err(anyhow::Error::from);
    let removed = removed.and_then(|()| Ok(neap_net::tidy()?));
    if let Err(error) = removed {
        findings.push(unknown("network namespace of this check", &error));
    }
    findings
}

/// Asks by the program that nodes use, from the root that they have.
async fn nftables(namespace: &NetworkNamespace, root: Utf8PathBuf) -> anyhow::Result<()> {
    let mut nft = Command::new(root.join("lib64/ld-linux-x86-64.so.2"));
    let libraries = format!("{root}/lib/x86_64-linux-gnu:{root}/usr/lib/x86_64-linux-gnu");
    nft.arg("--library-path").arg(libraries);
    nft.arg(root.join("usr/sbin/nft")).args(["list", "tables"]);
    let output = namespace.run(move || nft.output()).await??;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn tried(check: &'static str, found: &str, tried: anyhow::Result<()>, remedy: &str) -> Finding {
    match tried {
        Ok(()) => Finding {
            check,
            verdict: Verdict::Ok,
            found: found.to_owned(),
            remedy: None,
        },
        Err(error) => Finding {
            check,
            verdict: Verdict::Fail,
            found: chain(error.as_ref()),
            remedy: Some(remedy.to_owned()),
        },
    }
}
