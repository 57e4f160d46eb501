//! The fence of a container node, tried by pods: who has no more than a pod
//! cannot take more, who asks for more is told no with the reason, and who is
//! let out by the Cluster's own word still cannot write what nodes share with
//! the host.

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, ListParams};
use neap::installation::{Look, until};
use neap_proofs::{Proof, pod, prove};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(30);
const SETTING: &str = "/proc/sys/kernel/core_pattern";

/// Each try says so when it succeeds; what it writes is what was there.
const TRIES: &str = r#"
tell() { echo "$*" >> /dev/termination-log; }
try() { "$@" 2>/dev/null && tell "did: $*"; }
write() { cat "$1" 2>/dev/null > "$1"; }
try cat /proc/1/environ
try ls /proc/1/root/neap
try head -c 1 /proc/1/exe
mkdir /try
try mount -t tmpfs none /try
try mount -t proc none /try
try mount -o bind /shared /try
try mount -o remount,rw /proc/sys
try mount -o remount,rw /
try write /proc/sys/kernel/core_pattern
for disk in $(awk '$4 ~ /^[a-z]/ {print $1 ":" $2}' /proc/partitions); do
  mknod /try/disk b ${disk%:*} ${disk#*:} && try head -c 1 /try/disk; rm -f /try/disk
done
mknod /try/memory c 1 1 && try head -c 1 /try/memory
touch /shared/ordinary && rm /shared/ordinary || tell "an ordinary folder cannot be written"
tell done
"#;

/// The same from a pod that is allowed everything.
const PRIVILEGED_TRIES: &str = r#"
tell() { echo "$*" >> /dev/termination-log; }
try() { "$@" 2>/dev/null && tell "did: $*"; }
mkdir /try
mount -t tmpfs none /try || tell "a privileged pod cannot mount"
for shared in /node/neap/bin /node/neap/runtime/neap /node/neap/images/0.tar /node/usr; do
  mount -o remount,rw $shared 2>/dev/null
  mount -o remount,rw,bind $shared 2>/dev/null
  try chmod u+w $shared
  try touch $shared
done
try touch /node/neap/bin/added
try touch /node/usr/bin/added
try chmod u+w /proc/1/exe
tell done
"#;

fn main() -> ExitCode {
    prove(steps)
}

async fn steps(proof: &mut Proof) -> Result<()> {
    let before = std::fs::read_to_string(SETTING)?;
    let (first, second) = tokio::join!(
        proof.neap(&[
            "cluster",
            "create",
            "shut",
            "--hold",
            "3s",
            "--pods-per-node",
            "20",
        ]),
        proof.neap(&[
            "cluster",
            "create",
            "open",
            "--hold",
            "3s",
            "--allow-privileged",
        ]),
    );
    first?;
    second?;
    let shut = proof.installation.tenant("default", "shut").await?;
    let open = proof.installation.tenant("default", "open").await?;

    proof.step("pods that ask for more than a pod's powers, and two that do not");
    let capability = |name: &str| json!({"securityContext": {"capabilities": {"add": [name]}}});
    let refused = [
        (
            changed("admin", capability("SYS_ADMIN"), None),
            "capability SYS_ADMIN is not allowed on this node: the cluster has allowPrivileged false",
        ),
        (
            changed("tracer", capability("SYS_PTRACE"), None),
            "capability SYS_PTRACE is not allowed on this node",
        ),
        (
            changed(
                "unfiltered",
                json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
                None,
            ),
            "seccomp profile Unconfined is not allowed on this node",
        ),
        (
            showing("root", "/", json!({})),
            "host path / is not allowed on this node",
        ),
        (
            showing("socket", "/run/containerd", json!({})),
            "host path /run/containerd is not allowed on this node",
        ),
        (
            showing("beneath", "/", json!({"subPath": "run/containerd"})),
            "which leads to /run/containerd, is not allowed on this node",
        ),
    ];
    let ordinary = changed(
        "ordinary",
        json!({"command": ["sleep", "600"], "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}),
        None,
    );
    let mut part = showing("part", "/tmp", json!({"subPath": "part"}));
    command(&mut part, "echo > /shared/file && sleep 600");
    let mut inside = showing("inside", "/tmp", json!({}));
    command(&mut inside, TRIES);
    let inside = merged(inside, json!({"hostPID": true}), json!({}));
    let mut pods: Vec<Pod> = refused.iter().map(|(pod, _)| pod.clone()).collect();
    pods.extend([ordinary, part, inside]);
    proof.give(&shut, &pods).await?;

    let mut outside = showing("outside", "/", json!({}));
    command(&mut outside, PRIVILEGED_TRIES);
    let outside = merged(
        outside,
        json!({"hostPID": true}),
        json!({"securityContext": {"privileged": true}}),
    );
    proof.give(&open, &[outside]).await?;

    proof.step("what asks for more is told why not");
    for (pod, sentence) in &refused {
        let name = pod.metadata.name.as_deref().context("it has a name")?;
        let message = message_of(&shut, name).await?;
        if !message.contains(sentence) {
            bail!("pod {name} ended with {message:?} instead of {sentence:?}");
        }
    }
    let events = Api::<Event>::namespaced(shut.clone(), "default");
    until("the event of pod admin", DEADLINE, async || {
        let events = events.list(&ListParams::default()).await?;
        let told = events.iter().any(|event| {
            let message = event.message.as_deref().unwrap_or_default();
            event.involved_object.name.as_deref() == Some("admin")
                && message.contains("capability SYS_ADMIN is not allowed")
        });
        Ok(if told {
            Look::Done(())
        } else {
            Look::Not(format!("{} events", events.items.len()))
        })
    })
    .await?;

    proof.step("an ordinary pod runs, and root in one takes nothing");
    proof.until_running(&shut, &["ordinary", "part"]).await?;
    did_nothing(&shut, "inside").await?;

    proof.step("not even a privileged pod writes what nodes share with the host");
    did_nothing(&open, "outside").await?;
    if std::fs::read_to_string(SETTING)? != before {
        bail!("{SETTING} has changed");
    }
    Ok(())
}

/// A pod whose container and itself are changed.
fn changed(name: &str, container: Value, spec: Option<Value>) -> Pod {
    merged(pod(name, "true"), spec.unwrap_or(json!({})), container)
}

/// A pod that is shown a folder of its node.
fn showing(name: &str, path: &str, mount: Value) -> Pod {
    let place = if path == "/tmp" { "/shared" } else { "/node" };
    let mut whole = json!({"name": "node", "mountPath": place});
    merge(&mut whole, mount);
    changed(
        name,
        json!({"volumeMounts": [whole]}),
        Some(json!({"volumes": [{"name": "node", "hostPath": {"path": path}}]})),
    )
}

fn command(pod: &mut Pod, script: &str) {
    *pod = merged(
        pod.clone(),
        json!({}),
        json!({"command": ["sh", "-c", script]}),
    );
}

/// # Panics
/// Never: what is merged here is a Pod.
fn merged(pod: Pod, spec: Value, container: Value) -> Pod {
    let mut value = serde_json::to_value(pod).expect("a Pod is JSON");
    merge(&mut value["spec"], spec);
    merge(&mut value["spec"]["containers"][0], container);
    serde_json::from_value(value).expect("the literals are those of a Pod")
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// What the container of a pod has left when it ended.
async fn message_of(tenant: &kube::Client, name: &str) -> Result<String> {
    let pods = Api::<Pod>::namespaced(tenant.clone(), "default");
    until(&format!("the end of pod {name}"), DEADLINE, async || {
        let status = pods.get(name).await?.status.unwrap_or_default();
        let ended = status
            .container_statuses
            .iter()
            .flatten()
            .find_map(|one| one.state.as_ref()?.terminated.clone());
        Ok(match ended {
            Some(ended) => Look::Done(ended.message.unwrap_or_default()),
            None => Look::Not(format!(
                "{:?}: {:?}",
                status.phase, status.container_statuses
            )),
        })
    })
    .await
}

async fn did_nothing(tenant: &kube::Client, name: &str) -> Result<()> {
    let message = message_of(tenant, name).await?;
    if message.trim() != "done" {
        bail!("pod {name} says: {message}");
    }
    Ok(())
}
