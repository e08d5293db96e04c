//! A Terraform provider for tests. It has a resource `note`, which only stores a text, a resource `note_role`, which is a
//! role of IAM with one inline policy, and a data source `note_origin`, which returns the file name of the provider's
//! program. It implements gRPC (plugin protocol 6, `tfplugin6.proto`) without TLS, so Terraform needs
//! `TF_DISABLE_PLUGIN_TLS=1`.

mod iam_role;
mod msgpack;
mod protobuf;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use tokio::net::UnixListener;

use crate::protobuf::{field, fields};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// The status codes of gRPC that this provider returns.
const OK: &str = "0";
const UNIMPLEMENTED: &str = "12";
/// The fields of an attribute that say whether a module must set it.
const REQUIRED: u8 = 4;
const COMPUTED: u8 = 6;

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
    let message = message.get(5..).unwrap_or_default();
    let reply = match iam_role::reply(&path, message).await {
        Some(reply) => Some(reply),
        None => reply(&path, message),
    };
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
    let request = fields(request);
    let given = |number: u64| request.get(&number).cloned().unwrap_or_default();
    Some(match path.strip_prefix("/tfplugin6.Provider/")? {
        "GetProviderSchema" => [
            field(1, &schema(&[])),
            field(2, &entry("note", &schema(&[attribute("text", REQUIRED)]))),
            field(2, &entry(iam_role::TYPE, &iam_role::schema())),
            field(3, &entry("note_origin", &schema(&[attribute("program", COMPUTED)]))),
        ]
        .concat(),
        "ValidateProviderConfig"
        | "ValidateResourceConfig"
        | "ValidateDataResourceConfig"
        | "ConfigureProvider"
        | "StopProvider" => Vec::new(),
        // The stored state is JSON in the field `raw_state`.
        "UpgradeResourceState" => field(1, &field(2, fields(&given(3)).get(&1)?)),
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
