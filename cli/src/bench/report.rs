//! The rows of a bench: one a line, JSON or text.

use serde::Serialize;
use serde_json::json;

use super::load::Measured;

/// One measured subject of one workload.
#[derive(Debug, Clone, Serialize)]
pub struct Row<'a> {
    pub bench: &'a str,
    pub subject: &'a str,
    pub workload: &'a str,
    #[serde(flatten)]
    pub measured: Measured,
    /// All processes shared one core.
    pub pinned: bool,
    /// What is on while this is measured.
    pub limits: &'a str,
}

pub fn row(row: &Row<'_>, as_json: bool) {
    if as_json {
        println!("{}", json!(row));
        return;
    }
    let m = &row.measured;
    println!(
        "{:<10} {:<10} {:<16} {:>11.0} ops/s  p50 {:>8.1} us  p99 {:>8.1} us  p999 {:>8.1} us  errors {}{}",
        row.bench,
        row.subject,
        row.workload,
        m.ops_per_s,
        m.p50_us,
        m.p99_us,
        m.p999_us,
        m.errors,
        if row.pinned { "  (one core)" } else { "" }
    );
}

/// Ours over a baseline's.
pub fn ratio(bench: &str, workload: &str, baseline: &str, ours: &Measured, theirs: &Measured, as_json: bool) {
    let (ratio_ops, ratio_p50) = (ours.ops_per_s / theirs.ops_per_s, ours.p50_us / theirs.p50_us);
    if as_json {
        let kind = "ratio";
        println!(
            "{}",
            json!({ "bench": bench, "workload": workload, "baseline": baseline, "kind": kind, "ratio_ops": ratio_ops, "ratio_p50": ratio_p50 })
        );
    } else {
        println!(
            "{bench:<10} {workload:<16} over {baseline}: {ratio_ops:.2} times the ops, {ratio_p50:.2} of the p50"
        );
    }
}

/// What a figure is to come to.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub figure: &'static str,
    /// At least that much, or at most.
    pub least: bool,
    pub measured: f64,
    pub target: f64,
}

impl Target {
    pub fn is_met(&self) -> bool {
        if self.least { self.measured >= self.target } else { self.measured <= self.target }
    }
}

pub fn target(bench: &str, workload: &str, target: &Target, as_json: bool) {
    let (Target { figure, measured, target: wanted, .. }, met) = (target, target.is_met());
    if as_json {
        let kind = "target";
        println!(
            "{}",
            json!({ "bench": bench, "workload": workload, "kind": kind, "figure": figure, "measured": measured, "target": wanted, "met": met })
        );
    } else {
        let word = if target.least { "at least" } else { "at most" };
        println!(
            "{bench:<10} {workload:<16} target {figure} {word} {wanted:.2}: {measured:.2} {}",
            self::met(met)
        );
    }
}

/// Whether a target was met, in a word.
pub fn met(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

/// The median of one figure.
pub fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median of each figure over the rounds; errors are summed.
pub fn median(rounds: &[Measured]) -> Measured {
    let of = |figure: fn(&Measured) -> f64| middle(rounds.iter().map(figure).collect());
    Measured {
        ops_per_s: of(|m| m.ops_per_s),
        p50_us: of(|m| m.p50_us),
        p99_us: of(|m| m.p99_us),
        p999_us: of(|m| m.p999_us),
        errors: rounds.iter().map(|m| m.errors).sum(),
    }
}
