//! What an API server's refusal means.

use kube::core::Status;
use std::error::Error;

fn status(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// The object, or its kind, is not there.
pub fn is_not_found(error: &kube::Error) -> bool {
    status(error).is_some_and(|status| status.code == 404)
}

/// What the write rests on has changed: another resource version, or another
/// object of that name.
pub fn is_conflict(error: &kube::Error) -> bool {
    status(error).is_some_and(|status| match status.code {
        409 => status.reason != "AlreadyExists",
        // A patch that states the UID of another object would change it.
        422 => status.details.iter().any(|details| {
            details
                .causes
                .iter()
                .any(|cause| cause.field == "metadata.uid")
        }),
        _ => false,
    })
}

/// An object of this name is there already.
pub fn is_already_exists(error: &kube::Error) -> bool {
    status(error).is_some_and(|status| status.reason == "AlreadyExists")
}

/// An error and its sources on one line. A source that the line says already
/// is not said twice.
pub fn describe(error: &(dyn Error + 'static)) -> String {
    let mut line = text(error);
    let mut next = error.source();
    while let Some(source) = next {
        let text = text(source);
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        next = source.source();
    }
    line
}

/// What an error says, apart from its sources; an answer of the API server
/// would say everything twice.
fn text(error: &(dyn Error + 'static)) -> String {
    let answer = match error.downcast_ref::<Box<kube::Error>>() {
        Some(boxed) => Some(&**boxed),
        None => error.downcast_ref::<kube::Error>(),
    };
    match answer {
        Some(kube::Error::Api(status)) => status.to_string(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn refusal(code: u16, reason: &str) -> kube::Error {
        kube::Error::Api(Box::new(Status::failure("refused", reason).with_code(code)))
    }

    #[test]
    fn a_refusal_is_told_apart() {
        // code, reason, not found, conflict, already exists
        let table = [
            (404, "NotFound", true, false, false),
            (409, "Conflict", false, true, false),
            (409, "AlreadyExists", false, false, true),
            (403, "Forbidden", false, false, false),
        ];
        for (code, reason, not_found, conflict, already_exists) in table {
            let error = refusal(code, reason);
            assert_eq!(is_not_found(&error), not_found, "{reason}");
            assert_eq!(is_conflict(&error), conflict, "{reason}");
            assert_eq!(is_already_exists(&error), already_exists, "{reason}");
        }
    }

    #[test]
    fn a_patch_for_another_object_is_a_conflict() {
        let answer = |field: &str| {
            serde_json::from_value::<Status>(serde_json::json!({
                "status": "Failure", "code": 422, "reason": "Invalid", "message": "it is invalid",
                "details": {"causes": [{
                    "reason": "FieldValueInvalid", "message": "field is immutable", "field": field,
                }]},
            }))
            .map(|status| kube::Error::Api(Box::new(status)))
        };
        assert!(is_conflict(&answer("metadata.uid").unwrap()));
        assert!(!is_conflict(&answer("spec.ordinal").unwrap()));
    }

    #[test]
    fn an_error_says_each_source_once() {
        let inner = std::io::Error::other("connection refused");
        let error = kube::Error::Service(Box::new(std::io::Error::other(inner)));
        assert_eq!(describe(&error), "ServiceError: connection refused");
        assert_eq!(
            describe(&refusal(403, "Forbidden"))
                .matches("refused")
                .count(),
            1
        );
    }
}
