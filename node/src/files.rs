//! Small files that say something: settings, certificates, keys. Read whole and bounded; a secret only when nobody else
//! can read it.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base::Secret;

/// What a secret's file may allow at most: its owner reads and writes.
const SECRET_MODE: u32 = 0o600;

/// Why a file can't be used. The operator's to mend; the text follows the file's name.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("can't be read: {0}")]
    Io(#[from] io::Error),
    #[error("is a directory, not a file")]
    Directory,
    /// A pipe could be waited for without end, a device read without end.
    #[error("is no plain file")]
    NotPlain,
    #[error("is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("has mode {mode:04o}, so others can use it; make it 0600: chmod 600 {}", path.display())]
    NotSecret { mode: u32, path: PathBuf },
}

/// The whole file, of at most `bytes_max`.
pub fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, FileError> {
    // Asked before it is opened: opening a pipe waits for who writes to it.
    plain(&std::fs::metadata(path)?)?;
    whole(File::open(path)?, bytes_max)
}

/// The same of what an operator may also pipe in.
pub fn read_any(path: &Path, bytes_max: usize) -> Result<Vec<u8>, FileError> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(FileError::Directory);
    }
    whole(File::open(path)?, bytes_max)
}

/// A file that nobody but its owner may use.
pub fn read_secret(path: &Path, bytes_max: usize) -> Result<Secret, FileError> {
    plain(&std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    // Judged on the opened file, so that nobody exchanges it in between.
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & !SECRET_MODE != 0 {
        return Err(FileError::NotSecret { mode, path: path.to_owned() });
    }
    whole(file, bytes_max).map(Secret::new)
}

fn plain(meta: &Metadata) -> Result<(), FileError> {
    match meta {
        meta if meta.is_dir() => Err(FileError::Directory),
        meta if !meta.is_file() => Err(FileError::NotPlain),
        _ => Ok(()),
    }
}

fn whole(file: File, bytes_max: usize) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max { Err(FileError::TooLarge { bytes_max }) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    /// Holds: BI-108, BI-115.
    #[test]
    fn only_plain_bounded_files_are_read_and_secrets_only_from_their_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        fs::write(&path, b"12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert!(matches!(read(&path, 4), Err(FileError::TooLarge { bytes_max: 4 })));
        assert!(matches!(read(dir.path(), 4), Err(FileError::Directory)));
        assert!(matches!(read(Path::new("/dev/zero"), 4), Err(FileError::NotPlain)));
        assert!(matches!(read_any(Path::new("/dev/zero"), 4), Err(FileError::TooLarge { .. })));
        assert!(matches!(read_any(dir.path(), 4), Err(FileError::Directory)));
        assert!(matches!(read(&dir.path().join("none"), 4), Err(FileError::Io(_))));
        for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o700, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let read = read_secret(&path, 5);
            assert_eq!(read.is_ok(), good, "{mode:o}: {read:?}");
        }
    }
}
