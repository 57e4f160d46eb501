//! kubectl is a full client, of the hub and of a Cluster, with the kubeconfig
//! that neap prints and no secret in it: apply, exec, logs, port-forward.

use anyhow::{Context as _, Result, bail};
use camino::Utf8PathBuf;
use neap::installation::{Look, until};
use neap_proofs::{Proof, pod, prove};
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

const DEADLINE: Duration = Duration::from_secs(30);
const SERVER: &str =
    "mkdir /www; echo pong > /www/index.html; echo ready; exec httpd -f -p 8080 -h /www";

fn main() -> ExitCode {
    prove(steps)
}

async fn steps(proof: &mut Proof) -> Result<()> {
    proof
        .neap(&["cluster", "create", "pier", "--hold", "3s"])
        .await?;
    let hub = kubeconfig(proof, "hub", &["kubeconfig"]).await?;
    let tenant = kubeconfig(proof, "tenant", &["cluster", "kubeconfig", "pier"]).await?;

    proof.step("kubectl reads the hub");
    let clusters = kubectl(
        &hub,
        &["get", "nc", "pier", "-o", "jsonpath={.status.phase}"],
    )
    .await?;
    if clusters != "Running" {
        bail!("kubectl get nc says {clusters:?}");
    }

    proof.step("the hub refuses what cannot be");
    let refused = kubectl(
        &hub,
        &[
            "patch",
            "nc",
            "pier",
            "--type=merge",
            "-p",
            r#"{"spec":{"scaling":{"maxNodes":241}}}"#,
        ],
    )
    .await;
    match refused {
        Err(error) if format!("{error:#}").contains("240") => {}
        other => bail!("maxNodes 241 was answered with {other:?}"),
    }

    proof.step("kubectl exec and logs");
    let client = proof.installation.tenant("default", "pier").await?;
    proof.give(&client, &[pod("web", SERVER)]).await?;
    proof.until_running(&client, &["web"]).await?;
    let said = kubectl(&tenant, &["exec", "web", "--", "echo", "from inside"]).await?;
    if said.trim() != "from inside" {
        bail!("exec said {said:?}");
    }
    let logs = kubectl(&tenant, &["logs", "web"]).await?;
    if !logs.contains("ready") {
        bail!("logs said {logs:?}");
    }

    proof.step("kubectl port-forward");
    let mut forward = program(&tenant, &["port-forward", "pod/web", ":8080"])?
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("failed to run kubectl")?;
    let stdout = forward.stdout.take().context("its output is piped")?;
    // Kept: a closed pipe would end it at its next line.
    let mut lines = BufReader::new(stdout).lines();
    let line = tokio::time::timeout(DEADLINE, lines.next_line()).await??;
    let line = line.context("port-forward ended")?;
    let port: u16 = line
        .split("127.0.0.1:")
        .nth(1)
        .and_then(|rest| rest.split(' ').next()?.parse().ok())
        .with_context(|| format!("port-forward said {line:?}"))?;
    until("an answer through port-forward", DEADLINE, async || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
        let mut answer = String::new();
        match stream.read_to_string(&mut answer).await {
            Ok(_) if answer.contains("pong") => Ok(Look::Done(())),
            other => Ok(Look::Not(format!("{other:?}: {answer:?}"))),
        }
    })
    .await?;
    forward.kill().await?;

    proof.step("a pod that is deleted lets the node go");
    kubectl(&tenant, &["delete", "pod", "web", "--now"]).await?;
    proof.until_zero("default", "pier").await
}

async fn kubeconfig(proof: &Proof, name: &str, arguments: &[&str]) -> Result<Utf8PathBuf> {
    let text = proof.neap(arguments).await?;
    for secret in [
        "client-key-data",
        "client-certificate-data",
        "token:",
        "password",
    ] {
        if text.contains(secret) {
            bail!("the kubeconfig holds a secret: {secret}");
        }
    }
    // Beside the data folder: a temporary folder of this proof's own.
    let path = proof
        .installation
        .data_dir()
        .with_file_name(format!("{name}.kubeconfig"));
    std::fs::write(&path, text)?;
    Ok(path)
}

fn program(kubeconfig: &Utf8PathBuf, arguments: &[&str]) -> Result<Command> {
    let distro = std::env::var("NEAP_DISTRO").context("NEAP_DISTRO is not set")?;
    let mut command = Command::new(format!("{distro}/bin/hyperkube"));
    command
        .arg("kubectl")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(arguments);
    Ok(command)
}

async fn kubectl(kubeconfig: &Utf8PathBuf, arguments: &[&str]) -> Result<String> {
    let output = program(kubeconfig, arguments)?
        .output()
        .await
        .context("failed to run kubectl")?;
    if !output.status.success() {
        bail!(
            "kubectl {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
