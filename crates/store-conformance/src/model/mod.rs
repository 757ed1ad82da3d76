//! Random operations compared with a model, result by result.

mod replay;
mod state;
mod step;

pub use replay::replay;
pub use step::{Act, At, If, Step, StepOp};

use super::{Backend, Violation, support::Dice};

/// Maximum number of runs to shrink a failing sequence.
const SHRINK_BUDGET: usize = 400;

/// Runs a random sequence of `steps` operations and compares every result with a simple model: values,
/// revisions, errors, reads of the past, compaction, and the items of open watches.
///
/// # Panics
/// If the store disagrees: with the seed, the disagreement, and a short sequence of steps that leads to it.
pub async fn model(backend: &dyn Backend, seed: u64, steps: usize) {
    let dice = Dice::new(seed);
    let steps: Vec<_> = (0..steps).map(|_| Step::random(&dice)).collect();
    if let Err(violation) = attempt(backend, &steps).await {
        let (steps, violation) = shrink(backend, steps, violation).await;
        let listed: Vec<_> = steps.iter().enumerate().map(|(n, step)| format!("  {n}: {step:?}")).collect();
        panic!("seed {seed}: {violation}\nafter these steps (shortened):\n{}", listed.join("\n"));
    }
}

async fn attempt(backend: &dyn Backend, steps: &[Step]) -> Result<(), Violation> {
    let fresh = backend.fresh().await;
    replay(fresh.store(), backend.profile(), steps).await
}

/// Removes steps not needed for the failure: first halves, then ever smaller pieces.
async fn shrink(
    backend: &dyn Backend,
    mut steps: Vec<Step>,
    mut violation: Violation,
) -> (Vec<Step>, Violation) {
    let mut budget = SHRINK_BUDGET;
    let mut piece = steps.len().div_ceil(2);
    while piece > 0 {
        let mut from = 0;
        while from < steps.len() && budget > 0 {
            budget -= 1;
            let mut shorter = steps.clone();
            shorter.drain(from..(from + piece).min(steps.len()));
            match attempt(backend, &shorter).await {
                Ok(()) => from += piece,
                Err(found) => (steps, violation) = (shorter, found),
            }
        }
        piece /= 2;
    }
    (steps, violation)
}
