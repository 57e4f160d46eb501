//! The single way to write: every write says on what it rests, so that one
//! that comes too late is refused and does nothing.

use crate::failure;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

/// How often the removal of a finalizer begins anew when others write too.
const ATTEMPTS: u32 = 5;

/// An object could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to {operation} {kind} {name}")]
pub struct WriteObjectError {
    /// A verb.
    operation: &'static str,
    /// Kind of the object.
    kind: String,
    /// Name of the object.
    name: String,
    /// Why.
    #[source]
    source: Box<kube::Error>,
}

impl WriteObjectError {
    fn new<K: Resource<DynamicType = ()>>(
        operation: &'static str,
        name: &str,
        source: kube::Error,
    ) -> Self {
        Self {
            operation,
            kind: K::kind(&()).into_owned(),
            name: name.to_owned(),
            source: Box::new(source),
        }
    }
}

/// On what a write rests. What is `None` is not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected<'a> {
    /// The object must still be this one.
    pub uid: Option<&'a str>,
    /// Nobody must have written it since.
    pub resource_version: Option<&'a str>,
}

impl<'a> Expected<'a> {
    /// It must still be the object of this UID.
    pub fn uid(uid: &'a str) -> Self {
        Self {
            uid: Some(uid),
            resource_version: None,
        }
    }

    fn put_into(self, body: &mut Value) {
        if let Some(uid) = self.uid {
            body["metadata"]["uid"] = json!(uid);
        }
        if let Some(version) = self.resource_version {
            body["metadata"]["resourceVersion"] = json!(version);
        }
    }
}

/// What became of a request to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is accepted; finalizers may still hold the object.
    Requested,
    /// The object of this UID is not there: a proof.
    Absent,
}

/// Makes `status` what this manager says of the object; what it said before
/// and says no more goes, what others say stays. With a resource version, a
/// conflict if it is not the current one.
pub async fn apply_status<K, S>(
    api: &Api<K>,
    name: &str,
    manager: &str,
    resource_version: Option<&str>,
    status: &S,
) -> Result<K, WriteObjectError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    S: Serialize + ?Sized,
{
    let mut body = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": {"name": name},
        "status": status,
    });
    Expected {
        uid: None,
        resource_version,
    }
    .put_into(&mut body);
    api.patch_status(
        name,
        &PatchParams::apply(manager).force(),
        &Patch::Apply(body),
    )
    .await
    .map_err(|error| WriteObjectError::new::<K>("write the status of", name, error))
}

/// Merges `patch` into the object: labels, annotations, spec. `null` removes.
pub async fn merge<K>(
    api: &Api<K>,
    name: &str,
    manager: &str,
    expected: Expected<'_>,
    patch: Value,
) -> Result<K, WriteObjectError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    merge_to("change", api, name, manager, expected, patch).await
}

/// Merges `patch`, and says in an error what for.
async fn merge_to<K>(
    operation: &'static str,
    api: &Api<K>,
    name: &str,
    manager: &str,
    expected: Expected<'_>,
    mut patch: Value,
) -> Result<K, WriteObjectError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    expected.put_into(&mut patch);
    api.patch(name, &managed(manager), &Patch::Merge(patch))
        .await
        .map_err(|error| WriteObjectError::new::<K>(operation, name, error))
}

/// Merges `patch`, which holds a `status`, into the status of an object of a
/// built-in kind. Lists such as conditions are merged by their keys.
pub async fn merge_status<K>(
    api: &Api<K>,
    name: &str,
    manager: &str,
    expected: Expected<'_>,
    mut patch: Value,
) -> Result<K, WriteObjectError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    expected.put_into(&mut patch);
    api.patch_status(name, &managed(manager), &Patch::Strategic(patch))
        .await
        .map_err(|error| WriteObjectError::new::<K>("change the status of", name, error))
}

/// Adds a finalizer to the object as it was read; a conflict if it has changed
/// since. Nothing is written if it bears the finalizer already.
pub async fn add_finalizer<K>(
    api: &Api<K>,
    object: &K,
    manager: &str,
    finalizer: &str,
) -> Result<(), WriteObjectError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    if object.finalizers().iter().any(|there| there == finalizer) {
        return Ok(());
    }
    let mut all = object.finalizers().to_vec();
    all.push(finalizer.to_owned());
    let meta = object.meta();
    let expected = Expected {
        uid: meta.uid.as_deref(),
        resource_version: meta.resource_version.as_deref(),
    };
    let patch = json!({"metadata": {"finalizers": all}});
    let (operation, name) = ("add a finalizer to", object.name_any());
    merge_to(operation, api, &name, manager, expected, patch)
        .await
        .map(|_| ())
}

/// Removes a finalizer from this very object, whoever else writes meanwhile.
/// It is done if the object is gone, or is another of the same name by now.
pub async fn remove_finalizer<K>(
    api: &Api<K>,
    object: &K,
    manager: &str,
    finalizer: &str,
) -> Result<(), WriteObjectError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let name = object.name_any();
    let uid = object.meta().uid.clone();
    let fail = |error| WriteObjectError::new::<K>("remove a finalizer from", &name, error);
    let mut current = object.clone();
    let mut attempt = 1;
    loop {
        let Some(at) = current
            .finalizers()
            .iter()
            .position(|there| there == finalizer)
        else {
            return Ok(());
        };
        let place = format!("/metadata/finalizers/{at}");
        let patch = serde_json::from_value(json!([
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "test", "path": place, "value": finalizer},
            {"op": "remove", "path": place},
        ]))
        .map_err(|error| fail(kube::Error::SerdeError(error)))?;
        match api
            .patch(&name, &managed(manager), &Patch::Json::<()>(patch))
            .await
        {
            Ok(_) => return Ok(()),
            Err(error) if failure::is_not_found(&error) => return Ok(()),
            Err(error) if attempt < ATTEMPTS && is_stale(&error) => attempt += 1,
            Err(error) => return Err(fail(error)),
        }
        match api.get_opt(&name).await.map_err(&fail)? {
            Some(now) if now.meta().uid == uid => current = now,
            _ => return Ok(()),
        }
    }
}

/// Asks to delete the object of this name, if it is the one of this UID.
pub async fn delete_with_uid<K>(
    api: &Api<K>,
    name: &str,
    uid: &str,
) -> Result<Deletion, WriteObjectError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    delete(api, name, uid, DeleteParams::background()).await
}

/// The same without a grace period, for pods whose machine is gone.
pub async fn delete_now_with_uid<K>(
    api: &Api<K>,
    name: &str,
    uid: &str,
) -> Result<Deletion, WriteObjectError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    delete(api, name, uid, DeleteParams::background().grace_period(0)).await
}

async fn delete<K>(
    api: &Api<K>,
    name: &str,
    uid: &str,
    params: DeleteParams,
) -> Result<Deletion, WriteObjectError>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let fail = |error| WriteObjectError::new::<K>("delete", name, error);
    let params = params.preconditions(Preconditions {
        uid: Some(uid.to_owned()),
        resource_version: None,
    });
    match api.delete(name, &params).await {
        Ok(_) => Ok(Deletion::Requested),
        Err(error) if failure::is_not_found(&error) => Ok(Deletion::Absent),
        // A conflict may have other causes than another UID: look.
        Err(error) if failure::is_conflict(&error) => match api.get_opt(name).await {
            Ok(Some(now)) if now.meta().uid.as_deref() == Some(uid) => Err(fail(error)),
            Ok(_) => Ok(Deletion::Absent),
            Err(error) => Err(fail(error)),
        },
        Err(error) => Err(fail(error)),
    }
}

fn managed(manager: &str) -> PatchParams {
    PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    }
}

/// A failed test in a JSON patch is "unprocessable", not a conflict.
fn is_stale(error: &kube::Error) -> bool {
    failure::is_conflict(error) || matches!(error, kube::Error::Api(status) if status.code == 422)
}

#[cfg(test)]
mod tests;
