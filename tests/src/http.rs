//! Reads HTTP/1.1 messages as bytes and passes them on unchanged, so that a signature over them still verifies.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Larger heads and bodies are not what an AWS client sends.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_BODY_BYTES: usize = 512 << 20;

/// One end of a connection, with what was read from it but not used yet.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A request or an answer.
#[derive(Debug, Clone)]
pub struct Message {
    /// First line and headers, with the empty line that ends them.
    pub head: Vec<u8>,
    /// As on the wire: a chunked body keeps its chunks.
    pub body: Vec<u8>,
    /// The three words of the first line.
    pub start: [String; 3],
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// Whether the connection ends with this message.
    pub last: bool,
}

impl Message {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub fn status(&self) -> u16 {
        self.start[1].parse().unwrap_or(0)
    }

    pub fn bytes(&self) -> Vec<u8> {
        [self.head.as_slice(), &self.body].concat()
    }

    fn parse(head: Vec<u8>) -> io::Result<Self> {
        let text = String::from_utf8_lossy(&head);
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().splitn(3, ' ').map(str::to_owned);
        let mut word = || words.next().unwrap_or_default();
        let start = [word(), word(), word()];
        let headers: Vec<_> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        if start[1].is_empty() {
            return Err(wrong("the first line is not HTTP"));
        }
        let mut message = Self { head, body: Vec::new(), start, headers, last: false };
        message.last = message.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"))
            || message.start.iter().any(|word| word == "HTTP/1.0");
        Ok(message)
    }

    fn length(&self) -> io::Result<Option<usize>> {
        match self.header("content-length").map(str::parse) {
            Some(Ok(length)) if length <= MAX_BODY_BYTES => Ok(Some(length)),
            Some(_) => Err(wrong("the content length is not a usable number")),
            None => Ok(None),
        }
    }

    fn is_chunked(&self) -> bool {
        self.header("transfer-encoding").is_some_and(|v| v.to_ascii_lowercase().contains("chunked"))
    }
}

impl Wire {
    pub fn new(stream: TcpStream) -> Self {
        // Without it a small answer waits for an acknowledgement.
        let _ = stream.set_nodelay(true);
        Self { stream, buffer: Vec::new() }
    }

    pub async fn connect(address: &str) -> io::Result<Self> {
        TcpStream::connect(address).await.map(Self::new)
    }

    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Returns the next request; none when the client has gone.
    pub async fn request(&mut self) -> io::Result<Option<Message>> {
        let Some(head) = self.head().await? else {
            return Ok(None);
        };
        let mut request = Message::parse(head)?;
        if request.header("expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue")) {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        request.body = match (request.is_chunked(), request.length()?) {
            (true, _) => self.chunks().await?,
            (false, length) => self.exactly(length.unwrap_or(0)).await?,
        };
        Ok(Some(request))
    }

    /// Returns the answer to a request with `method`.
    pub async fn answer(&mut self, method: &str) -> io::Result<Message> {
        loop {
            let head = self.head().await?.ok_or_else(|| wrong("the connection was closed without an answer"))?;
            let mut answer = Message::parse(head)?;
            let status = answer.status();
            if (100..200).contains(&status) {
                continue;
            }
            if method == "HEAD" || status == 204 || status == 304 {
                return Ok(answer);
            }
            answer.body = match (answer.is_chunked(), answer.length()?) {
                (true, _) => self.chunks().await?,
                (false, Some(length)) => self.exactly(length).await?,
                (false, None) => {
                    answer.last = true;
                    self.rest().await?
                }
            };
            return Ok(answer);
        }
    }

    /// Returns when the other side has closed the connection.
    pub async fn closed(&self) {
        match self.stream.peek(&mut [0]).await {
            Ok(0) | Err(_) => {}
            // It talks on: it has not gone.
            Ok(_) => std::future::pending().await,
        }
    }

    async fn head(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                return Ok(Some(self.buffer.drain(..at + 4).collect()));
            }
            if self.buffer.len() > MAX_HEAD_BYTES {
                return Err(wrong("the head is too large"));
            }
            if self.more().await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(wrong("the head is cut off")) };
            }
        }
    }

    async fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            if self.more().await? == 0 {
                return Err(wrong("the body is cut off"));
            }
        }
        Ok(self.buffer.drain(..length).collect())
    }

    async fn rest(&mut self) -> io::Result<Vec<u8>> {
        while self.more().await? != 0 {}
        Ok(std::mem::take(&mut self.buffer))
    }

    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut raw = Vec::new();
        loop {
            let line = self.line().await?;
            let size = String::from_utf8_lossy(&line);
            let size = size.trim().split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(|_| wrong("a chunk has no size"))?;
            raw.extend(line);
            if size == 0 {
                break;
            }
            raw.extend(self.exactly(size + 2).await?);
            if raw.len() > MAX_BODY_BYTES {
                return Err(wrong("the body is too large"));
            }
        }
        // Trailers, up to the empty line.
        loop {
            let line = self.line().await?;
            raw.extend(&line);
            if line == b"\r\n" {
                return Ok(raw);
            }
        }
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = find(&self.buffer, b"\r\n") {
                return Ok(self.buffer.drain(..at + 2).collect());
            }
            if self.more().await? == 0 {
                return Err(wrong("a line is cut off"));
            }
        }
    }

    async fn more(&mut self) -> io::Result<usize> {
        self.stream.read_buf(&mut self.buffer).await
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
