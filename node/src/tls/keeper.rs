//! Looks at certificate files again and again, and on SIGHUP at once: good new content is used for new handshakes, bad
//! content leaves the old in force and raises an alarm until it is mended.

use std::time::Duration;

use net::tls::{Material, MaterialError};

use super::files::{Files, unix_seconds};
use crate::ops::Readiness;
use crate::signal::Looks;

/// Days before the end of a certificate's time at which somebody is told.
const DAYS: [i64; 3] = [30, 7, 1];
const DAY: i64 = 86_400;

/// How the certificates are called in logs and metrics, and in the warnings of the ops pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub name: &'static str,
    pub alarm: &'static str,
}

type Replace = Box<dyn Fn(&Material) -> Result<(), MaterialError> + Send>;

pub(super) struct Keeper {
    kept: Kept,
    files: Files,
    /// Of the content in force.
    digest: u64,
    not_after: i64,
    replace: Replace,
    readiness: Readiness,
    /// The failure that was reported last, so that it is reported once.
    failure: Option<String>,
    /// The fewest days left that were reported.
    warned_days: i64,
}

impl Keeper {
    pub fn new(
        kept: Kept,
        files: Files,
        digest: u64,
        (_, not_after): (i64, i64),
        replace: Replace,
        readiness: Readiness,
    ) -> Self {
        let (failure, warned_days) = (None, i64::MAX);
        Self { kept, files, digest, not_after, replace, readiness, failure, warned_days }
    }

    /// Never ends by itself.
    pub async fn run(mut self, look: Duration) {
        let mut looks = Looks::new(look);
        self.look(false);
        loop {
            let asked = looks.next().await;
            self.look(asked);
        }
    }

    /// Looks once. `asked`: by an operator, who is answered even when nothing is new.
    pub fn look(&mut self, asked: bool) {
        match self.renew() {
            Ok(renewed) => {
                if renewed || asked {
                    let (certificates, renewed) = (self.kept.name, renewed);
                    tracing::info!(certificates, renewed, "certificates were read again");
                }
                if renewed {
                    metrics::counter!("linkstead_tls_reloads_total", "use" => self.kept.name).increment(1);
                }
                self.failure = None;
                self.readiness.calm(self.kept.alarm);
            }
            Err(why) => self.alarm(why, asked),
        }
        self.watch_time();
    }

    /// True: newer content is in force.
    fn renew(&mut self) -> Result<bool, String> {
        let (material, digest) = self.files.read().map_err(|bad| bad.to_string())?;
        if digest == self.digest {
            return Ok(false);
        }
        if base::planted::is("renewal_ignored") {
            self.digest = digest;
            return Ok(true);
        }
        (self.replace)(&material).map_err(|error| self.files.bad("cert", error).to_string())?;
        self.digest = digest;
        (_, self.not_after) = material.validity();
        self.warned_days = i64::MAX;
        Ok(true)
    }

    fn alarm(&mut self, why: String, asked: bool) {
        if asked || self.failure.as_ref() != Some(&why) {
            metrics::counter!("linkstead_tls_reload_failed_total", "use" => self.kept.name).increment(1);
            let certificates = self.kept.name;
            tracing::error!(certificates, %why, "new certificates can't be used; the old ones stay in force");
        }
        self.readiness.warn(self.kept.alarm, why.clone());
        self.failure = Some(why);
    }

    fn watch_time(&mut self) {
        let left = self.not_after - unix_seconds();
        metrics::gauge!("linkstead_certificate_expires_seconds", "use" => self.kept.name).set(left as f64);
        let days = DAYS.into_iter().rev().find(|days| left < days * DAY);
        let Some(days) = days.map(|days| if left <= 0 { 0 } else { days }) else { return };
        if days < self.warned_days {
            self.warned_days = days;
            let certificates = self.kept.name;
            if days == 0 {
                tracing::error!(
                    certificates,
                    "the certificate has expired: connections live on, new ones are refused"
                );
            } else {
                tracing::warn!(
                    certificates,
                    seconds_left = left,
                    "the certificate expires soon; issue a new one"
                );
            }
        }
    }
}
