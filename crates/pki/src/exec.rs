//! The answer of an exec plugin to kubectl.

use crate::Credential;
use serde_json::json;

/// An `ExecCredential` that hands over this credential.
pub fn exec_credential(credential: &Credential) -> String {
    json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {
            "expirationTimestamp": credential.not_after.to_string(),
            "clientCertificateData": credential.certificate_pem,
            "clientKeyData": credential.key_pem,
        },
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn kubectl_finds_certificate_key_and_end() {
        let credential = Credential {
            certificate_pem: "CERTIFICATE\n".into(),
            key_pem: "KEY\n".into(),
            not_after: "2026-11-29T12:00:00Z".parse().unwrap(),
        };
        let answer: serde_json::Value =
            serde_json::from_str(&exec_credential(&credential)).unwrap();
        assert_eq!(answer["apiVersion"], "client.authentication.k8s.io/v1");
        assert_eq!(answer["kind"], "ExecCredential");
        assert_eq!(
            answer["status"],
            json!({
                "expirationTimestamp": "2026-11-29T12:00:00Z",
                "clientCertificateData": "CERTIFICATE\n",
                "clientKeyData": "KEY\n",
            })
        );
        assert!(!format!("{credential:?}").contains("KEY"));
    }
}
