//! Taints, and what tolerates them.

use std::fmt;

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// They are not bound.
    NoSchedule,
    /// They are rather bound elsewhere; it never keeps one away.
    PreferNoSchedule,
    /// They are not bound, and running ones are evicted.
    NoExecute,
}

impl Effect {
    /// It keeps pods away.
    pub fn is_hard(self) -> bool {
        self != Self::PreferNoSchedule
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        })
    }
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// What it says.
    pub value: String,
    /// What it does.
    pub effect: Effect,
}

/// As kubectl writes taints.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        if !self.value.is_empty() {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{}", self.effect)
    }
}

/// How a toleration compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TolerationOperator {
    /// The values are the same.
    Equal,
    /// Any value.
    Exists,
    /// The taint is a whole number above; with its gate alone.
    Gt,
    /// The taint is a whole number below; with its gate alone.
    Lt,
}

/// What a pod tolerates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Toleration {
    /// Of this taint; of every one when empty.
    pub key: String,
    /// How values compare.
    pub operator: TolerationOperator,
    /// What the taint is compared with.
    pub value: String,
    /// With this effect; with every one when absent.
    pub effect: Option<Effect>,
}

/// Whether tolerations may compare numbers: a gate of kube-scheduler, off by
/// default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TolerationComparison {
    /// Gt and Lt tolerate nothing.
    #[default]
    Off,
    /// They compare.
    On,
}

impl Toleration {
    /// It covers this taint.
    pub fn tolerates(&self, taint: &Taint, comparison: TolerationComparison) -> bool {
        let of_it = self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key);
        let compare = |holds: fn(i64, i64) -> bool| {
            comparison == TolerationComparison::On
                && decimal(&taint.value)
                    .zip(decimal(&self.value))
                    .is_some_and(|(taint, own)| holds(taint, own))
        };
        of_it
            && match self.operator {
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Exists => true,
                TolerationOperator::Gt => compare(|taint, own| taint > own),
                TolerationOperator::Lt => compare(|taint, own| taint < own),
            }
    }
}

/// A whole number without leading zeros or a plus sign.
fn decimal(text: &str) -> Option<i64> {
    let value: i64 = text.parse().ok()?;
    (value.to_string() == text).then_some(value)
}

/// The first taint that keeps a pod with these tolerations away.
pub(super) fn untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    comparison: TolerationComparison,
) -> Option<&'a Taint> {
    taints.iter().find(|taint| {
        taint.effect.is_hard()
            && !tolerations
                .iter()
                .any(|toleration| toleration.tolerates(taint, comparison))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str, effect: Effect) -> Taint {
        Taint {
            key: key.to_owned(),
            value: value.to_owned(),
            effect,
        }
    }

    fn toleration(key: &str, operator: TolerationOperator, value: &str) -> Toleration {
        Toleration {
            key: key.to_owned(),
            operator,
            value: value.to_owned(),
            effect: None,
        }
    }

    #[test]
    fn numbers_compare_only_behind_their_gate() {
        use TolerationOperator::{Gt, Lt};
        let sla = |value| taint("sla", value, Effect::NoSchedule);
        for (operator, own, value, covers) in [
            (Gt, "750", "950", true),
            (Gt, "950", "800", false),
            (Lt, "950", "800", true),
            (Gt, "750", "fast", false),
            (Gt, "0750", "950", false),
        ] {
            let toleration = toleration("sla", operator, own);
            assert!(!toleration.tolerates(&sla(value), TolerationComparison::Off));
            assert_eq!(
                toleration.tolerates(&sla(value), TolerationComparison::On),
                covers
            );
        }
    }

    #[test]
    fn an_empty_key_is_any_key_and_equal_still_compares() {
        let off = TolerationComparison::Off;
        let taint = taint("a", "1", Effect::NoExecute);
        assert!(toleration("", TolerationOperator::Exists, "").tolerates(&taint, off));
        assert!(toleration("", TolerationOperator::Equal, "1").tolerates(&taint, off));
        assert!(!toleration("", TolerationOperator::Equal, "").tolerates(&taint, off));
    }

    #[test]
    fn a_preference_keeps_nobody_away() {
        let soft = [taint("a", "1", Effect::PreferNoSchedule)];
        assert_eq!(untolerated(&soft, &[], TolerationComparison::Off), None);
    }
}
