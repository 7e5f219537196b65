//! Runs sessions of the crate negentropy between two sides in one process.
//!
//!     negentropy-sessions FILE NS
//!
//! FILE has all messages, 40 bytes each: the time, Unix ns, big-endian, and the hash.
//! Times are divided by NS: 1 for nanoseconds, 1000000000 for seconds. A line of standard
//! input is a session, `A B`: the numbers of the messages that the initiator lacks, and
//! that the responder lacks, joined by commas; `-` is none. A line of standard output is
//! its result, as JSON.

use std::collections::HashSet;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

use negentropy::{Id, Negentropy, NegentropyStorageVector};

const ITEM_BYTES: usize = 40;
const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;

/// `timespec` of 64-bit Linux.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

/// Processor time of this process, ns.
fn cpu_ns() -> u64 {
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the pointer is that of a live value with the layout of `timespec`.
    let failed = unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "no clock of processor time");
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}

/// Returns the value of a function, and the processor time that it took, in ns.
fn timed<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let begin = cpu_ns();
    let value = work();
    (value, cpu_ns() - begin)
}

type Item = (u64, Id);

fn read_items(path: &str, unit_ns: u64) -> Result<Vec<Item>, Box<dyn Error>> {
    let data = std::fs::read(path)?;
    data.chunks_exact(ITEM_BYTES)
        .map(|item| {
            let time = u64::from_be_bytes(item[..8].try_into()?);
            Ok((time / unit_ns, Id::from_byte_array(item[8..].try_into()?)))
        })
        .collect()
}

fn numbers(text: &str) -> Result<HashSet<usize>, Box<dyn Error>> {
    if text == "-" {
        return Ok(HashSet::new());
    }
    text.split(',').map(|one| Ok(one.parse()?)).collect()
}

fn storage(
    items: &[Item],
    lacking: &HashSet<usize>,
) -> Result<NegentropyStorageVector, negentropy::Error> {
    let mut made = NegentropyStorageVector::with_capacity(items.len());
    for (number, (time, id)) in items.iter().enumerate() {
        if !lacking.contains(&number) {
            made.insert(*time, *id)?;
        }
    }
    made.seal()?;
    Ok(made)
}

fn hex(ids: &[Id]) -> String {
    let mut text = String::with_capacity(ids.len() * 64);
    for byte in ids.iter().flat_map(|id| id.iter()) {
        write!(text, "{byte:02x}").expect("a string takes everything");
    }
    text
}

fn session(items: &[Item], line: &str) -> Result<String, Box<dyn Error>> {
    let (first, second) = line.split_once(' ').ok_or("a line is `A B`")?;
    let (lacked_here, lacked_there) = (numbers(first)?, numbers(second)?);
    let (here, build_ns) = timed(|| storage(items, &lacked_here));
    let (here, there) = (here?, storage(items, &lacked_there)?);
    let mut initiator = Negentropy::borrowed(&here, 0)?;
    let mut responder = Negentropy::borrowed(&there, 0)?;
    let (mut have, mut need) = (Vec::new(), Vec::new());
    let (message, mut initiator_ns) = timed(|| initiator.initiate());
    let mut message = message?;
    let (mut rounds, mut sent, mut received, mut responder_ns) = (0, 0, 0, 0);
    loop {
        rounds += 1;
        sent += message.len();
        let (answer, ns) = timed(|| responder.reconcile(&message));
        let answer = answer?;
        responder_ns += ns;
        received += answer.len();
        let (next, ns) = timed(|| initiator.reconcile_with_ids(&answer, &mut have, &mut need));
        initiator_ns += ns;
        match next? {
            Some(next) => message = next,
            None => break,
        }
    }
    Ok(format!(
        "{{\"rounds\":{rounds},\"sent\":{sent},\"received\":{received},\
         \"build_ns\":{build_ns},\"initiator_ns\":{initiator_ns},\
         \"responder_ns\":{responder_ns},\"have\":\"{}\",\"need\":\"{}\"}}",
        hex(&have),
        hex(&need)
    ))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, unit_ns] = arguments.as_slice() else {
        return Err("negentropy-sessions FILE NS".into());
    };
    let items = read_items(path, unit_ns.parse()?)?;
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        writeln!(out, "{}", session(&items, &line?)?)?;
        out.flush()?;
    }
    Ok(())
}
