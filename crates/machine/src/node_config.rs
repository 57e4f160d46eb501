//! The configuration files of a node's programs: pure functions from the plan
//! to text.

use crate::agent::config::{CNI_DIR, CONFIG_DIR, RUNTIME_DIR};
use crate::runtime::RUNTIME_NAME;
use camino::{Utf8Path, Utf8PathBuf};
use neap_core::fence::Fence;
use neap_operator::traits::MachinePlan;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Socket of the node's containerd, inside the node.
pub(crate) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";
/// Name of the kubelet's configuration.
pub(crate) const KUBELET_FILE: &str = "kubelet.json";
/// Name of the network configuration.
pub(crate) const CNI_FILE: &str = "10-neap.conflist";

/// The programs that a node is made of, from one distro.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSoftware {
    /// Folder of `hyperkube`, `containerd`, its shim, `ctr` and `cni/`.
    pub bin: Utf8PathBuf,
    /// Root of the distro's own packages: runc, nftables, mount.
    pub root: Utf8PathBuf,
    /// OCI archives that every node holds from the start.
    pub images: Vec<Utf8PathBuf>,
    /// Name of the sandbox image, which is one of them.
    pub sandbox_image: String,
}

impl NodeSoftware {
    /// The software of the distro in this folder.
    pub fn of_distro(distro: &Utf8Path) -> Self {
        let images = ["pause", "busybox"].map(|name| distro.join(format!("images/{name}.tar")));
        Self {
            bin: distro.join("bin"),
            root: distro.join("root"),
            images: images.to_vec(),
            sandbox_image: "localhost/neap-pause:1".to_owned(),
        }
    }
}

/// What the host has, as a kubelet sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostCapacity {
    /// CPU, thousandths.
    pub(crate) cpu_milli: u64,
    /// Memory.
    pub(crate) memory_bytes: u64,
}

/// The host's capacity could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObserveHostError {
    /// A file of /proc is not readable.
    #[error("failed to read {path}")]
    Read {
        /// The file.
        path: &'static str,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It does not say.
    #[error("{path} does not say how much there is")]
    Unclear {
        /// The file.
        path: &'static str,
    },
}

/// Reads what the host has.
pub(crate) fn observe_host() -> Result<HostCapacity, ObserveHostError> {
    let read = |path: &'static str| {
        std::fs::read_to_string(path).map_err(|source| ObserveHostError::Read { path, source })
    };
    let cpus = parse_cpus(&read("/proc/cpuinfo")?).ok_or(ObserveHostError::Unclear {
        path: "/proc/cpuinfo",
    })?;
    let memory_bytes = parse_memory(&read("/proc/meminfo")?).ok_or(ObserveHostError::Unclear {
        path: "/proc/meminfo",
    })?;
    Ok(HostCapacity {
        cpu_milli: cpus * 1000,
        memory_bytes,
    })
}

fn parse_cpus(cpuinfo: &str) -> Option<u64> {
    let cpus = cpuinfo
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    u64::try_from(cpus).ok().filter(|cpus| *cpus > 0)
}

fn parse_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// All files of the node's configuration folder but the keys and the agent's
/// own, by name.
pub(crate) fn files(
    plan: &MachinePlan,
    software: &NodeSoftware,
    host: HostCapacity,
) -> Vec<(&'static str, String)> {
    let server = plan.credentials.server.as_str();
    vec![
        (KUBELET_FILE, kubelet(plan, host).to_string()),
        (
            "kubelet.kubeconfig",
            kubeconfig(server, "kubelet").to_string(),
        ),
        ("kube-proxy.json", kube_proxy(plan).to_string()),
        (
            "kube-proxy.kubeconfig",
            kubeconfig(server, "kube-proxy").to_string(),
        ),
        (
            "containerd.toml",
            containerd(&software.sandbox_image, plan.fence),
        ),
        (CNI_FILE, cni(&plan.pod_range).to_string()),
    ]
}

/// Keys and certificates of the node's configuration folder, by name.
pub(crate) fn secrets(plan: &MachinePlan) -> [(&'static str, &str); 8] {
    let credentials = &plan.credentials;
    [
        ("server-ca.crt", &credentials.server_ca),
        ("client-ca.crt", &credentials.client_ca),
        ("kubelet.crt", &credentials.client_certificate),
        ("kubelet.key", &credentials.client_key),
        ("kube-proxy.crt", &credentials.proxy_certificate),
        ("kube-proxy.key", &credentials.proxy_key),
        ("serving.crt", &credentials.serving_certificate),
        ("serving.key", &credentials.serving_key),
    ]
}

/// Labels as the kubelet's flag takes them.
pub(crate) fn labels(plan: &MachinePlan) -> String {
    let pairs: Vec<String> = plan
        .labels
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join(",")
}

fn kubelet(plan: &MachinePlan, host: HostCapacity) -> Value {
    // The node says that it has what the host has; what is reserved makes the
    // allocatable part the class. The limits themselves are in its cgroups.
    let reserved_cpu = host.cpu_milli.saturating_sub(plan.cpu_milli);
    let reserved_memory = host.memory_bytes.saturating_sub(plan.memory_bytes);
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": false,
        "failSwapOn": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": "/pods",
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": [],
        "systemReserved": {"cpu": format!("{reserved_cpu}m"), "memory": reserved_memory.to_string()},
        "oomScoreAdj": 0,
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "tlsCertFile": format!("{CONFIG_DIR}/serving.crt"),
        "tlsPrivateKeyFile": format!("{CONFIG_DIR}/serving.key"),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": format!("{CONFIG_DIR}/client-ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "readOnlyPort": 0,
        "rotateCertificates": false,
        "clusterDNS": [plan.dns],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "makeIPTablesUtilChains": false,
        "serializeImagePulls": false,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "5%",
            "imagefs.available": "5%",
            "nodefs.inodesFree": "5%",
        },
        "containerLogMaxSize": "10Mi",
        "containerLogMaxFiles": 2,
        "maxPods": plan.max_pods,
        "providerID": plan.provider_id,
        "seccompDefault": true,
        "shutdownGracePeriod": "0s",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
    })
}

/// The kubelet's configuration as it was written, with another number of pods.
pub(crate) fn with_max_pods(kubelet: &[u8], max_pods: u32) -> serde_json::Result<Vec<u8>> {
    let mut config: serde_json::Map<String, Value> = serde_json::from_slice(kubelet)?;
    config.insert("maxPods".to_owned(), max_pods.into());
    serde_json::to_vec(&config)
}

fn kube_proxy(plan: &MachinePlan) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "bindAddress": plan.address,
        "clusterCIDR": plan.cluster_range,
        "hostnameOverride": plan.name,
        "clientConnection": {"kubeconfig": format!("{CONFIG_DIR}/kube-proxy.kubeconfig")},
        // Connection tracking is sized by the host.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "oomScoreAdj": 0,
    })
}

fn kubeconfig(server: &str, identity: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {
            "server": server,
            "certificate-authority": format!("{CONFIG_DIR}/server-ca.crt"),
        }}],
        "users": [{"name": identity, "user": {
            "client-certificate": format!("{CONFIG_DIR}/{identity}.crt"),
            "client-key": format!("{CONFIG_DIR}/{identity}.key"),
        }}],
        "contexts": [{"name": identity, "context": {"cluster": "cluster", "user": identity}}],
        "current-context": identity,
    })
}

fn cni(pod_range: &str) -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "neap",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": pod_range}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                    "dataDir": "/run/cni",
                },
            },
            {"type": "portmap", "backend": "nftables", "capabilities": {"portMappings": true}},
        ],
    })
}

fn containerd(sandbox_image: &str, fence: Fence) -> String {
    // Plugins of containerd and device interfaces change a container in what
    // ways they like, by sockets and files in folders of the node.
    let (runtime, closed) = match fence {
        Fence::Closed => (format!("{RUNTIME_DIR}/{RUNTIME_NAME}"), true),
        Fence::Open => ("/usr/sbin/runc".to_owned(), false),
    };
    format!(
        r#"version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins.'io.containerd.nri.v1.nri']
  disable = {closed}

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{sandbox_image}"

[plugins.'io.containerd.cri.v1.runtime']
  enable_selinux = false
  enable_cdi = {open}
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/neap/bin/cni"]
    conf_dir = "{CNI_DIR}"
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      privileged_without_host_devices = true
      privileged_without_host_devices_all_devices_allowed = false
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = "{runtime}"
        SystemdCgroup = false
"#,
        open = !closed,
    )
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::container::example_plan;
    use std::collections::BTreeMap;

    const HOST: HostCapacity = HostCapacity {
        cpu_milli: 2000,
        memory_bytes: 24_684_092 * 1024,
    };

    fn written(host: HostCapacity) -> BTreeMap<&'static str, String> {
        let software = NodeSoftware::of_distro(Utf8Path::new("/distro"));
        files(&example_plan(), &software, host)
            .into_iter()
            .collect()
    }

    fn parsed(name: &str) -> Value {
        serde_json::from_str(written(HOST).get(name).unwrap()).unwrap()
    }

    #[test]
    fn what_the_class_does_not_have_is_reserved() {
        let kubelet = parsed("kubelet.json");
        assert_eq!(
            kubelet["systemReserved"],
            json!({"cpu": "1000m", "memory": (24_684_092_u64 * 1024 - (1 << 30)).to_string()})
        );
        assert_eq!(kubelet["enforceNodeAllocatable"], json!([]));
    }

    #[test]
    fn a_class_beyond_the_host_reserves_nothing() {
        let small = HostCapacity {
            cpu_milli: 500,
            memory_bytes: 1 << 20,
        };
        let kubelet: Value =
            serde_json::from_str(written(small).get("kubelet.json").unwrap()).unwrap();
        assert_eq!(
            kubelet["systemReserved"],
            json!({"cpu": "0m", "memory": "0"})
        );
    }

    #[test]
    fn the_kubelet_answers_nobody_it_does_not_know() {
        let kubelet = parsed("kubelet.json");
        assert_eq!(kubelet["authentication"]["anonymous"]["enabled"], false);
        assert_eq!(kubelet["authentication"]["webhook"]["enabled"], true);
        assert_eq!(kubelet["authorization"]["mode"], "Webhook");
        assert_eq!(kubelet["readOnlyPort"], 0);
        assert_eq!(kubelet["tlsCertFile"], "/neap/config/serving.crt");
    }

    #[test]
    fn the_kubelet_runs_on_the_oldest_and_barest_host() {
        let kubelet = parsed("kubelet.json");
        assert_eq!(kubelet["failCgroupV1"], false);
        assert_eq!(kubelet["oomScoreAdj"], 0);
        assert_eq!(kubelet["cgroupDriver"], "cgroupfs");
        let containerd = written(HOST).remove("containerd.toml").unwrap();
        assert!(containerd.contains("restrict_oom_score_adj = true"));
        assert!(containerd.contains("SystemdCgroup = false"));
    }

    #[test]
    fn containers_are_held_to_the_fence_unless_it_is_open() {
        let closed = containerd("image", Fence::Closed);
        for line in [
            r#"BinaryName = "/neap/runtime/neap-runc""#,
            "enable_cdi = false",
            "disable = true",
        ] {
            assert!(closed.contains(line), "{line}");
        }
        let open = containerd("image", Fence::Open);
        assert!(open.contains(r#"BinaryName = "/usr/sbin/runc""#));
        assert!(open.contains("enable_cdi = true"));
    }

    #[test]
    fn pods_live_in_the_group_that_bears_the_class() {
        let kubelet = parsed("kubelet.json");
        assert_eq!(kubelet["cgroupRoot"], format!("/{}", crate::agent::PODS));
        assert_eq!(kubelet["maxPods"], 8);
        assert_eq!(kubelet["providerID"], "neap://ci/ci-node1");
    }

    #[test]
    fn another_number_of_pods_changes_nothing_else() {
        let written = written(HOST).remove(KUBELET_FILE).unwrap();
        let same = with_max_pods(written.as_bytes(), 8).unwrap();
        assert_eq!(same, written.as_bytes(), "the kubelet is not restarted");
        let larger = with_max_pods(written.as_bytes(), 16).unwrap();
        let mut expected = parsed(KUBELET_FILE);
        expected["maxPods"] = json!(16);
        assert_eq!(serde_json::from_slice::<Value>(&larger).unwrap(), expected);
        with_max_pods(b"", 16).unwrap_err();
    }

    #[test]
    fn every_file_that_is_named_is_written() {
        let files = written(HOST);
        let plan = example_plan();
        let secrets = secrets(&plan).map(|(name, _)| name);
        for text in files.values() {
            for word in text.split(['"', ' ']) {
                if let Some(name) = word.strip_prefix("/neap/config/") {
                    assert!(
                        files.contains_key(name) || secrets.contains(&name),
                        "{name}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_secret_is_in_a_configuration_file() {
        for (name, text) in written(HOST) {
            assert!(!text.contains("SECRET"), "{name}");
        }
    }

    #[test]
    fn the_sandbox_image_is_one_of_the_distro() {
        let containerd = written(HOST).remove("containerd.toml").unwrap();
        assert!(containerd.contains(r#"sandbox = "localhost/neap-pause:1""#));
    }

    #[test]
    fn the_network_gives_pods_addresses_of_their_node() {
        let network = parsed(CNI_FILE);
        assert_eq!(
            network["plugins"][0]["ipam"]["ranges"],
            json!([[{"subnet": "10.251.1.0/24"}]])
        );
        // The node has no iptables.
        assert_eq!(network["plugins"][1]["backend"], "nftables");
    }

    #[test]
    fn kube_proxy_leaves_the_settings_of_the_host_alone() {
        let proxy = parsed("kube-proxy.json");
        assert_eq!(proxy["mode"], "nftables");
        assert_eq!(proxy["conntrack"]["maxPerCore"], 0);
        assert_eq!(proxy["clusterCIDR"], "10.251.0.0/16");
        assert_eq!(proxy["hostnameOverride"], "ci-node1");
    }

    #[test]
    fn the_capacity_of_a_host_is_read_as_a_kubelet_reads_it() {
        assert_eq!(
            parse_cpus("processor\t: 0\nmodel name\t: x\n\nprocessor\t: 1\n"),
            Some(2)
        );
        assert_eq!(parse_cpus(""), None);
        assert_eq!(
            parse_memory("MemTotal:       24684092 kB\nMemFree: 1 kB\n"),
            Some(24_684_092 * 1024)
        );
        assert_eq!(parse_memory("MemFree: 1 kB\n"), None);
    }
}
