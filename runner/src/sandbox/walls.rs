//! Tests the isolation of a box from inside. Each test has one target that a program in the box must not reach.
//! `doctor` prints the results.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, ipproto, socket};
use serde::{Deserialize, Serialize};

/// The first argument of the program that runs the tests. The second one is an [`Outside`] as JSON.
pub(super) const COMMAND: &str = "box-walls";
/// The time limit for a connection. A box refuses at once.
const CONNECT: Duration = Duration::from_secs(1);
const METADATA: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254))];
/// An address that is reserved for documentation (RFC 5737). No host has it, but a machine with a default route would
/// try to connect to it.
const SOMEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// The result of one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    /// The target that a job must not reach.
    pub name: String,
    pub stands: bool,
    /// If `stands`, the error with which the test failed to reach the target; otherwise what the test reached.
    pub answer: String,
}

/// The targets outside of the box that the tests try to reach.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Outside {
    /// A port on the machine's loopback with a listener.
    pub(super) port: u16,
    /// The name of an abstract Unix socket with a listener.
    pub(super) socket: String,
    /// A file that only the runner may read.
    pub(super) secret: PathBuf,
    pub(super) bwrap: PathBuf,
}

/// The result of a test: `Ok` with the refusal, or `Err` with what the test reached.
type Answer = Result<String, String>;

/// Runs all tests and prints each result ([`Wall`]) as a line of JSON.
pub(super) fn run(outside: &str) -> ExitCode {
    let Ok(outside) = serde_json::from_str(outside) else { return ExitCode::FAILURE };
    for wall in try_all(&outside) {
        match serde_json::to_string(&wall) {
            Ok(line) => println!("{line}"),
            Err(_) => return ExitCode::FAILURE,
        }
    }
    ExitCode::SUCCESS
}

fn try_all(outside: &Outside) -> Vec<Wall> {
    let answers: [(&str, Answer); 14] = [
        ("instance metadata", METADATA.into_iter().try_fold(String::new(), |_, at| no_route(at, 80))),
        ("the machine's loopback", refused("connected", loopback(outside.port))),
        ("abstract sockets of the machine", refused("connected", abstract_socket(&outside.socket))),
        ("the network without the proxy", no_route(SOMEWHERE, 443)),
        ("datagrams", refused("a route", datagram())),
        ("raw sockets", refused("a raw socket", raw_socket())),
        ("capabilities", status(&["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000"])),
        ("new privileges", status(&["NoNewPrivs:\t1"])),
        ("unfiltered system calls", status(&["Seccomp:\t2"])),
        ("user namespaces and mounts", nested(&outside.bwrap)),
        ("other processes", processes()),
        ("the first process of the box", refused("its memory", File::open("/proc/1/mem"))),
        ("the runner's files", refused("the file", File::open(&outside.secret))),
        ("the machine's files", files()),
    ];
    answers.into_iter().map(|(name, answer)| wall(name, answer)).collect()
}

fn wall(name: &str, answer: Answer) -> Wall {
    let (stands, answer) = answer.map_or_else(|reached| (false, reached), |how| (true, how));
    Wall { name: name.to_owned(), stands, answer }
}

fn refused<T>(what: &str, got: io::Result<T>) -> Answer {
    match got {
        Ok(_) => Err(format!("reached: {what}")),
        Err(error) => Ok(error.to_string()),
    }
}

/// Checks that the box has no route to an address. A timeout is not enough, because it would mean that a route exists.
fn no_route(to: IpAddr, port: u16) -> Answer {
    match TcpStream::connect_timeout(&SocketAddr::new(to, port), CONNECT) {
        Ok(_) => Err(format!("reached: connected to {to}")),
        Err(error) if matches!(error.kind(), io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable) => {
            Ok(error.to_string())
        }
        Err(error) => Err(format!("there is a route to {to}: {error}")),
    }
}

fn loopback(port: u16) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port), CONNECT)
}

fn abstract_socket(name: &str) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&UnixAddr::from_abstract_name(name)?)
}

fn datagram() -> io::Result<()> {
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?.connect((SOMEWHERE, 53))
}

fn raw_socket() -> io::Result<std::os::fd::OwnedFd> {
    Ok(socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP))?)
}

fn status(wanted: &[&str]) -> Answer {
    let text = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let missing: Vec<&str> = wanted.iter().copied().filter(|line| !text.lines().any(|found| found == *line)).collect();
    if missing.is_empty() {
        Ok(wanted.join(", ").replace('\t', " "))
    } else {
        Err(format!("absent from `/proc/self/status`: {}", missing.join(", ")))
    }
}

/// Checks that the program cannot make a box inside the box, which would need a user namespace and mounts.
fn nested(bwrap: &Path) -> Answer {
    let mut command = Command::new(bwrap);
    command.args(["--unshare-user", "--ro-bind", "/", "/", "/bin/true"]).stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => Err("reached: a box inside the box".to_owned()),
        Ok(output) => Ok(String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("refused").to_owned()),
        Err(error) => Err(format!("`{}` does not start inside the box: {error}", bwrap.display())),
    }
}

/// Checks that the program sees only the box's first process and itself.
fn processes() -> Answer {
    let own = std::process::id();
    let entries = std::fs::read_dir("/proc").map_err(|error| error.to_string())?.flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = ids.filter(|id| *id != 1 && *id != own).count();
    if others == 0 {
        Ok("no other process is shown".to_owned())
    } else {
        Err(format!("reached: {others} other processes are shown"))
    }
}

fn files() -> Answer {
    let places = ["/usr/.freehold", "/etc/.freehold", "/.freehold", "/proc/sys/kernel/core_pattern"];
    let open = |place: &str| refused(place, File::options().append(true).create(true).open(place));
    places.into_iter().try_fold(String::new(), |_, place| open(place))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn without_a_box_what_a_wall_hides_is_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = format!("freehold-walls-test-{}", std::process::id());
        let _abstract = UnixListener::bind_addr(&UnixAddr::from_abstract_name(&socket).unwrap()).unwrap();
        let secret = tempfile::NamedTempFile::new().unwrap();

        let reached = |answer: Answer| answer.is_err();

        assert!(reached(refused("", loopback(listener.local_addr().unwrap().port()))));
        assert!(reached(refused("", abstract_socket(&socket))));
        assert!(reached(refused("", File::open(secret.path()))));
        assert!(reached(status(&["NoNewPrivs:\t1", "Seccomp:\t2"])));
        assert!(reached(processes()));
        assert!(reached(no_route(Ipv4Addr::LOCALHOST.into(), listener.local_addr().unwrap().port())));
    }
}
