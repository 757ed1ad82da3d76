//! Who is measured, and what was measured of them.

use super::{
    child::{Child, Kept},
    client::Target,
    floor::Floor,
    process::Process,
    work::Done,
};
use crate::{
    Failure,
    report::{Measurement, Unit, quantile},
};

/// How close to its floor a measurement should be. Reads need little beyond HTTP: to find the object and to write its
/// resourceVersion into it.
const EXPECTED_OF_FLOOR: [(&str, f64); 2] = [("get.c32", 0.7), ("https.get.c32", 0.7)];

/// The measurements of one subject.
pub(super) struct Notes<'a> {
    pub(super) subject: &'static str,
    pub(super) all: &'a mut Vec<Measurement>,
}

impl Notes<'_> {
    pub(super) fn add(&mut self, what: &str, value: f64, unit: Unit, expected: Option<f64>) {
        let share = EXPECTED_OF_FLOOR.iter().find(|(name, _)| *name == what).map(|(_, share)| *share);
        let name = format!("{}.{what}", self.subject);
        self.all.push(Measurement { name, value, unit, expected, expected_of_floor: share });
    }

    pub(super) fn rate(&mut self, what: &str, done: Done, expected: Option<f64>) {
        self.add(what, done.per_second(), Unit::PerSecond, expected);
    }

    /// The server's CPU time for each of `count` requests or events, since it had used `before`.
    pub(super) fn cpu(
        &mut self,
        what: &str,
        server: Measured<'_>,
        before: f64,
        count: u64,
    ) -> Result<(), Failure> {
        if server.process.is_some() {
            let each = (server.cpu()? - before) * 1e6 / count as f64;
            self.add(&format!("{what}-cpu"), each, Unit::Microseconds, None);
        }
        Ok(())
    }

    /// The CPU time for each request without something and with it, and what is added, by several measurements of each.
    pub(super) fn cpu_of_both(&mut self, what: &str, without: (&str, &mut [f64]), with: (&str, &mut [f64])) {
        let [before, after] = [without, with].map(|(name, seconds)| {
            let each = quantile(seconds, 0.5) * 1e6;
            self.add(&format!("{what}-{name}-cpu"), each, Unit::Microseconds, None);
            (name, each)
        });
        let name = format!("{what}-{}-added-cpu", after.0);
        self.add(&name, after.1 - before.1, Unit::Microseconds, None);
    }

    /// What is expected of a server in memory, and of no other.
    pub(super) fn in_memory(&self, number: f64) -> Option<f64> {
        (self.subject == Kept::Memory.name()).then_some(number)
    }
}

/// A server to measure.
#[derive(Clone, Copy)]
pub(super) struct Measured<'a> {
    pub(super) target: &'a Target,
    /// If it is a process of this run.
    pub(super) process: Option<&'a Process>,
    /// The floor does not.
    pub(super) keeps_objects: bool,
}

impl<'a> Measured<'a> {
    pub(super) fn child(child: &'a Child) -> Measured<'a> {
        Measured { target: &child.target, process: Some(&child.process), keeps_objects: true }
    }

    pub(super) fn peer(target: &'a Target) -> Measured<'a> {
        Measured { target, process: None, keeps_objects: true }
    }

    pub(super) fn floor(floor: &'a Floor) -> Measured<'a> {
        Measured { target: &floor.target, process: Some(&floor.process), keeps_objects: false }
    }

    /// The CPU time it has used, in seconds; 0 if it is not a process of this run.
    pub(super) fn cpu(self) -> Result<f64, Failure> {
        self.process.map(Process::cpu_seconds).transpose().map(Option::unwrap_or_default)
    }
}
