//! The file of a log, which is renamed when it is large.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use k1s_env::Env;

use super::backups;
use crate::audit::options::AuditLogOptions;

/// Lines are written when there are this many bytes of them.
const BUFFER_BYTES: usize = 128 << 10;

/// A log file, or the standard output.
pub(super) struct LogFile {
    env: Env,
    /// `None` for the standard output.
    path: Option<PathBuf>,
    max_size: u64,
    /// `None` after an error: it is opened again.
    file: Option<File>,
    /// The size of the file.
    size: u64,
    buffer: Vec<u8>,
    /// Whether the file may end within a line, after an error.
    is_torn: bool,
}

/// Opens a file that nobody else may read.
fn open(path: &Path, fresh: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true);
    if fresh {
        options.create_new(true)
    } else {
        options.create(true)
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl LogFile {
    pub(super) fn open(env: &Env, options: &AuditLogOptions) -> io::Result<LogFile> {
        let path = (options.path.as_os_str() != "-").then(|| options.path.clone());
        if let Some(folder) =
            path.as_deref().and_then(Path::parent).filter(|path| !path.as_os_str().is_empty())
        {
            let mut builder = DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder)?;
        }
        let mut log = LogFile {
            env: env.clone(),
            path,
            max_size: if options.max_size == 0 { u64::MAX } else { options.max_size },
            file: None,
            size: 0,
            buffer: Vec::new(),
            is_torn: false,
        };
        log.reopen()?;
        Ok(log)
    }

    fn reopen(&mut self) -> io::Result<()> {
        if let (Some(path), None) = (&self.path, &self.file) {
            let file = open(path, false)?;
            self.size = file.metadata()?.len();
            self.file = Some(file);
        }
        Ok(())
    }

    /// Whether the file has to be renamed before a line of this length.
    pub(super) fn is_full_with(&self, line: usize) -> bool {
        let before = self.size + self.buffer.len() as u64;
        self.path.is_some() && before > 0 && before + line as u64 > self.max_size
    }

    /// Adds a line to the buffer. Returns whether the buffer should be written.
    pub(super) fn add(&mut self, line: &[u8]) -> bool {
        self.buffer.extend_from_slice(line);
        self.buffer.len() >= BUFFER_BYTES
    }

    /// Writes the buffer. After an error its lines are lost.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if self.is_torn {
            self.buffer.insert(0, b'\n');
        }
        let written = self.write_buffer();
        if written.is_err() {
            self.file = None;
        }
        self.is_torn = written.is_err();
        self.buffer.clear();
        written
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        if self.path.is_none() {
            let mut out = io::stdout().lock();
            return out.write_all(&self.buffer).and_then(|()| out.flush());
        }
        self.reopen()?;
        let Some(file) = &mut self.file else { return Err(io::Error::other("the file is not open")) };
        file.write_all(&self.buffer)?;
        self.size += self.buffer.len() as u64;
        Ok(())
    }

    /// Renames the file and begins a new one. If that fails, the file is continued. Returns whether there is a new file.
    pub(super) fn rotate_or_log(&mut self) -> bool {
        match self.rotate() {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(%error, "the audit log cannot be rotated");
                false
            }
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut at = crate::time::now(&self.env);
        let backup = loop {
            let name = backups::name(path, at);
            if !name.try_exists()? && !backups::compressed(&name).try_exists()? {
                break name;
            }
            at = at.saturating_add(jiff::SignedDuration::from_millis(1)).unwrap_or(at);
        };
        fs::rename(path, backup)?;
        // If this fails, the next write opens it again.
        self.file = None;
        self.size = 0;
        self.file = Some(open(path, true)?);
        Ok(())
    }
}
