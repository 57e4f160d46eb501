//! What the API of a Cluster says of itself.

use crate::operator::Context;
use crate::traits::TenantIdentity;
use crate::view::{ClusterId, until};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use neap_core::lifecycle::ApiState;
use std::time::Duration;

/// An API that is well answers in less.
const DEADLINE: Duration = Duration::from_secs(2);
/// How long an answer that all is well is believed while the process runs.
const BELIEVED: Duration = Duration::from_secs(30);

/// Looks at one API, with a client that is kept while it works.
#[derive(Default)]
pub(super) struct Probe {
    client: Option<(TenantIdentity, Client)>,
    /// Start of the process that was looked at.
    since: Option<Timestamp>,
    well: Option<Timestamp>,
    silent_since: Option<Timestamp>,
}

impl Probe {
    /// The state of the API. Once all is well the answer is believed for a
    /// while: the end of the process is noticed without asking.
    pub(super) async fn look(
        &mut self,
        context: &Context,
        cluster: &ClusterId,
        since: Timestamp,
        bootstrapped: bool,
    ) -> ApiState {
        let now = context.clock.now();
        if self.since != Some(since) {
            *self = Self {
                since: Some(since),
                ..Self::default()
            };
        }
        let all_well = ApiState::Ready {
            service_account: true,
        };
        if bootstrapped && self.well.is_some_and(|well| until(now, well) < BELIEVED) {
            return all_well;
        }
        let identity = if bootstrapped {
            TenantIdentity::Operator
        } else {
            TenantIdentity::Bootstrap
        };
        let state = tokio::select! {
            biased;
            state = self.ask(context, cluster, identity) => state,
            () = context.clock.sleep(DEADLINE) => ApiState::Unreachable,
        };
        self.well = (state == all_well).then_some(now);
        if state == ApiState::Unreachable {
            self.client = None;
            self.silent_since.get_or_insert(now);
        } else {
            self.silent_since = None;
        }
        state
    }

    /// Since when nobody has answered, at the last look.
    pub(super) fn silent_since(&self) -> Option<Timestamp> {
        self.silent_since
    }

    async fn ask(
        &mut self,
        context: &Context,
        cluster: &ClusterId,
        identity: TenantIdentity,
    ) -> ApiState {
        let client = match &self.client {
            Some((of, client)) if *of == identity => client.clone(),
            _ => match context.control_planes.client(&cluster.uid, identity).await {
                Ok(client) => self.client.insert((identity, client)).1.clone(),
                Err(error) => {
                    tracing::debug!(%cluster, error = neap_kube::describe(&error), "no client yet");
                    return ApiState::Unreachable;
                }
            },
        };
        let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
            return ApiState::Unreachable;
        };
        match client.request_text(request).await {
            Ok(_) => {}
            Err(kube::Error::Api(_)) => return ApiState::NotReady,
            Err(_) => return ApiState::Unreachable,
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
        let service_account = accounts
            .get_opt("default")
            .await
            .is_ok_and(|found| found.is_some());
        ApiState::Ready { service_account }
    }
}
