//! The filters (seccomp(2)) by which the kernel refuses system calls of a program in a box.
//!
//! This is a deny list: the system calls that tools need differ and change, but the dangerous ones are known. If a
//! dangerous call is missing here, the program still has no capabilities and is still in its own namespaces.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::purpose::Purpose;

/// The system calls that are refused for every program, whatever their arguments are.
const REFUSED: &[i64] = &[
    // Calls that read or change other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_userfaultfd,
    // Calls that enter namespaces of other processes, or reach files past the mounts of the box.
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_fanotify_init,
    // Calls for keyrings, which namespaces do not isolate.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Calls that load code into the kernel, and interfaces with a history of vulnerabilities.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    // Calls that change settings of the whole machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
];

/// The system calls for mounts and namespaces. Only a program that makes an image may use them.
const MOUNTS: &[i64] = &[libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_unshare];
/// The newer system calls for mounts. A program that makes an image gets `ENOSYS` and then uses the older ones.
const NEWER_MOUNTS: &[i64] = &[
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
];

/// `open_tree_attr` has this number on every architecture. `libc` does not know the call, which came with Linux 6.15.
const OPEN_TREE_ATTR: i64 = 467;

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[];

/// The flags of `clone` that make a namespace. `CLONE_NEWTIME` is missing, because only `unshare` and `clone3` know it:
/// in `clone`, its bit is a part of the exit signal.
const NEW_NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// The requests `TIOCSTI` and `TIOCLINUX`, which insert input into a terminal, ioctl_tty(2).
const TERMINAL: [u64; 2] = [0x5412, 0x541c];
/// The arguments of `personality` that every program may use: Linux, 32-bit Linux, and a query of the current value.
/// Other arguments switch off the randomization of addresses, or make data executable.
const PERSONALITIES: [u64; 3] = [0, 8, 0xffff_ffff];
/// The system calls that make sockets. Both have the family, the type and the protocol as their first arguments. For
/// both, the kernel loads the module of a family or a protocol before it refuses anything.
const SOCKETS: [i64; 2] = [libc::SYS_socket, libc::SYS_socketpair];
const FAMILIES: [i32; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
/// The protocols of sockets that every program may use. The modules of others, such as SCTP and L2TP, have a history of
/// vulnerabilities.
const PROTOCOLS: [i32; 3] = [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP];
/// The types of sockets that are refused: `SOCK_RAW`, `SOCK_RDM`, `SOCK_DCCP` and `SOCK_PACKET`.
const REFUSED_TYPES: [u64; 4] = [3, 4, 6, 10];
/// The bits of a socket's type without its flags.
const TYPE_MASK: u64 = 0xf;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Returns the filters in the format of `bwrap --add-seccomp-fd`.
///
/// # Errors
/// The reason why the rules cannot be compiled for this machine.
pub(super) fn filters(purpose: Purpose) -> Result<Vec<Vec<u8>>, String> {
    // When several filters refuse a call, the program gets the error of the last one.
    let mut compiled = vec![
        compile(of_sockets(&[none_of(2, PROTOCOLS)?]), libc::EPROTONOSUPPORT)?,
        compile(refused(purpose)?, libc::EPERM)?,
        compile(unknown(purpose), libc::ENOSYS)?,
        compile(of_sockets(&[none_of(0, FAMILIES)?]), libc::EAFNOSUPPORT)?,
    ];
    if cfg!(target_arch = "x86_64") {
        compiled.push(no_x32());
    }
    Ok(compiled)
}

fn refused(purpose: Purpose) -> Result<Rules, String> {
    let mut rules = whatever_the_arguments(REFUSED.iter().chain(REFUSED_HERE));
    if purpose == Purpose::Program {
        rules.extend(whatever_the_arguments(MOUNTS.iter().chain(NEWER_MOUNTS)));
        let namespaces = NEW_NAMESPACES.into_iter().map(|flag| {
            let flag = u64::from(flag.unsigned_abs());
            rule(vec![condition(0, Width::Qword, Op::MaskedEq(flag), flag)?])
        });
        rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    }
    let terminal = TERMINAL.into_iter().map(|what| rule(vec![condition(1, Width::Dword, Op::Eq, what)?]));
    rules.insert(libc::SYS_ioctl, terminal.collect::<Result<_, _>>()?);
    let others = PERSONALITIES.into_iter().map(|known| condition(0, Width::Dword, Op::Ne, known));
    rules.insert(libc::SYS_personality, vec![rule(others.collect::<Result<_, _>>()?)?]);
    let types =
        REFUSED_TYPES.into_iter().map(|kind| rule(vec![condition(1, Width::Dword, Op::MaskedEq(TYPE_MASK), kind)?]));
    rules.extend(of_sockets(&types.collect::<Result<Vec<_>, _>>()?));
    Ok(rules)
}

/// Returns the rules for system calls that fail with `ENOSYS`. `clone3` is one, because a filter cannot read its
/// arguments, which are in memory; the C library then calls `clone`.
fn unknown(purpose: Purpose) -> Rules {
    let mounts = match purpose {
        Purpose::Program => &[],
        Purpose::ImageBuild => NEWER_MOUNTS,
    };
    whatever_the_arguments([libc::SYS_clone3].iter().chain(mounts))
}

fn whatever_the_arguments<'a>(numbers: impl IntoIterator<Item = &'a i64>) -> Rules {
    numbers.into_iter().map(|number| (*number, Vec::new())).collect()
}

/// Returns the rules that apply `rules` to each system call that makes sockets.
fn of_sockets(rules: &[SeccompRule]) -> Rules {
    SOCKETS.into_iter().map(|number| (number, rules.to_vec())).collect()
}

/// Returns the rule for calls whose argument number `argument` is none of `known`.
fn none_of(argument: u8, known: [i32; 3]) -> Result<SeccompRule, String> {
    let others =
        known.into_iter().map(|value| condition(argument, Width::Dword, Op::Ne, u64::from(value.unsigned_abs())));
    rule(others.collect::<Result<_, _>>()?)
}

fn condition(argument: u8, width: Width, op: Op, value: u64) -> Result<SeccompCondition, String> {
    SeccompCondition::new(argument, width, op, value).map_err(|error| error.to_string())
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, String> {
    SeccompRule::new(conditions).map_err(|error| error.to_string())
}

fn compile(rules: Rules, errno: i32) -> Result<Vec<u8>, String> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).map_err(|e| e.to_string())?;
    let program: BpfProgram = filter.try_into().map_err(|error: seccompiler::BackendError| error.to_string())?;
    Ok(program.iter().flat_map(|one| instruction(one.code, one.jt, one.jf, one.k)).collect())
}

/// Returns a filter that refuses the x32 numbers of system calls, which the other filters do not know:
/// `if nr >= 0x40000000 { ENOSYS }`.
fn no_x32() -> Vec<u8> {
    const LOAD: u16 = 0x20;
    const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    [
        instruction(LOAD, 0, 0, 0),
        instruction(JUMP_IF_GREATER_OR_EQUAL, 0, 1, 0x4000_0000),
        instruction(RETURN, 0, 0, ERRNO | libc::ENOSYS.unsigned_abs()),
        instruction(RETURN, 0, 0, ALLOW),
    ]
    .concat()
}

/// Returns the bytes of one `struct sock_filter`.
fn instruction(code: u16, if_true: u8, if_false: u8, value: u32) -> Vec<u8> {
    let mut bytes = code.to_ne_bytes().to_vec();
    bytes.extend([if_true, if_false]);
    bytes.extend(value.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_has_whole_instructions_and_fits_the_kernel() {
        let all = [Purpose::Program, Purpose::ImageBuild].map(|purpose| filters(purpose).unwrap());

        assert!(all.iter().all(|filters| filters.len() >= 4));
        for filter in all.concat() {
            assert!(filter.len() % 8 == 0 && filter.len() / 8 <= 4096, "{}", filter.len());
        }
    }
}
