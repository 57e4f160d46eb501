//! `neap version`: of this program, and of the `serve` behind the socket.

use crate::access::Access;
use crate::cli::Global;
use crate::output::{Format, encode, print};
use serde_json::json;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) async fn version(global: &Global) -> anyhow::Result<()> {
    // That nobody serves is no failure here.
    let serve = Access::new(&global.data_dir).status().await.ok();
    match global.output {
        Format::Json | Format::Yaml => print(&encode(
            &json!({"client": VERSION, "serve": serve}),
            global.output,
        )?),
        Format::Table | Format::Wide | Format::Name => {
            let mut text = format!("neap {VERSION}\n");
            if let Some(serve) = serve {
                text.push_str(&format!(
                    "serve {} on {}, distro {}, installation {}\n",
                    serve.version, serve.endpoint, serve.distro, serve.installation
                ));
            }
            print(&text)
        }
    }
}
