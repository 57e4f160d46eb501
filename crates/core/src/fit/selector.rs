//! Selectors over labels and fields, as the API server's parsers understand
//! them.

use std::collections::{BTreeMap, BTreeSet};

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    /// The label is there, with one of these values.
    In {
        /// Its name.
        key: String,
        /// What it may say.
        values: BTreeSet<String>,
    },
    /// The label is absent, or says something else.
    NotIn {
        /// Its name.
        key: String,
        /// What it must not say.
        values: BTreeSet<String>,
    },
    /// The label is there.
    Exists {
        /// Its name.
        key: String,
    },
    /// The label is absent.
    DoesNotExist {
        /// Its name.
        key: String,
    },
    /// The label is a whole number above this one.
    Gt {
        /// Its name.
        key: String,
        /// The bound.
        bound: i64,
    },
    /// The label is a whole number below this one.
    Lt {
        /// Its name.
        key: String,
        /// The bound.
        bound: i64,
    },
}

impl Requirement {
    /// The label that it looks at.
    pub fn key(&self) -> &str {
        match self {
            Self::In { key, .. }
            | Self::NotIn { key, .. }
            | Self::Exists { key }
            | Self::DoesNotExist { key }
            | Self::Gt { key, .. }
            | Self::Lt { key, .. } => key,
        }
    }

    /// It holds for these labels.
    pub fn holds(&self, labels: &Labels) -> bool {
        let number = |value: Option<&String>| value.and_then(|value| value.parse::<i64>().ok());
        let found = labels.get(self.key());
        match self {
            Self::In { values, .. } => found.is_some_and(|value| values.contains(value)),
            Self::NotIn { values, .. } => found.is_none_or(|value| !values.contains(value)),
            Self::Exists { .. } => found.is_some(),
            Self::DoesNotExist { .. } => found.is_none(),
            Self::Gt { bound, .. } => number(found).is_some_and(|value| value > *bound),
            Self::Lt { bound, .. } => number(found).is_some_and(|value| value < *bound),
        }
    }
}

/// Conditions that must all hold; none at all hold for everything. A selector
/// that was not given selects nothing and is `None` where it may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelSelector {
    /// In any order; equal ones once.
    pub requirements: BTreeSet<Requirement>,
}

impl LabelSelector {
    /// It selects an object with these labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.holds(labels))
    }

    /// It selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }
}

/// A condition on a field of a node. Only `metadata.name` has a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldRequirement {
    /// The field is exactly this.
    Is {
        /// Its path.
        field: String,
        /// The value.
        value: String,
    },
    /// The field is anything else.
    IsNot {
        /// Its path.
        field: String,
        /// The value.
        value: String,
    },
}

impl FieldRequirement {
    fn holds(&self, node: &str) -> bool {
        let found = |field: &str| if field == NODE_NAME { node } else { "" };
        match self {
            Self::Is { field, value } => found(field) == value,
            Self::IsNot { field, value } => found(field) != value,
        }
    }
}

const NODE_NAME: &str = "metadata.name";

/// One term of a node selector: all its conditions must hold. Without any it
/// selects nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeTerm {
    /// On labels.
    pub labels: Vec<Requirement>,
    /// On fields.
    pub fields: Vec<FieldRequirement>,
}

impl NodeTerm {
    /// It selects this node.
    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        let conditions = self.labels.len() + self.fields.len();
        conditions > 0
            && self.labels.iter().all(|label| label.holds(labels))
            && self.fields.iter().all(|field| field.holds(name))
    }
}

/// Terms of which one must select the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeSelector {
    /// Without any it selects nothing.
    pub terms: Vec<NodeTerm>,
}

impl NodeSelector {
    /// It selects this node.
    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        self.terms.iter().any(|term| term.matches(name, labels))
    }

    /// Labels that it looks at.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.terms
            .iter()
            .flat_map(|term| term.labels.iter().map(Requirement::key))
    }

    /// It looks at fields, so the name of the node matters.
    pub(super) fn names_nodes(&self) -> bool {
        self.terms.iter().any(|term| !term.fields.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn key() -> String {
        "k".to_owned()
    }

    #[test]
    fn every_operator_holds_as_kubernetes_says() {
        let values = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
        let inside = Requirement::In {
            key: key(),
            values: values.clone(),
        };
        let outside = Requirement::NotIn { key: key(), values };
        let absent = labels(&[]);
        for (value, is_in) in [("a", true), ("c", false)] {
            assert_eq!(inside.holds(&labels(&[("k", value)])), is_in);
            assert_eq!(outside.holds(&labels(&[("k", value)])), !is_in);
        }
        assert!(!inside.holds(&absent));
        assert!(outside.holds(&absent));
        let above = Requirement::Gt {
            key: key(),
            bound: 204,
        };
        let below = Requirement::Lt {
            key: key(),
            bound: 204,
        };
        for (value, gt, lt) in [
            ("0206", true, false),
            ("204", false, false),
            ("-1", false, true),
            ("x", false, false),
            ("1.5", false, false),
        ] {
            assert_eq!(above.holds(&labels(&[("k", value)])), gt, "{value}");
            assert_eq!(below.holds(&labels(&[("k", value)])), lt, "{value}");
        }
        assert!(!above.holds(&absent) && !below.holds(&absent));
    }

    #[test]
    fn a_term_without_conditions_and_a_selector_without_terms_select_nothing() {
        assert!(!NodeTerm::default().matches("n", &labels(&[])));
        assert!(!NodeSelector::default().matches("n", &labels(&[])));
        assert!(LabelSelector::default().matches(&labels(&[])));
    }

    #[test]
    fn a_field_other_than_the_name_is_empty() {
        let term = |field: &str, value: &str| NodeTerm {
            labels: Vec::new(),
            fields: vec![FieldRequirement::Is {
                field: field.to_owned(),
                value: value.to_owned(),
            }],
        };
        assert!(term("metadata.name", "n").matches("n", &labels(&[])));
        assert!(!term("metadata.name", "m").matches("n", &labels(&[])));
        assert!(!term("spec.unschedulable", "n").matches("n", &labels(&[])));
    }
}
