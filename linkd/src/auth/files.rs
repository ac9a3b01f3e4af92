//! Key files: read whole, bounded, and of a secret only when nobody else can.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use zeroize::Zeroizing;

/// Larger than any chain of PEM that makes sense here.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The whole file.
pub fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// A file that only its owner may read; wiped after use.
pub fn read_secret(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(io::Error::other(format!("others may read it (mode {mode:04o}); make it 0600")));
    }
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
