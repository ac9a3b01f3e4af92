//! The codec of a session: what is said is encoded already, what is heard is prost's.

use bytes::{BufMut, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, EncodeBuf, Encoder};
use tonic_prost::ProstCodec;
use wire::directory as msg;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SaidCodec;

type Heard = ProstCodec<msg::FromDirectory, msg::ToDirectory>;

impl Codec for SaidCodec {
    type Encode = Bytes;
    type Decode = msg::ToDirectory;
    type Encoder = Self;
    type Decoder = <Heard as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        *self
    }

    fn decoder(&mut self) -> Self::Decoder {
        Heard::raw_decoder(BufferSettings::default())
    }
}

impl Encoder for SaidCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, said: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(said);
        Ok(())
    }
}
