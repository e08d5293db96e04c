//! A server on loopback: plain HTTP/1.1, one request per connection.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// Starts a server that answers each request, given its method, path and body, with a status and a body; returns its
/// address. The answer to `HEAD` has no body.
pub(crate) fn listen(mut answer: impl FnMut(&str, &str, &str) -> (u16, String) + Send + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // A client that only looks whether something listens sends nothing.
            let Some((head, body)) = request(&stream) else { continue };
            let (method, rest) = head.split_once(' ').unwrap_or_default();
            let path = rest.split(' ').next().unwrap_or_default();
            let (status, text) = answer(method, path, &body);
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
            let text = if method == "HEAD" { "" } else { &text };
            let _ = stream.write_all(format!("{head}{text}").as_bytes());
        }
    });
    address
}

/// Reads a request; returns its first line and its body.
fn request(stream: &TcpStream) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        head.push(line.trim_end().to_owned());
        line.clear();
    }
    let length = head.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head.into_iter().next()?, String::from_utf8_lossy(&body).into_owned()))
}
