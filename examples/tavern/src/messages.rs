//! What clients and modules say to each other. A client needs this file and the constants of the modules.

/// Come in. The account is the one that the gateway has authenticated.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Login {}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Welcome {
    #[prost(string, tag = "1")]
    pub account: String,
    /// Other guests at the same provider, at most [`crate::door::ONLINE_SHOWN_MAX`], by name.
    #[prost(string, repeated, tag = "2")]
    pub online: Vec<String>,
    /// All guests at the same provider, yourself included.
    #[prost(uint32, tag = "3")]
    pub guests: u32,
}

/// Speak to everybody in the cluster. The keeper's right.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Announce {
    #[prost(string, tag = "1")]
    pub text: String,
}

/// Pushed to everybody.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Announced {
    #[prost(string, tag = "1")]
    pub text: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Enter {
    #[prost(string, tag = "1")]
    pub room: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Entered {
    /// Everybody in the room, yourself included, by name.
    #[prost(string, repeated, tag = "1")]
    pub members: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Leave {
    #[prost(string, tag = "1")]
    pub room: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Say {
    #[prost(string, tag = "1")]
    pub room: String,
    #[prost(string, tag = "2")]
    pub text: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Heard {
    /// How many it was sent to, yourself included.
    #[prost(uint32, tag = "1")]
    pub by: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Who {
    #[prost(string, tag = "1")]
    pub room: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Members {
    #[prost(string, repeated, tag = "1")]
    pub members: Vec<String>,
}

/// Pushed to the room, the speaker included: everybody in it hears the same words in the same order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Said {
    #[prost(string, tag = "1")]
    pub room: String,
    #[prost(string, tag = "2")]
    pub from: String,
    #[prost(string, tag = "3")]
    pub text: String,
}

/// Pushed to those who were in the room before.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Joined {
    #[prost(string, tag = "1")]
    pub room: String,
    #[prost(string, tag = "2")]
    pub account: String,
}

/// Pushed to those who stay.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Left {
    #[prost(string, tag = "1")]
    pub room: String,
    #[prost(string, tag = "2")]
    pub account: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Whisper {
    #[prost(string, tag = "1")]
    pub to: String,
    #[prost(string, tag = "2")]
    pub text: String,
}

/// Pushed to the one it was for.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Whispered {
    #[prost(string, tag = "1")]
    pub from: String,
    #[prost(string, tag = "2")]
    pub text: String,
}

/// Show a guest out. The keeper's right.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Kick {
    #[prost(string, tag = "1")]
    pub account: String,
}
