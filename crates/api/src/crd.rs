//! The definitions of the custom resources, as the API server takes them.

use crate::{Cluster, Machine};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;

/// Every definition.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut all = vec![Cluster::crd(), Machine::crd()];
    for crd in &mut all {
        for version in &mut crd.spec.versions {
            if let Some(schema) = version
                .schema
                .as_mut()
                .and_then(|schema| schema.open_api_v3_schema.as_mut())
            {
                keep_known_formats(schema);
            }
        }
    }
    all
}

/// Kubernetes knows no unsigned formats and warns of them at each apply; the
/// minimum of 0 says the same.
fn keep_known_formats(schema: &mut JSONSchemaProps) {
    if schema.format.as_deref() == Some("uint32") {
        schema.format = Some("int64".into());
    }
    for property in schema
        .properties
        .iter_mut()
        .flat_map(|properties| properties.values_mut())
    {
        keep_known_formats(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        keep_known_formats(items);
    }
}

#[cfg(test)]
mod tests;
