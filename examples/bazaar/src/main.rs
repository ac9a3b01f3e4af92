//! `bazaar` runs the provider.

#[tokio::main]
async fn main() -> linkstead::Result<()> {
    bazaar::provider().run().await
}
