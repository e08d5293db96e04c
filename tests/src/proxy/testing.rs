//! Makes requests from text, for the tests of this folder.

use tokio::net::{TcpListener, TcpStream};

use crate::http::{Message, Wire};

/// Returns the request with this first line, these header lines (each with its line end) and this body.
pub(crate) fn request(line: &str, headers: &str, body: &str) -> Message {
    let text = format!("{line}\r\nHost: 127.0.0.1:4566\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut server = Wire::new(listener.accept().await.unwrap().0);
        Wire::new(client).write(text.as_bytes()).await.unwrap();
        server.request().await.unwrap().unwrap()
    })
}
