//! What leaves for a session: a message, or one that many sessions are sent and that was encoded once for all of them.

use bytes::{BufMut, Bytes};
use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, EncodeBuf, Encoder};
use tonic_prost::ProstCodec;
use wire::directory::{self as msg, from_directory};

/// One message on its way to a session.
#[derive(Debug, Clone)]
pub enum Said {
    One(from_directory::Kind),
    Encoded(Bytes),
}

impl Said {
    /// One message for many sessions.
    pub fn encode(kind: from_directory::Kind) -> Self {
        Self::Encoded(msg::FromDirectory { kind: Some(kind) }.encode_to_vec().into())
    }
}

/// As prost's, and passes on what is encoded already.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SaidCodec;

impl Codec for SaidCodec {
    type Encode = Said;
    type Decode = msg::ToDirectory;
    type Encoder = Self;
    type Decoder = <ProstCodec<msg::FromDirectory, msg::ToDirectory> as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        *self
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<msg::FromDirectory, msg::ToDirectory>::raw_decoder(BufferSettings::default())
    }
}

impl Encoder for SaidCodec {
    type Item = Said;
    type Error = Status;

    fn encode(&mut self, said: Said, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        match said {
            Said::One(kind) => msg::FromDirectory { kind: Some(kind) }
                .encode(buffer)
                .map_err(|error| Status::internal(format!("a message did not fit: {error}"))),
            Said::Encoded(bytes) => {
                buffer.put(bytes);
                Ok(())
            }
        }
    }
}
