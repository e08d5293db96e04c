//! `freehold` reaches AWS through the proxy that the environment names.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn calls_of_aws_go_through_the_proxy_of_the_environment() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut freehold = ask_aws(&address);

    let line = first_line(listener);

    freehold.kill().unwrap();
    freehold.wait().unwrap();
    assert_eq!(line, format!("CONNECT {address} HTTP/1.1\r\n"));
}

/// Starts a command that asks AWS at `address`, which is the proxy too: without the proxy, TLS begins there at once.
fn ask_aws(address: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_freehold"))
        .args(["tenant", "status", "--name", "acme"])
        .env_clear()
        .envs([
            ("AWS_ENDPOINT_URL", format!("https://{address}")),
            ("HTTPS_PROXY", format!("http://{address}")),
            ("AWS_REGION", "eu-west-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "111111111111".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ])
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the first line that anything says to `listener`; a connection that only shows that something listens says none.
fn first_line(listener: TcpListener) -> String {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut line = Vec::new();
            let _ = BufReader::new(connection.unwrap()).read_until(b'\n', &mut line);
            if !line.is_empty() {
                let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        }
    });
    receiver.recv_timeout(Duration::from_secs(120)).unwrap()
}
