//! OCI archives, written without a registry and without a clock: the same
//! content gives the same bytes.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, Result};
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::cache::hex;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

enum Entry {
    Folder { mode: u32 },
    File { mode: u32, content: Vec<u8> },
    Link { target: String },
}

/// The one layer of an image. Paths are relative to its root.
#[derive(Default)]
pub(super) struct Layer {
    entries: BTreeMap<Utf8PathBuf, Entry>,
}

impl Layer {
    pub(super) fn folder(&mut self, path: &str, mode: u32) {
        self.insert(path, Entry::Folder { mode });
    }

    pub(super) fn file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) {
        let content = content.into();
        self.insert(path, Entry::File { mode, content });
    }

    pub(super) fn link(&mut self, path: &str, target: &str) {
        let target = target.to_owned();
        self.insert(path, Entry::Link { target });
    }

    fn insert(&mut self, path: &str, entry: Entry) {
        let path = Utf8Path::new(path);
        for parent in path.ancestors().skip(1).filter(|p| !p.as_str().is_empty()) {
            self.entries
                .entry(parent.to_owned())
                .or_insert(Entry::Folder { mode: 0o755 });
        }
        self.entries.insert(path.to_owned(), entry);
    }

    fn archive(&self) -> Result<Vec<u8>> {
        let mut archive = Builder::new(Vec::new());
        // Sorted, a folder comes before what is in it.
        for (path, entry) in &self.entries {
            append(&mut archive, path, entry)
                .with_context(|| format!("cannot add {path} to a layer"))?;
        }
        archive.into_inner().context("cannot end a layer")
    }
}

/// An image as it is written to an archive.
pub(super) struct Image {
    /// The whole name, with the tag: `localhost/neap-pause:1`.
    pub(super) name: &'static str,
    pub(super) layer: Layer,
    /// What runs, as in a Dockerfile.
    pub(super) entrypoint: &'static [&'static str],
    pub(super) command: &'static [&'static str],
}

impl Image {
    /// Writes the image as an OCI archive that containerd can import.
    pub(super) fn write(&self, path: &Utf8Path) -> Result<()> {
        let archive = self
            .archive()
            .with_context(|| format!("cannot make the image {}", self.name))?;
        std::fs::write(path, archive).with_context(|| format!("cannot write {path}"))
    }

    fn archive(&self) -> Result<Vec<u8>> {
        let layer = Blob::new(LAYER, self.layer.archive()?);
        let config = Blob::json(
            CONFIG,
            &json!({
                "architecture": architecture(),
                "os": "linux",
                "config": {
                    "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                    "Entrypoint": self.entrypoint,
                    "Cmd": self.command,
                },
                "rootfs": {"type": "layers", "diff_ids": [layer.digest()]},
            }),
        );
        let manifest = Blob::json(
            MANIFEST,
            &json!({
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": config.descriptor(),
                "layers": [layer.descriptor()],
            }),
        );
        let mut described = manifest.descriptor();
        let tag = self.name.rsplit(':').next().unwrap_or_default();
        if let Some(fields) = described.as_object_mut() {
            fields.insert(
                "annotations".to_owned(),
                json!({
                    "io.containerd.image.name": self.name,
                    "org.opencontainers.image.ref.name": tag,
                }),
            );
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [described]});

        let mut files = Layer::default();
        files.file("oci-layout", 0o644, r#"{"imageLayoutVersion":"1.0.0"}"#);
        files.file("index.json", 0o644, index.to_string());
        for blob in [layer, config, manifest] {
            files.file(&format!("blobs/sha256/{}", blob.hash), 0o644, blob.content);
        }
        files.archive()
    }
}

struct Blob {
    kind: &'static str,
    hash: String,
    content: Vec<u8>,
}

impl Blob {
    fn new(kind: &'static str, content: Vec<u8>) -> Self {
        let hash = hex(&Sha256::digest(&content));
        Self {
            kind,
            hash,
            content,
        }
    }

    fn json(kind: &'static str, value: &Value) -> Self {
        Self::new(kind, value.to_string().into_bytes())
    }

    fn digest(&self) -> String {
        format!("sha256:{}", self.hash)
    }

    fn descriptor(&self) -> Value {
        json!({"mediaType": self.kind, "digest": self.digest(), "size": self.content.len()})
    }
}

/// The architecture as OCI names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn append(archive: &mut Builder<impl Write>, path: &Utf8Path, entry: &Entry) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(0);
    match entry {
        Entry::Folder { mode } => {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(*mode);
            archive.append_data(&mut header, format!("{path}/"), std::io::empty())?;
        }
        Entry::File { mode, content } => {
            header.set_entry_type(EntryType::Regular);
            header.set_mode(*mode);
            header.set_size(u64::try_from(content.len())?);
            archive.append_data(&mut header, path, content.as_slice())?;
        }
        Entry::Link { target } => {
            header.set_entry_type(EntryType::Symlink);
            header.set_mode(0o777);
            archive.append_link(&mut header, path, target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::io::Read;

    use super::*;

    fn image() -> Image {
        let mut layer = Layer::default();
        layer.file("usr/bin/tool", 0o755, "content");
        layer.link("bin", "usr/bin");
        layer.folder("tmp", 0o1777);
        Image {
            name: "localhost/test:7",
            layer,
            entrypoint: &["/bin/tool"],
            command: &[],
        }
    }

    fn unpack(archive: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(archive).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            files.insert(path, content);
        }
        files
    }

    fn blob<'a>(files: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> &'a [u8] {
        let digest = descriptor["digest"].as_str().unwrap();
        let hash = digest.strip_prefix("sha256:").unwrap();
        let content = &files[&format!("blobs/sha256/{hash}")];
        assert_eq!(descriptor["size"], content.len());
        assert_eq!(hex(&Sha256::digest(content)), hash);
        content
    }

    #[test]
    fn every_blob_is_found_by_its_hash_from_the_index_down() {
        let files = unpack(&image().archive().unwrap());
        let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
        let entry = &index["manifests"][0];
        assert_eq!(
            entry["annotations"]["io.containerd.image.name"],
            "localhost/test:7"
        );
        assert_eq!(
            entry["annotations"]["org.opencontainers.image.ref.name"],
            "7"
        );
        let manifest: Value = serde_json::from_slice(blob(&files, entry)).unwrap();
        let config: Value = serde_json::from_slice(blob(&files, &manifest["config"])).unwrap();
        let layer = &manifest["layers"][0];
        assert_eq!(config["rootfs"]["diff_ids"][0], layer["digest"]);
        let layer = unpack(blob(&files, layer));
        assert_eq!(layer["usr/bin/tool"], b"content");
        let paths: Vec<_> = layer.keys().map(String::as_str).collect();
        assert_eq!(paths, ["bin", "tmp/", "usr/", "usr/bin/", "usr/bin/tool"]);
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        assert_eq!(image().archive().unwrap(), image().archive().unwrap());
    }
}
