//! Ranges of addresses.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// A range of IPv4 addresses, written `10.251.3.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ipv4Range {
    address: Ipv4Addr,
    prefix: u8,
}

/// A text that is no range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a range like 10.251.3.0/24")]
pub struct ParseRangeError {
    /// The text.
    pub text: String,
}

impl Ipv4Range {
    /// Every address.
    pub const ALL: Self = Self {
        address: Ipv4Addr::UNSPECIFIED,
        prefix: 0,
    };

    /// The range of this length that holds the address; `None` beyond 32.
    pub fn new(address: Ipv4Addr, prefix: u8) -> Option<Self> {
        let host = 32_u8.checked_sub(prefix)?;
        let mask = u32::MAX.checked_shl(u32::from(host)).unwrap_or(0);
        Some(Self {
            address: Ipv4Addr::from_bits(address.to_bits() & mask),
            prefix,
        })
    }

    /// Its first address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Length of its prefix.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }
}

impl fmt::Display for Ipv4Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Ipv4Range {
    type Err = ParseRangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (address, prefix) = text.split_once('/')?;
            Self::new(address.parse().ok()?, prefix.parse().ok()?)
        };
        parse().ok_or_else(|| ParseRangeError {
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_range_is_written_by_its_first_address() {
        let check = |text: &str, shown: &str| {
            assert_eq!(text.parse::<Ipv4Range>().unwrap().to_string(), shown)
        };
        check("10.251.3.0/24", "10.251.3.0/24");
        check("10.251.3.7/24", "10.251.3.0/24");
        check("1.2.3.4/0", "0.0.0.0/0");
        check("1.2.3.4/32", "1.2.3.4/32");
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0/8",
            "10.0.0.0/-1",
            "::/0",
        ] {
            text.parse::<Ipv4Range>().unwrap_err();
        }
    }
}
