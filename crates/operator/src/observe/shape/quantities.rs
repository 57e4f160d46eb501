//! Quantities in manifests that people write.

use serde_json::{Map, Value};

/// Fields that hold amounts by resource.
const AMOUNTS: [&str; 3] = ["requests", "limits", "overhead"];

/// A manifest whose quantities are text, as the types read them. People write
/// `cpu: 2`, and the API server takes it.
pub fn with_text_quantities(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let taken = field.take();
                *field = if AMOUNTS.contains(&name.as_str()) {
                    texts(taken)
                } else {
                    with_text_quantities(taken)
                };
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = with_text_quantities(item.take());
            }
        }
        _ => {}
    }
    value
}

fn texts(mut amounts: Value) -> Value {
    for amount in amounts
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        if amount.is_number() {
            *amount = Value::String(amount.to_string());
        }
    }
    amounts
}
