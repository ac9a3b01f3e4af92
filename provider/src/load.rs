//! Core: when linkds are told how loaded this provider is. At once when something matters, rarely when calm.

use std::collections::VecDeque;

use base::{Mono, Span};

use crate::config::Config;

/// Looks that are kept to count the logins of the last second.
const LOOKS_MAX: usize = 64;

/// One look at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// Sessions here.
    pub online: u32,
    /// Logins since the start.
    pub logins: u64,
    /// 0 fine, 1 threshold, 2 overload.
    pub overload: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Look(Sample),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Tell every linkd.
    Report(Report),
}

/// What linkds are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    pub online: u32,
    /// Logins in the last second.
    pub online_new: u32,
    pub overload: u32,
}

impl Config {
    /// What observers of this provider see.
    pub(crate) fn load(&self, report: &Report) -> node::directory::Load {
        let &Report { online, online_new, overload } = report;
        let (propose_max_online, max_online_new) = (self.propose_max_online, self.max_online_new);
        node::directory::Load { online, online_new, propose_max_online, max_online_new, overload }
    }
}

/// The pace of reports.
#[derive(Debug)]
pub struct Load {
    min: Span,
    max: Span,
    propose_max_online: u32,
    max_online_new: u32,
    looks: VecDeque<(Mono, u64)>,
    last: Option<(Mono, Report)>,
    /// The wait that is in force; doubles while nothing changes.
    interval: Span,
}

impl Load {
    pub fn new(config: &Config) -> Self {
        let (min, max) = (config.load_report_min.span(), config.load_report_max.span());
        Self {
            min,
            max,
            propose_max_online: config.propose_max_online,
            max_online_new: config.max_online_new,
            looks: VecDeque::new(),
            last: None,
            interval: min,
        }
    }

    /// The last report, for a linkd that has just come.
    pub fn last(&self) -> Report {
        self.last.map_or_else(Report::default, |(_, report)| report)
    }

    pub fn step(&mut self, now: Mono, event: Event, actions: &mut Vec<Action>) {
        let Event::Look(sample) = event;
        let online_new = self.logins_of_last_second(now, sample.logins);
        let report = Report { online: sample.online, online_new, overload: sample.overload };
        let Some((at, last)) = self.last else { return self.report(now, report, actions) };
        let elapsed = now.since(at);
        let changed = report.online != last.online;
        if changed {
            self.interval = self.min;
        }
        if self.matters(&last, &report) && !base::planted::is("overload_told_late") {
            self.interval = self.min;
            self.report(now, report, actions);
        } else if elapsed >= self.interval {
            if !changed {
                self.interval = self.interval.times(2).min(self.max);
            }
            self.report(now, report, actions);
        }
    }

    /// What linkds must know at once: another level, the login rate or the proposed maximum newly exceeded.
    fn matters(&self, last: &Report, report: &Report) -> bool {
        let newly = |was: u32, is: u32, limit: u32| was <= limit && is > limit;
        last.overload != report.overload
            || newly(last.online_new, report.online_new, self.max_online_new)
            || newly(last.online, report.online, self.propose_max_online)
    }

    fn report(&mut self, now: Mono, report: Report, actions: &mut Vec<Action>) {
        self.last = Some((now, report));
        actions.push(Action::Report(report));
    }

    fn logins_of_last_second(&mut self, now: Mono, logins: u64) -> u32 {
        if self.looks.is_empty() {
            // Before the first look nobody was here.
            self.looks.push_back((now, 0));
        }
        self.looks.push_back((now, logins));
        let old = |(at, _): &(Mono, u64)| now.since(*at) > Span::secs(1);
        while self.looks.len() > LOOKS_MAX || self.looks.front().is_some_and(old) {
            self.looks.pop_front();
        }
        let before = self.looks.front().map_or(logins, |(_, before)| *before);
        u32::try_from(logins.saturating_sub(before)).unwrap_or(u32::MAX)
    }

    /// What always holds between two steps.
    pub fn check(&self) {
        assert!(
            self.interval >= self.min && self.interval <= self.max.max(self.min),
            "the interval keeps its bounds"
        );
        assert!(self.looks.len() <= LOOKS_MAX, "looks are bounded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Seconds at which a report left, looking five times a second for a minute.
    fn reports(sample: impl Fn(u64) -> Sample) -> Vec<(u64, Report)> {
        let mut load = Load::new(&Config::default());
        let mut out = Vec::new();
        for millis in (0..60_000).step_by(200) {
            let mut actions = Vec::new();
            load.step(Mono(millis * 1_000), Event::Look(sample(millis)), &mut actions);
            load.check();
            out.extend(actions.into_iter().map(|Action::Report(report)| (millis, report)));
        }
        out
    }

    /// Holds: Z-26.
    #[test]
    fn reports_grow_rare_while_calm_and_frequent_with_change() {
        let calm: Vec<u64> = reports(|_| Sample::default()).into_iter().map(|(at, _)| at).collect();
        assert_eq!(calm, [0, 1_000, 3_000, 7_000, 15_000, 25_000, 35_000, 45_000, 55_000]);
        let busy = reports(|millis| Sample { online: (millis / 200) as u32, ..Sample::default() });
        assert!(busy.windows(2).all(|pair| pair[1].0 - pair[0].0 == 1_000));
    }

    /// Holds: Z-25, Z-26.
    #[test]
    fn what_matters_is_told_at_once() {
        let overloaded =
            reports(|millis| Sample { overload: u32::from(millis >= 20_400), ..Sample::default() });
        assert!(overloaded.iter().any(|(at, report)| *at == 20_400 && report.overload == 1));
        let flood = |millis: u64| if millis < 20_400 { 0 } else { (millis - 20_200) * 2 };
        let flooded = reports(|millis| Sample { logins: flood(millis), ..Sample::default() });
        let first = flooded.iter().find(|(_, report)| report.online_new > 100).copied();
        assert_eq!(first.map(|(at, report)| (at, report.online_new)), Some((20_400, 400)));
    }

    proptest! {
        /// Holds: Z-26.
        #[test]
        fn silence_never_lasts_longer_than_the_longest_interval(online in prop::collection::vec(0..3u32, 300)) {
            let sample = |millis: u64| Sample { online: online[(millis / 200) as usize], ..Sample::default() };
            let reports = reports(sample);
            prop_assert!(reports.windows(2).all(|pair| pair[1].0 - pair[0].0 <= 10_000));
        }
    }
}
