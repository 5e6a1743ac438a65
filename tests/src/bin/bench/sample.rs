//! Samples, their medians, and the table.

/// Measured times in seconds.
#[derive(Debug, Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn push(&mut self, seconds: f64) {
        self.0.push(seconds);
        self.0.sort_by(f64::total_cmp);
    }

    pub(crate) fn extend(&mut self, seconds: impl IntoIterator<Item = f64>) {
        seconds.into_iter().for_each(|one| self.push(one));
    }

    pub(crate) fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// The value below which `share` of the sample lies.
    fn at(&self, share: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "an index into a small sample"
        )]
        let index = ((self.0.len().saturating_sub(1)) as f64 * share).round() as usize;
        self.0.get(index).copied().unwrap_or(f64::NAN)
    }
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    name: String,
    value: String,
    spread: String,
    target: String,
    missed: bool,
}

impl Row {
    /// A time with its spread; `target` in seconds.
    pub(crate) fn time(name: &str, sample: &Sample, target: Option<f64>) -> Self {
        Self {
            name: name.to_owned(),
            value: milliseconds(sample.median()),
            spread: format!("{} – {}", milliseconds(sample.at(0.05)), milliseconds(sample.at(0.95))),
            target: target.map(|seconds| format!("≤ {}", milliseconds(seconds))).unwrap_or_default(),
            missed: target.is_some_and(|seconds| sample.median() > seconds),
        }
    }

    /// A figure that is no time.
    pub(crate) fn value(name: &str, value: String, target: Option<&str>) -> Self {
        let number = |text: &str| text.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
        let missed = target.and_then(number).zip(number(&value)).is_some_and(|(most, is)| is > most);
        let target = target.map(|text| format!("≤ {text}")).unwrap_or_default();
        Self { name: name.to_owned(), value, spread: String::new(), target, missed }
    }

    /// A figure that was judged where it was measured.
    pub(crate) fn judged(name: &str, value: String, target: &str, missed: bool) -> Self {
        Self { name: name.to_owned(), value, spread: String::new(), target: target.to_owned(), missed }
    }
}

fn milliseconds(seconds: f64) -> String {
    let milliseconds = seconds * 1000.0;
    if milliseconds.abs() < 1.0 { format!("{milliseconds:.3} ms") } else { format!("{milliseconds:.1} ms") }
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
pub(crate) fn print_table(rows: &[Row], runs: u32) {
    println!("medians of {runs} runs; spread = 5th to 95th percentile\n");
    println!("| {:<40} | {:>12} | {:>22} | {:>12} | |", "what", "median", "spread", "target");
    println!("|{:-<42}|{:-<14}|{:-<24}|{:-<14}|-|", "", "", "", "");
    for row in rows {
        let mark = if row.missed { "missed" } else { "" };
        println!("| {:<40} | {:>12} | {:>22} | {:>12} | {mark}", row.name, row.value, row.spread, row.target);
    }
}
