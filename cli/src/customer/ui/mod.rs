//! `freehold customer ui`: serves pages about the customer's own install on loopback. The pages show the answers of the
//! other commands for customers, which need nothing but the customer's own AWS credentials.

mod access;
mod action;
mod browser;
mod fields;
mod forms;
mod html;
mod overview;
mod server;
mod site;
mod source;
mod topic;
mod work;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use freehold_protocol::InstallId;
use serde_json::json;
use tokio::net::TcpListener;

use self::access::Access;
use self::site::CustomerSite;
use self::source::Source;
use super::changes::ChangedFiles;
use super::log::evidence::KnownRecords;
use super::own_install::OwnInstall;
use crate::context::Context;
use crate::error::{Error, Result, ResultExt};
use crate::inputs::Input;

/// For customers: show pages about an install in a browser on this machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold customer ui globex --tenant acme
  freehold customer ui globex --tenant acme --contract my-app.contract.json --open
  freehold customer ui globex --tenant acme --contract old.contract.json \\
      --agreed old.contract.json --new-contract new.contract.json --new-template new.yaml

Prints an address on 127.0.0.1 and serves pages there: what runs, the permissions and the contract, approvals, windows
and holds, what ran and who asked for it, where artifacts come from, what left the account, the log, the licence and the
cost. Each page shows the same answer as a command for customers, and names this command. The pages read your stack and
your bucket with your own AWS credentials, and ask no service of the vendor.

On the pages you can approve and reject plans, pause and resume the runner, end sessions, close a role, and hold
changes. Each of these asks for a confirmation and does the same as its command.

The address has a random token. The first browser that opens it gets a cookie, and then the token is not valid any more.
The command ends with ctrl-c, or after `--idle` minutes without a request. `--open` passes the address to the browser as
an argument, which other users of this machine can see for a moment.

`--json` does not apply to the pages: only the address is printed as JSON.")]
pub(crate) struct Ui {
    /// Name of the install.
    install: InstallId,
    /// The port on 127.0.0.1; by default, a free one.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// The number of minutes without a request after which the command ends, at most 1440.
    #[arg(long, value_name = "MINUTES", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1440))]
    idle: u64,
    /// Open the address in the browser of this machine.
    #[arg(long)]
    open: bool,
    /// The contract that you agreed to, with which the page about permissions compares the stack.
    #[arg(long, value_name = "FILE")]
    contract: Option<PathBuf>,
    /// The vendor's value of an input that policies use, if the value is not the default of the contract. Repeatable.
    #[arg(long = "input", value_name = "NAME=VALUE", requires = "contract")]
    inputs: Vec<Input>,
    #[command(flatten)]
    files: ChangedFiles,
    #[command(flatten)]
    known: Box<KnownRecords>,
}

impl Ui {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let own = OwnInstall::find(context, &self.install).await?;
        let listener = listen(self.port.unwrap_or_default()).await?;
        let port = listener.local_addr().doing("read the port of the pages")?.port();
        let (access, token) = Access::new(port)?;
        let address = format!("http://{}/?token={token}", access.authority());
        let printed = json!({ "address": address, "idle_minutes": self.idle });
        context.out.show(&printed, |_| {
            format!(
                "pages about install `{}`, for the first browser that opens this address:\n\n  {address}\n\nThey are \
                 there until ctrl-c, or until {} minutes without a request.",
                self.install, self.idle
            )
        })?;
        if self.open {
            browser::open(&address)?;
        }
        let idle = Duration::from_secs(self.idle * 60);
        let source = Source::new(own, *self.known, (self.contract, self.inputs), self.files);
        server::serve(listener, Rc::new(CustomerSite::new(source, access)), idle).await;
        context.out.line("the pages are closed");
        Ok(())
    }
}

/// Listens at a port of the loopback address; 0 is a free port.
async fn listen(port: u16) -> Result<TcpListener> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpListener::bind(address).await.map_err(|error| {
        Error::conflict(format!("cannot listen at {address}: {error}"))
            .or("pass another `--port`, or leave it out for a free one")
    })
}
