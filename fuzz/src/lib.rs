//! Fuzz targets: one for each reader of bytes that come from outside. A target takes any bytes and panics when a promise
//! about them does not hold. libFuzzer drives them (`cargo fuzz`); an ordinary test drives them over the committed corpus.
//!
//! | module | reads |
//! |---|---|
//! | [`frames`] | client frames, node frames, payload heads, a route's key |
//! | [`beans`] | Auth, ReportError, handshake, varints |
//! | [`links`] | what linkd and provider say to each other |
//! | [`streams`] | what a connection begins with: PROXY line, preface, hello, WebSocket |
//! | [`proofs`] | tickets, tokens, keys |
//! | [`texts`] | names, versions, times, sizes, addresses |
//! | [`settings`] | configuration files and flags |
//! | [`certificates`] | certificates, DER and PEM |
//! | [`keys`] | the keys of records, as a storage keeps them |
//! | [`directory`] | what nodes and directory say to each other, claims among it |

mod beans;
pub mod cache;
pub mod certificates;
pub mod directory;
pub mod frames;
pub mod keys;
pub mod links;
pub mod pieces;
pub mod proofs;
pub mod settings;
pub mod streams;
pub mod texts;

use peak_alloc::PeakAlloc;

/// Counts what is on the heap, so that a target can see how much an input made its reader take.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Longer inputs find nothing here that shorter ones don't, and take longer.
pub const INPUT_BYTES_MAX: usize = 4_096;

/// One reader of foreign bytes, and what must hold for whatever it is given.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Also the name of its folder in `fuzz/corpus`.
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Bytes on the heap that it may take whatever it is given: the fuzzer's own copies, the runtime.
    heap_bytes_free: usize,
    /// Bytes on the heap that it may take for each byte of input, besides.
    heap_per_byte: usize,
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run, heap_bytes_free: 32 * 1024, heap_per_byte: 32 }
}

impl Target {
    /// Of a reader whose values are larger than their bytes.
    const fn heap(self, heap_per_byte: usize) -> Self {
        Self { heap_per_byte, ..self }
    }

    /// Of a reader that needs so much to begin with.
    const fn free(self, heap_bytes_free: usize) -> Self {
        Self { heap_bytes_free, ..self }
    }

    pub fn find(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Panics when a promise about `input` is broken, or when reading it took too much memory.
    pub fn check(&self, input: &[u8]) {
        let limit = self.heap_bytes_free + input.len() * self.heap_per_byte;
        if self.taken(input) <= limit {
            return;
        }
        // What is made once and kept is not the input's doing.
        let taken = self.taken(input);
        assert!(taken <= limit, "{} bytes made it take {taken}, at most {limit}", input.len());
    }

    /// The most that stood on the heap at once while it was read.
    fn taken(&self, input: &[u8]) -> usize {
        let before = HEAP.current_usage();
        HEAP.reset_peak_usage();
        (self.run)(input);
        HEAP.peak_usage().saturating_sub(before)
    }
}

/// Every target.
pub const TARGETS: &[Target] = &[
    target("client_frames", frames::client),
    target("node_frames", frames::node),
    target("payload", frames::payload),
    target("skim", frames::skim),
    target("auth", beans::auth),
    target("report", beans::report),
    target("bean", beans::bean),
    target("varint", beans::varint),
    target("link_heads", links::heads),
    // An empty module in a list takes two bytes, and over a hundred once it is read.
    target("link_messages", links::messages).heap(512),
    target("cache_heads", cache::heads),
    // As in link_messages.
    target("cache_bodies", cache::bodies).heap(128),
    target("key", keys::key),
    target("proxy", streams::proxy),
    target("preface", streams::preface),
    target("hello", streams::hello),
    target("upgrade", streams::upgrade),
    target("websocket", streams::websocket),
    target("ticket", proofs::ticket),
    target("ticket_signed", proofs::ticket_signed),
    target("ticket_key", proofs::key),
    target("token", proofs::token),
    target("claims", proofs::claims).heap(512),
    target("text", texts::text).heap(128),
    // The schema of all sections is built for each reading.
    target("config_file", settings::file).heap(1_024).free(1 << 20),
    target("config_flags", settings::flags).heap(1_024).free(1 << 20),
    target("certificate", certificates::der).heap(128),
    target("certificate_file", certificates::pem).heap(128),
    target("to_directory", directory::to).heap(512),
    target("from_directory", directory::from).heap(512),
];
