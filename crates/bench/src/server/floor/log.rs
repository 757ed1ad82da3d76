//! A file that writes are appended to, with group commit: what waits together shares a write and a sync.

use std::{
    fs::File,
    io::Write as _,
    path::Path,
    sync::mpsc::{Receiver, Sender, channel},
};

use bytes::Bytes;
use k1s_env::Env;
use tokio::sync::oneshot;

use crate::{Failure, report};

/// What is to be written, and whom to tell when it is synced.
type Entry = (Bytes, oneshot::Sender<()>);

pub(super) struct Log(Sender<Entry>);

impl Log {
    pub(super) fn create(env: &Env, path: &Path) -> Result<Log, Failure> {
        let mut file = File::create(path)?;
        let (sender, queue) = channel();
        env.spawn_thread("floor log", move || {
            // Those who wait learn of a failure by what is dropped.
            if let Err(error) = write(&mut file, &queue) {
                report::progress(&format!("the floor cannot write: {error}"));
            }
        })?;
        Ok(Log(sender))
    }

    /// Appends some bytes; returns when they are synced.
    pub(super) async fn append(&self, bytes: Bytes) -> Result<(), Failure> {
        let ended = || Failure("the log has ended".to_owned());
        let (done, synced) = oneshot::channel();
        self.0.send((bytes, done)).map_err(|_| ended())?;
        synced.await.map_err(|_| ended())
    }
}

fn write(file: &mut File, queue: &Receiver<Entry>) -> std::io::Result<()> {
    let (mut batch, mut waiting) = (Vec::new(), Vec::new());
    while let Ok(first) = queue.recv() {
        for (bytes, done) in std::iter::once(first).chain(queue.try_iter()) {
            batch.extend_from_slice(&bytes);
            waiting.push(done);
        }
        file.write_all(&batch)?;
        file.sync_data()?;
        batch.clear();
        for done in waiting.drain(..) {
            // A client that went away need not know.
            let _ = done.send(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_answered_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Log::create(&Env::system(), &path).unwrap();
        let writes = ["one", "two", "three"].map(|text| log.append(Bytes::from_static(text.as_bytes())));
        let [one, two, three] = writes;
        let (one, two, three) = tokio::join!(one, two, three);
        assert!(one.is_ok() && two.is_ok() && three.is_ok());
        assert_eq!(std::fs::read_to_string(path).unwrap(), "onetwothree");
    }
}
