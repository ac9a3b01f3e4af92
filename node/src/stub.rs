//! Tonic's generated clients and servers. The messages are `wire`'s; nothing here is written by hand.

/// Client of `service Directory`.
pub mod directory {
    #![allow(clippy::pedantic, clippy::default_trait_access, missing_docs)]
    tonic::include_proto!("linkstead.directory");
}

/// Client and server of `service Admin`.
pub mod admin {
    #![allow(clippy::pedantic, clippy::default_trait_access, missing_docs)]
    tonic::include_proto!("linkstead.admin");
}
