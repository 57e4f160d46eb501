//! Amounts of a resource as Kubernetes writes them: `1`, `500m`, `1Gi`, `2e3`.

use std::fmt;
use std::str::FromStr;

const NANO: i128 = 1_000_000_000;

/// Suffixes for larger units, with their factor.
const LARGE: [(&str, i128); 12] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
];

/// Suffixes for smaller units, with their billionths.
const SMALL: [(&str, i128); 3] = [("n", 1), ("u", 1_000), ("m", 1_000_000)];

/// An amount in billionths. What is smaller is rounded up, as Kubernetes does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

/// The text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no quantity: write a number with a suffix that Kubernetes knows, as in 500m, 2 or 1Gi"
)]
pub struct ParseQuantityError {
    /// The text as it was given.
    pub text: String,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// From billionths.
    pub fn from_nano(nano: i128) -> Self {
        Self(nano)
    }

    /// From thousandths, as CPU is counted.
    pub fn from_milli(milli: u64) -> Self {
        Self(i128::from(milli) * (NANO / 1_000))
    }

    /// From whole units, as memory and pods are counted.
    pub fn from_units(units: u64) -> Self {
        Self(i128::from(units) * NANO)
    }

    /// Reads the written form.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        parse_nano(text)
            .map(Self)
            .ok_or_else(|| ParseQuantityError {
                text: text.to_owned(),
            })
    }

    /// In billionths.
    pub fn nano(self) -> i128 {
        self.0
    }

    /// In thousandths, rounded up; a negative amount is 0.
    pub fn cpu_milli(self) -> u64 {
        self.units_of(NANO / 1_000)
    }

    /// In whole bytes, rounded up; a negative amount is 0.
    pub fn bytes(self) -> u64 {
        self.units_of(NANO)
    }

    fn units_of(self, unit: i128) -> u64 {
        u64::try_from(ceil_div(self.0.max(0), unit)).unwrap_or(u64::MAX)
    }
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// The shortest exact form: `1Gi`, `1500`, `1500m`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 % NANO == 0 {
            let units = self.0 / NANO;
            let binary = LARGE.iter().take(6).rev();
            let mut fitting = binary.filter(|(_, factor)| units != 0 && units % factor == 0);
            return match fitting.next() {
                Some((suffix, factor)) => write!(f, "{}{suffix}", units / factor),
                None => write!(f, "{units}"),
            };
        }
        let mut fitting = SMALL.iter().rev().filter(|(_, nano)| self.0 % nano == 0);
        match fitting.next() {
            Some((suffix, nano)) => write!(f, "{}{suffix}", self.0 / nano),
            None => write!(f, "{}n", self.0),
        }
    }
}

fn parse_nano(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    // The value is digits * numerator / denominator billionths.
    let (mut numerator, mut denominator) = scale_of(suffix)?;
    let places = u32::try_from(fraction.len()).ok()?;
    denominator = denominator.checked_mul(10_i128.checked_pow(places)?)?;
    let common = gcd(numerator, denominator);
    numerator /= common;
    denominator /= common;
    let product = digits.checked_mul(numerator)?;
    // Rounded away from zero, as Kubernetes does.
    let magnitude = ceil_div(product, denominator);
    Some(if negative { -magnitude } else { magnitude })
}

/// Billionths of one unit with this suffix, as a fraction.
fn scale_of(suffix: &str) -> Option<(i128, i128)> {
    if suffix.is_empty() {
        return Some((NANO, 1));
    }
    if let Some((_, nano)) = SMALL.iter().find(|(name, _)| *name == suffix) {
        return Some((*nano, 1));
    }
    if let Some((_, factor)) = LARGE.iter().find(|(name, _)| *name == suffix) {
        return Some((factor.checked_mul(NANO)?, 1));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    if exponent < 0 {
        Some((NANO, power))
    } else {
        Some((NANO.checked_mul(power)?, 1))
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

/// For a value that is not negative.
fn ceil_div(value: i128, unit: i128) -> i128 {
    value / unit + i128::from(value % unit > 0)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use proptest::prelude::*;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn cpu_is_counted_in_thousandths_rounded_up() {
        let table = [
            ("1", 1_000),
            ("0.5", 500),
            ("500m", 500),
            ("1.5", 1_500),
            (".25", 250),
            ("2.", 2_000),
            ("100u", 1),
            ("1n", 1),
            ("0.0001", 1),
            ("0", 0),
            ("-1", 0),
            ("+2", 2_000),
        ];
        for (text, milli) in table {
            assert_eq!(quantity(text).cpu_milli(), milli, "{text}");
        }
    }

    #[test]
    fn memory_is_counted_in_bytes_rounded_up() {
        let table = [
            ("128974848", 128_974_848),
            ("129e6", 129_000_000),
            ("129M", 129_000_000),
            ("123Mi", 128_974_848),
            ("1Gi", 1 << 30),
            ("1.5Gi", 3 << 29),
            ("1E", 1_000_000_000_000_000_000),
            ("1Ei", 1 << 60),
            ("2E3", 2_000),
            ("5e-1", 1),
            ("500m", 1),
            ("128974848000m", 128_974_848),
        ];
        for (text, bytes) in table {
            assert_eq!(quantity(text).bytes(), bytes, "{text}");
        }
    }

    #[test]
    fn what_is_below_a_billionth_is_rounded_away_from_zero() {
        assert_eq!(quantity("0.1n").nano(), 1);
        assert_eq!(quantity("-0.1n").nano(), -1);
    }

    #[test]
    fn refuses_what_is_no_quantity() {
        for text in [
            "", ".", "-", "Gi", "1.2.3", "1 Gi", "1gi", "1K", "1e", "1e99", "1m1", "0x10", "٣",
        ] {
            assert_eq!(
                Quantity::parse(text),
                Err(ParseQuantityError {
                    text: text.to_owned()
                })
            );
        }
    }

    #[test]
    fn writes_the_shortest_exact_form() {
        for (text, written) in [
            ("1024Mi", "1Gi"),
            ("1500", "1500"),
            ("1.5", "1500m"),
            ("0.1u", "100n"),
            ("0", "0"),
        ] {
            assert_eq!(quantity(text).to_string(), written);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(nano in -(1_i128 << 100)..(1_i128 << 100)) {
            let quantity = Quantity::from_nano(nano);
            prop_assert_eq!(Quantity::parse(&quantity.to_string()), Ok(quantity));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}|[-+]?[0-9.]{0,40}[numkMGTPEi]{0,2}|[0-9]{1,4}[eE][-+0-9]{0,4}") {
            let _ = Quantity::parse(&text);
        }
    }
}
