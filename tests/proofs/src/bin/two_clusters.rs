//! Two Clusters at once, with the same names inside and in two accounts: each
//! has its own, and neither sees the other. One is deleted, and nothing of it
//! is left while the other works on.

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use neap::installation::Traces;
use neap_proofs::{Proof, Steady, pod, prove, running_pods};
use std::process::ExitCode;

fn main() -> ExitCode {
    prove(steps)
}

async fn steps(proof: &mut Proof) -> Result<()> {
    let before = proof.installation.traces();
    proof.step("two clusters of the same name in two accounts");
    let (here, there) = tokio::join!(
        proof.neap(&["-n", "red", "cluster", "create", "twin", "--hold", "3s"]),
        proof.neap(&["-n", "blue", "cluster", "create", "twin", "--hold", "3s"]),
    );
    here?;
    there?;
    let red = proof.installation.tenant("red", "twin").await?;
    let blue = proof.installation.tenant("blue", "twin").await?;

    proof.step("the same pod in both runs on a node of the same name");
    proof.give(&red, &[pod("same", "sleep 600")]).await?;
    proof.give(&blue, &[pod("same", "sleep 600")]).await?;
    let (in_red, in_blue) = tokio::join!(
        proof.until_running(&red, &["same"]),
        proof.until_running(&blue, &["same"])
    );
    if in_red? != in_blue? {
        bail!("the nodes should bear the same name");
    }
    let node_uid = async |tenant: &kube::Client| -> Result<Option<String>> {
        Ok(Api::<Node>::all(tenant.clone())
            .get("twin-node1")
            .await?
            .metadata
            .uid)
    };
    if node_uid(&red).await? == node_uid(&blue).await? {
        bail!("both clusters show one node");
    }

    proof.step("one is deleted at work: nothing of it is left, the other works on");
    let scope = proof.installation.scope();
    let steady = Steady::begin(&proof.installation.hub().await?, "blue", "twin").await?;
    proof
        .neap(&["-n", "red", "cluster", "delete", "twin", "--yes"])
        .await?;
    if !running_pods(&blue).await?.contains_key("same") {
        bail!("the pod of the other cluster does not run any more");
    }
    steady.end().await?;
    proof
        .neap(&["-n", "blue", "cluster", "delete", "twin", "--yes"])
        .await?;
    let left = Traces::take(&scope).difference(&before);
    if !left.is_empty() {
        bail!("after both were deleted there is still {}", left.summary());
    }
    Ok(())
}
