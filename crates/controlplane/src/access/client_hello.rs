//! The server name of a TLS ClientHello, and nothing else of it.
//!
//! The bytes come from anyone who can reach the listener. The parser reads
//! only what it was given, holds at most [`LIMIT`] bytes and never panics.

/// No ClientHello longer than this is read; real ones have 0.3 to 2 KiB.
pub const LIMIT: usize = 16 * 1024;

const RECORD_HEADER: usize = 5;
const RECORD_HANDSHAKE: u8 = 22;
const RECORD_MAX: usize = 16 * 1024;
const MESSAGE_HEADER: usize = 4;
const MESSAGE_CLIENT_HELLO: u8 = 1;
const EXTENSION_SERVER_NAME: u16 = 0;
const NAME_TYPE_HOST: u8 = 0;
const NAME_MAX: usize = 253;

/// What the bytes read so far say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedHello {
    /// The message goes on; nothing can be said before so many bytes are there.
    Incomplete {
        /// Length of everything read, counted from the first byte.
        need: usize,
    },
    /// The message is whole.
    Complete {
        /// The name it asks for, in lower case.
        server_name: Option<String>,
    },
}

/// Why the bytes are no ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseClientHelloError {
    /// The first bytes are no TLS record of a handshake.
    #[error("the client does not speak TLS")]
    NotTls,
    /// It goes on beyond [`LIMIT`].
    #[error("the ClientHello is longer than {LIMIT} bytes")]
    TooLong,
    /// A length points outside of what encloses it.
    #[error("the ClientHello is malformed at its {0}")]
    Malformed(&'static str),
}

/// Reads the server name out of what a client has sent first.
///
/// # Errors
/// When no further byte could make a ClientHello of it.
pub fn parse_client_hello(bytes: &[u8]) -> Result<ParsedHello, ParseClientHelloError> {
    let mut message: Vec<u8> = Vec::new();
    let mut rest = bytes;
    let mut consumed = 0;
    loop {
        if let Some(body) = whole_message(&message)? {
            return server_name(body).map(|server_name| ParsedHello::Complete { server_name });
        }
        let Some((&kind, after_kind)) = rest.split_first() else {
            return incomplete(consumed + RECORD_HEADER);
        };
        if kind != RECORD_HANDSHAKE {
            return Err(ParseClientHelloError::NotTls);
        }
        if after_kind.first().is_some_and(|&major| major != 3) {
            return Err(ParseClientHelloError::NotTls);
        }
        let Some((header, after_header)) = rest.split_at_checked(RECORD_HEADER) else {
            return incomplete(consumed + RECORD_HEADER);
        };
        let length = match header {
            [_, _, _, high, low] => usize::from(u16::from_be_bytes([*high, *low])),
            _ => return Err(ParseClientHelloError::NotTls),
        };
        if length == 0 || length > RECORD_MAX {
            return Err(ParseClientHelloError::Malformed("record length"));
        }
        let Some((fragment, after)) = after_header.split_at_checked(length) else {
            return incomplete(consumed + RECORD_HEADER + length);
        };
        message.extend_from_slice(fragment);
        rest = after;
        consumed += RECORD_HEADER + length;
    }
}

fn incomplete(need: usize) -> Result<ParsedHello, ParseClientHelloError> {
    if need > LIMIT {
        Err(ParseClientHelloError::TooLong)
    } else {
        Ok(ParsedHello::Incomplete { need })
    }
}

/// The body of the message once all of it is there.
fn whole_message(message: &[u8]) -> Result<Option<&[u8]>, ParseClientHelloError> {
    let Some(&kind) = message.first() else {
        return Ok(None);
    };
    if kind != MESSAGE_CLIENT_HELLO {
        return Err(ParseClientHelloError::NotTls);
    }
    let Some((header, body)) = message.split_at_checked(MESSAGE_HEADER) else {
        return Ok(None);
    };
    let length = match header {
        [_, a, b, c] => u32::from_be_bytes([0, *a, *b, *c]),
        _ => return Ok(None),
    };
    let length = usize::try_from(length).map_err(|_| ParseClientHelloError::TooLong)?;
    if length > LIMIT {
        return Err(ParseClientHelloError::TooLong);
    }
    Ok(body.get(..length))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(
        &mut self,
        length: usize,
        what: &'static str,
    ) -> Result<&'a [u8], ParseClientHelloError> {
        let (head, tail) = self
            .0
            .split_at_checked(length)
            .ok_or(ParseClientHelloError::Malformed(what))?;
        self.0 = tail;
        Ok(head)
    }

    fn byte(&mut self, what: &'static str) -> Result<u8, ParseClientHelloError> {
        self.take(1, what)?
            .first()
            .copied()
            .ok_or(ParseClientHelloError::Malformed(what))
    }

    fn short(&mut self, what: &'static str) -> Result<u16, ParseClientHelloError> {
        match self.take(2, what)? {
            [high, low] => Ok(u16::from_be_bytes([*high, *low])),
            _ => Err(ParseClientHelloError::Malformed(what)),
        }
    }

    /// A vector whose length is written in one byte.
    fn short_vector(&mut self, what: &'static str) -> Result<&'a [u8], ParseClientHelloError> {
        let length = self.byte(what)?;
        self.take(usize::from(length), what)
    }

    /// A vector whose length is written in two bytes.
    fn vector(&mut self, what: &'static str) -> Result<&'a [u8], ParseClientHelloError> {
        let length = self.short(what)?;
        self.take(usize::from(length), what)
    }
}

fn server_name(body: &[u8]) -> Result<Option<String>, ParseClientHelloError> {
    let mut hello = Reader(body);
    hello.take(2, "version")?;
    hello.take(32, "random")?;
    hello.short_vector("session id")?;
    hello.vector("cipher suites")?;
    hello.short_vector("compression methods")?;
    if hello.0.is_empty() {
        return Ok(None);
    }
    let mut extensions = Reader(hello.vector("extensions")?);
    while !extensions.0.is_empty() {
        let kind = extensions.short("extension type")?;
        let data = extensions.vector("extension")?;
        if kind == EXTENSION_SERVER_NAME {
            return host_name(data).map(Some);
        }
    }
    Ok(None)
}

fn host_name(data: &[u8]) -> Result<String, ParseClientHelloError> {
    let malformed = ParseClientHelloError::Malformed("server name");
    let mut names = Reader(Reader(data).vector("server name list")?);
    let kind = names.byte("server name")?;
    let name = names.vector("server name")?;
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    if kind != NAME_TYPE_HOST
        || name.is_empty()
        || name.len() > NAME_MAX
        || !name.iter().all(allowed)
    {
        return Err(malformed);
    }
    let name = std::str::from_utf8(name).map_err(|_| malformed)?;
    Ok(name.to_ascii_lowercase())
}

#[cfg(test)]
#[path = "client_hello/tests.rs"]
pub(super) mod tests;
