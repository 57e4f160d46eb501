//! Pods counted by domain, with the emptiest domain always at hand.

/// How many pods each domain of one topology key has.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    counts: Vec<u32>,
    /// Domains that count for the minimum; a spread alone has any.
    members: Vec<bool>,
    /// How many members have so many pods.
    levels: Vec<u32>,
    minimum: usize,
    domains: u32,
    total: u64,
}

impl Tally {
    /// Pods in a domain.
    pub(super) fn count(&self, domain: usize) -> u32 {
        self.counts.get(domain).copied().unwrap_or_default()
    }

    /// Pods in all domains.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Pods in the emptiest member, which counts as empty while there are
    /// fewer than `min_domains`.
    pub(super) fn minimum(&self, min_domains: u32) -> u32 {
        if self.domains < min_domains.max(1) {
            return 0;
        }
        u32::try_from(self.minimum).unwrap_or(u32::MAX)
    }

    /// A domain counts for the minimum from now on. False when it did before.
    pub(super) fn join(&mut self, domain: usize) -> bool {
        if self.members.len() <= domain {
            self.members.resize(domain + 1, false);
        }
        match self.members.get_mut(domain) {
            Some(member) if !*member => *member = true,
            _ => return false,
        }
        let level = level(self.count(domain));
        self.raise(level);
        if self.domains == 0 || level < self.minimum {
            self.minimum = level;
        }
        self.domains += 1;
        true
    }

    /// Takes back that a domain has joined.
    pub(super) fn leave(&mut self, domain: usize) {
        if let Some(member) = self.members.get_mut(domain) {
            *member = false;
        }
        let level = level(self.count(domain));
        self.lower(level);
        self.domains = self.domains.saturating_sub(1);
        self.find_minimum();
    }

    /// So many pods more.
    pub(super) fn add(&mut self, domain: usize, pods: u32) {
        let before = self.count(domain);
        self.set(domain, before, before.saturating_add(pods));
        self.total += u64::from(pods);
    }

    /// So many pods fewer.
    pub(super) fn take_back(&mut self, domain: usize, pods: u32) {
        let before = self.count(domain);
        self.set(domain, before, before.saturating_sub(pods));
        self.total = self.total.saturating_sub(u64::from(pods));
    }

    fn set(&mut self, domain: usize, before: u32, after: u32) {
        if self.counts.len() <= domain {
            self.counts.resize(domain + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(domain) {
            *count = after;
        }
        if self.members.get(domain) != Some(&true) {
            return;
        }
        self.lower(level(before));
        self.raise(level(after));
        if level(after) < self.minimum {
            self.minimum = level(after);
        } else {
            self.find_minimum();
        }
    }

    /// Goes up from the last minimum: what joins or shrinks lowers it first.
    fn find_minimum(&mut self) {
        while self.levels.get(self.minimum) == Some(&0) {
            self.minimum += 1;
        }
        if self.minimum >= self.levels.len() {
            self.minimum = 0;
        }
    }

    fn raise(&mut self, level: usize) {
        if self.levels.len() <= level {
            self.levels.resize(level + 1, 0);
        }
        if let Some(members) = self.levels.get_mut(level) {
            *members += 1;
        }
    }

    fn lower(&mut self, level: usize) {
        if let Some(members) = self.levels.get_mut(level) {
            *members = members.saturating_sub(1);
        }
    }
}

fn level(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_emptiest_domain_is_known_after_every_change() {
        let mut tally = Tally::default();
        assert_eq!(tally.minimum(1), 0);
        tally.join(0);
        tally.add(0, 3);
        assert_eq!(tally.minimum(1), 3);
        assert_eq!(tally.minimum(2), 0);
        assert!(tally.join(4));
        assert!(!tally.join(4));
        assert_eq!(tally.minimum(2), 0);
        tally.leave(4);
        assert_eq!(tally.minimum(1), 3);
    }

    proptest! {
        #[test]
        fn it_agrees_with_counting_anew(changes in prop::collection::vec((0_usize..5, 0_u32..4, any::<bool>()), 0..60)) {
            let mut tally = Tally::default();
            let mut counts = [0_u32; 5];
            let mut members = [false; 5];
            for (domain, pods, joins) in changes {
                if joins {
                    tally.join(domain);
                    members.iter_mut().skip(domain).take(1).for_each(|member| *member = true);
                } else {
                    tally.add(domain, pods);
                    counts.iter_mut().skip(domain).take(1).for_each(|count| *count += pods);
                }
                let least = counts.iter().zip(&members).filter(|(_, member)| **member).map(|(count, _)| *count).min();
                prop_assert_eq!(tally.minimum(1), least.unwrap_or(0));
            }
        }
    }
}
