//! A Terraform provider for tests. It has a resource `note`, which only stores a text, and a data source `note_origin`,
//! which returns the file name of the provider's program. It implements gRPC (plugin protocol 6, `tfplugin6.proto`)
//! without TLS, so Terraform needs `TF_DISABLE_PLUGIN_TLS=1`.

use std::collections::BTreeMap;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use tokio::net::UnixListener;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The status codes of gRPC that this provider returns.
const OK: &str = "0";
const UNIMPLEMENTED: &str = "12";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let socket = std::env::temp_dir().join(format!("note-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&socket)?;
    println!("1|6|unix|{}|grpc", socket.display());
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let mut connection = h2::server::handshake(stream).await?;
            while let Some(call) = connection.accept().await {
                let (request, respond) = call?;
                tokio::spawn(answer(request, respond));
            }
            Ok::<_, h2::Error>(())
        });
    }
}

async fn answer(request: Request<RecvStream>, mut respond: SendResponse<Bytes>) -> Result<(), Error> {
    let path = request.uri().path().to_owned();
    if path == "/plugin.GRPCController/Shutdown" {
        std::process::exit(0);
    }
    let mut message = Vec::new();
    let mut body = request.into_body();
    while let Some(chunk) = body.data().await {
        let chunk = chunk?;
        body.flow_control().release_capacity(chunk.len())?;
        message.extend_from_slice(&chunk);
    }
    let head = Response::builder().header("content-type", "application/grpc").body(())?;
    let mut stream = respond.send_response(head, false)?;
    // Each gRPC message has a prefix of 5 bytes: a compression flag and the length.
    let reply = reply(&path, message.get(5..).unwrap_or_default());
    if let Some(reply) = &reply {
        let mut framed = vec![0];
        framed.extend(u32::try_from(reply.len())?.to_be_bytes());
        framed.extend_from_slice(reply);
        stream.send_data(framed.into(), false)?;
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", if reply.is_some() { OK } else { UNIMPLEMENTED }.parse()?);
    Ok(stream.send_trailers(trailers)?)
}

/// Returns the reply to a call of the method at `path`, or `None` when this provider does not implement the method.
fn reply(path: &str, request: &[u8]) -> Option<Vec<u8>> {
    let fields = fields(request);
    let given = |number: u64| fields.get(&number).cloned().unwrap_or_default();
    Some(match path.strip_prefix("/tfplugin6.Provider/")? {
        "GetProviderSchema" => [
            field(1, &schema(&[])),
            field(2, &entry("note", &schema(&[attribute("text", 4)]))),
            field(3, &entry("note_origin", &schema(&[attribute("program", 6)]))),
        ]
        .concat(),
        "ValidateProviderConfig"
        | "ValidateResourceConfig"
        | "ValidateDataResourceConfig"
        | "ConfigureProvider"
        | "StopProvider" => Vec::new(),
        // The stored state is JSON in the field `raw_state`.
        "UpgradeResourceState" => field(1, &field(2, self::fields(&given(3)).get(&1)?)),
        "ReadResource" => field(1, &given(2)),
        "PlanResourceChange" | "ApplyResourceChange" => field(1, &given(3)),
        "ReadDataSource" => {
            let program = std::env::args().next().unwrap_or_default();
            let program = program.rsplit('/').next().unwrap_or_default().to_owned();
            field(1, &field(2, serde_json::json!({ "program": program }).to_string().as_bytes()))
        }
        _ => return None,
    })
}

fn schema(attributes: &[Vec<u8>]) -> Vec<u8> {
    let block: Vec<u8> = attributes.iter().flat_map(|attribute| field(2, attribute)).collect();
    field(2, &block)
}

/// Encodes an attribute of type string. `how` is the number of the field to set to true: `required` or `computed`.
fn attribute(name: &str, how: u8) -> Vec<u8> {
    [field(1, name.as_bytes()), field(2, b"\"string\""), vec![how << 3, 1]].concat()
}

fn entry(key: &str, value: &[u8]) -> Vec<u8> {
    [field(1, key.as_bytes()), field(2, value)].concat()
}

/// Encodes a length-delimited field of a protocol buffer.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut encoded = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        encoded.push(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
        length >>= 7;
    }
    encoded.push(u8::try_from(length).unwrap_or_default());
    encoded.extend_from_slice(bytes);
    encoded
}

/// Decodes the length-delimited fields of a message, by field number. Skips fields that hold a number.
fn fields(mut message: &[u8]) -> BTreeMap<u64, Vec<u8>> {
    let mut found = BTreeMap::new();
    while let Some(key) = number(&mut message) {
        let Some(value) = number(&mut message) else { break };
        if key & 7 == 2 {
            let Some((bytes, rest)) = usize::try_from(value).ok().and_then(|length| message.split_at_checked(length))
            else {
                break;
            };
            found.insert(key >> 3, bytes.to_vec());
            message = rest;
        }
    }
    found
}

fn number(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
