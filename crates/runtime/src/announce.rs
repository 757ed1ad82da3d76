//! Reports long waits, so that none goes unnoticed in the log.

use std::{future::Future, pin::pin, time::Duration};

use k1s_env::Env;

/// Time until the first report.
const FIRST_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum interval between two reports; it doubles each time.
const MAX_INTERVAL: Duration = Duration::from_secs(300);

/// Waits for a future; `report` is called at growing intervals with the time waited so far.
pub(crate) async fn announced<F: Future>(
    env: &Env,
    waiting: F,
    mut report: impl FnMut(Duration),
) -> F::Output {
    let mut waiting = pin!(waiting);
    let began = env.now();
    let mut pause = FIRST_INTERVAL;
    loop {
        match env.timeout(pause, &mut waiting).await {
            Ok(output) => return output,
            Err(_) => report(env.now() - began),
        }
        pause = (pause * 2).min(MAX_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_wait_is_reported_at_growing_intervals() {
        let (env, clock) = Env::simulated(1);
        let waiting = env.spawn("waiting", {
            let env = env.clone();
            async move {
                let mut seen = Vec::new();
                announced(&env, env.sleep(Duration::from_secs(1300)), |so_far| seen.push(so_far.as_secs()))
                    .await;
                seen
            }
        });
        clock.advance_and_settle(Duration::from_secs(1300)).await;
        assert_eq!(waiting.await, Ok(vec![5, 15, 35, 75, 155, 315, 615, 915, 1215]));
    }
}
