//! Waits that say what they wait for: none goes on for long without a line in the log.

use std::{future::Future, pin::pin, time::Duration};

use k1s_env::Env;

/// After so long it is said for the first time.
const FIRST: Duration = Duration::from_secs(5);

/// The pause between two lines doubles each time, up to this.
const LONGEST: Duration = Duration::from_secs(300);

/// Waits for a future; `say` is called with the time it has taken so far when that is long, again and again, less and
/// less often.
pub(crate) async fn announced<F: Future>(env: &Env, waiting: F, mut say: impl FnMut(Duration)) -> F::Output {
    let mut waiting = pin!(waiting);
    let began = env.now();
    let mut pause = FIRST;
    loop {
        match env.timeout(pause, &mut waiting).await {
            Ok(output) => return output,
            Err(_) => say(env.now() - began),
        }
        pause = (pause * 2).min(LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_wait_is_told_again_and_again_less_and_less_often() {
        let (env, clock) = Env::simulated(1);
        let waiting = env.spawn("waiting", {
            let env = env.clone();
            async move {
                let mut told = Vec::new();
                announced(&env, env.sleep(Duration::from_secs(1300)), |so_far| told.push(so_far.as_secs()))
                    .await;
                told
            }
        });
        clock.advance_and_settle(Duration::from_secs(1300)).await;
        assert_eq!(waiting.await, Ok(vec![5, 15, 35, 75, 155, 315, 615, 915, 1215]));
    }
}
