//! Fault rules parsed from text, and decisions about faults that depend only on a seed.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use wildmatch::WildMatchPattern;

/// One thing that can happen to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request waits before it is sent on.
    Delay(Duration),
    /// The service does it; its answer waits.
    DelayAnswer(Duration),
    /// The request waits until the rules are replaced.
    Hold,
    /// The request waits until the next one of the same operation has been answered (at most 2 s).
    Reorder,
    /// The connection ends; the service never sees the request.
    DropRequest,
    /// The service does it; the connection ends before the answer.
    DropAnswer,
    /// The service gets the request twice; the first answer comes back.
    Duplicate,
    /// The service gets the request again after so long, when later ones may have overtaken it.
    Replay(Duration),
    /// The process that asks is killed (-9); the service never sees the request.
    KillBefore,
    /// The service does it; the process that asks is killed (-9) before the answer.
    KillAfter,
    /// So many percent of the request's body reach the service, then both connections end.
    Cut(u8),
    /// One bit in the middle of the answer's body is another.
    Flip,
    /// A session that STS hands out ends after so long.
    ShortSession(Duration),
    /// The service's own throttling error.
    Throttle,
    /// The service's own internal error, status 500.
    Error,
    /// DynamoDB's error for a write that met another transaction; for other services as `Throttle`.
    Conflict,
    /// Half of the answer, then the connection ends.
    Truncate,
    /// No answer for so long, then the connection ends; the service never sees the request.
    BlackHole(Duration),
    /// The answer to an earlier request of the same operation, if there was one that was not empty; the service never
    /// sees the request. For `sqs.ReceiveMessage`, a message that is handed out twice.
    RepeatAnswer,
}

/// What `any` chooses from.
const ANY: [Fault; 8] = [
    Fault::Delay(Duration::from_millis(300)),
    Fault::DropRequest,
    Fault::DropAnswer,
    Fault::DropAnswer,
    Fault::Duplicate,
    Fault::Throttle,
    Fault::Error,
    Fault::Truncate,
];

impl Fault {
    /// Returns the name that rules and counts use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delay(_) => "delay",
            Self::DelayAnswer(_) => "delay-answer",
            Self::Hold => "hold",
            Self::Reorder => "reorder",
            Self::DropRequest => "drop-request",
            Self::DropAnswer => "drop-answer",
            Self::Duplicate => "duplicate",
            Self::Replay(_) => "replay",
            Self::KillBefore => "kill-before",
            Self::KillAfter => "kill-after",
            Self::Cut(_) => "cut",
            Self::Flip => "flip",
            Self::ShortSession(_) => "short-session",
            Self::Throttle => "throttle",
            Self::Error => "error",
            Self::Conflict => "conflict",
            Self::Truncate => "truncate",
            Self::BlackHole(_) => "black-hole",
            Self::RepeatAnswer => "repeat-answer",
        }
    }
}

/// When something goes wrong: `OPERATION PROBABILITY FAULT [by=KEY] [about=TEXT] [skip=N] [times=N] [stubborn]`.
///
/// `OPERATION` and `KEY` (the caller, see the counts) may hold `*`. `TEXT` is part of the address or the body of the request.
/// `FAULT` is a word of [`Fault`], with milliseconds for `delay:300`, `delay-answer:300` and `replay:300`, seconds for
/// `black-hole:5` and `short-session:60`, percent for `cut:50`, or `any`. `skip` lets the first N pass, `times` stops after N.
/// `stubborn`: every try of the same SDK call meets the same fate, so that the SDK's own retries do not hide it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    pub operation: String,
    pub probability: f64,
    /// None: any.
    pub fault: Option<Fault>,
    pub by: Option<String>,
    pub about: Option<String>,
    pub skip: u64,
    pub times: u64,
    pub stubborn: bool,
}

impl FromStr for Rule {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut words = text.split_whitespace();
        let (Some(operation), Some(probability), Some(fault)) = (words.next(), words.next(), words.next()) else {
            anyhow::bail!(
                "`{text}` is not a rule; write OPERATION PROBABILITY FAULT, such as `dynamodb.* 0.1 throttle`"
            );
        };
        let probability = probability.parse().ok().filter(|p| (0.0..=1.0).contains(p));
        let mut rule = Self {
            operation: operation.to_owned(),
            probability: probability
                .ok_or_else(|| anyhow::anyhow!("`{text}`: the probability is not between 0 and 1"))?,
            fault: parse_fault(fault)?,
            by: None,
            about: None,
            skip: 0,
            times: u64::MAX,
            stubborn: false,
        };
        for word in words {
            match word.split_once('=') {
                Some(("by", key)) => rule.by = Some(key.to_owned()),
                Some(("about", text)) => rule.about = Some(text.to_owned()),
                Some(("skip", count)) => rule.skip = count.parse()?,
                Some(("times", count)) => rule.times = count.parse()?,
                None if word == "stubborn" => rule.stubborn = true,
                Some(_) | None => {
                    anyhow::bail!("`{text}`: there is no option `{word}`; there are by, about, skip, times, stubborn")
                }
            }
        }
        Ok(rule)
    }
}

fn parse_fault(word: &str) -> anyhow::Result<Option<Fault>> {
    let (name, number) = word.split_once(':').unwrap_or((word, ""));
    let number = |default| if number.is_empty() { Ok(default) } else { number.parse::<u64>() };
    Ok(Some(match name {
        "any" => return Ok(None),
        "delay" => Fault::Delay(Duration::from_millis(number(300)?)),
        "delay-answer" => Fault::DelayAnswer(Duration::from_millis(number(300)?)),
        "hold" => Fault::Hold,
        "replay" => Fault::Replay(Duration::from_millis(number(300)?)),
        "kill-before" => Fault::KillBefore,
        "kill-after" => Fault::KillAfter,
        "cut" => Fault::Cut(u8::try_from(number(50)?.min(99))?),
        "flip" => Fault::Flip,
        "short-session" => Fault::ShortSession(Duration::from_secs(number(60)?)),
        "black-hole" => Fault::BlackHole(Duration::from_secs(number(30)?)),
        "reorder" => Fault::Reorder,
        "drop-request" => Fault::DropRequest,
        "drop-answer" => Fault::DropAnswer,
        "duplicate" => Fault::Duplicate,
        "throttle" => Fault::Throttle,
        "error" => Fault::Error,
        "conflict" => Fault::Conflict,
        "truncate" => Fault::Truncate,
        "repeat-answer" => Fault::RepeatAnswer,
        _ => anyhow::bail!("there is no fault `{word}`"),
    }))
}

/// Reads rules from lines or from text with `;` between them; `#` begins a comment.
///
/// # Errors
/// The first line that is not a rule.
pub fn parse_rules(text: &str) -> anyhow::Result<Vec<Rule>> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines.flat_map(|line| line.split(';')).map(str::trim).filter(|rule| !rule.is_empty()).map(str::parse).collect()
}

/// Decides the fate of every request. The n-th request that a rule looks at meets the same fate in every run with the
/// same seed, however the requests of different operations interleave.
#[derive(Debug)]
pub(crate) struct Fates {
    pub(crate) seed: u64,
    rules: Vec<Counted>,
}

#[derive(Debug)]
struct Counted {
    rule: Rule,
    seen: u64,
    fired: u64,
    /// Fates of calls that may be tried again.
    calls: HashMap<String, Option<Fault>>,
}

impl Fates {
    pub(crate) fn new(seed: u64, rules: Vec<Rule>) -> Self {
        let rules = rules.into_iter().map(|rule| Counted { rule, seen: 0, fired: 0, calls: HashMap::new() }).collect();
        Self { seed, rules }
    }

    /// Returns for each rule how many requests it has looked at, or how many SDK calls if it is stubborn.
    pub(crate) fn looked_at(&self) -> Vec<u64> {
        self.rules.iter().map(|counted| counted.seen).collect()
    }

    /// Returns what happens to a request.
    pub(crate) fn decide(&mut self, asked: Asked<'_>) -> Option<Fault> {
        let seed = self.seed;
        let mut rules = self.rules.iter_mut().enumerate();
        rules.find_map(|(at, counted)| {
            let looks = counted.rule.looks_at(&asked);
            looks.then(|| counted.fate(seed ^ (at as u64) << 56, asked.operation, asked.call)).flatten()
        })
    }
}

/// What rules look at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asked<'a> {
    pub(crate) operation: &'a str,
    pub(crate) caller: &'a str,
    /// The same for all tries of one SDK call.
    pub(crate) call: Option<&'a str>,
    /// The address and the body.
    pub(crate) texts: [&'a [u8]; 2],
    /// Whether there is an earlier answer to repeat.
    pub(crate) answered_before: bool,
}

impl Rule {
    fn looks_at(&self, asked: &Asked<'_>) -> bool {
        let says = |about: &str| asked.texts.iter().any(|text| contains(text, about.as_bytes()));
        matches(&self.operation, asked.operation)
            && self.by.as_deref().is_none_or(|by| matches(by, asked.caller))
            && self.about.as_deref().is_none_or(says)
            && (asked.answered_before || self.fault != Some(Fault::RepeatAnswer))
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window == part)
}

impl Counted {
    fn fate(&mut self, seed: u64, operation: &str, call: Option<&str>) -> Option<Fault> {
        let call = call.filter(|_| self.rule.stubborn);
        if let Some(fate) = call.and_then(|call| self.calls.get(call)) {
            return *fate;
        }
        let own = operation.bytes().fold(seed, |seed, byte| fastrand::Rng::with_seed(seed ^ u64::from(byte)).u64(..));
        let mut draws = fastrand::Rng::with_seed(own ^ self.seen);
        self.seen += 1;
        let fires = draws.f64() < self.rule.probability && self.seen > self.rule.skip && self.fired < self.rule.times;
        let fate = fires.then(|| self.rule.fault.unwrap_or_else(|| draws.choice(ANY).unwrap_or(ANY[0])));
        self.fired += u64::from(fires);
        if let Some(call) = call {
            self.calls.insert(call.to_owned(), fate);
        }
        fate
    }
}

/// Returns whether `text` matches `pattern`, where each `*` stands for any text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    WildMatchPattern::<'*', '\0'>::new(pattern).matches(text)
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.operation, self.probability, self.fault.map_or("any", Fault::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(seed: u64, rules: &str) -> Fates {
        Fates::new(seed, parse_rules(rules).unwrap())
    }

    fn asked(operation: &str) -> Asked<'_> {
        Asked { operation, ..Asked::default() }
    }

    #[test]
    fn the_same_seed_gives_the_same_fates_however_operations_interleave() {
        let (mut one, mut two) = (fates(7, "* 0.3 any"), fates(7, "* 0.3 any"));
        let ask = |fates: &mut Fates| (0..200).map(|_| fates.decide(asked("sqs.SendMessage"))).collect::<Vec<_>>();

        let (first, second) = (ask(&mut one), ask(&mut two));

        assert_eq!(first, second);
        let hit = first.iter().flatten().count();
        assert!((35..90).contains(&hit), "{hit} of 200");
    }

    #[test]
    fn skip_and_times_bound_a_rule() {
        let mut fates = fates(1, "kms.* 1 error skip=2 times=3");

        let fired: Vec<bool> = (0..8).map(|_| fates.decide(asked("kms.Sign")).is_some()).collect();

        assert_eq!(fired, [false, false, true, true, true, false, false, false]);
    }

    #[test]
    fn a_stubborn_rule_gives_every_try_of_one_call_the_same_fate() {
        let mut fates = fates(3, "* 0.5 drop-answer stubborn");

        for call in ["a", "b", "c", "d", "e", "f"] {
            let one = Asked { call: Some(call), ..asked("dynamodb.PutItem") };
            let fate = fates.decide(one);

            assert_eq!(fates.decide(one), fate);
        }
    }

    #[test]
    fn a_rule_asks_for_operation_and_caller() {
        let mut fates = fates(1, "dynamodb.*Item 1 delay:5 by=ASIA* about=job-1");
        let texts: [&[u8]; 2] = [b"/", b"the row job-1 of a table"];
        let one = Asked { caller: "ASIA1", texts, ..asked("dynamodb.PutItem") };

        assert_eq!(fates.decide(one), Some(Fault::Delay(Duration::from_millis(5))));
        assert_eq!(fates.decide(Asked { caller: "AKIA1", ..one }), None);
        assert_eq!(fates.decide(Asked { operation: "dynamodb.Query", ..one }), None);
        assert_eq!(fates.decide(Asked { texts: [b"/job", b"-1"], ..one }), None);
    }

    #[test]
    fn rules_that_never_fire_count_the_calls_at_which_others_could() {
        let mut fates = fates(1, "* 0 error;sqs.* 0 error stubborn;kms.* 0 error");
        let of_call = |call| Asked { call: Some(call), ..asked("sqs.SendMessage") };

        let met: Vec<_> = ["a", "a", "b"].map(|call| fates.decide(of_call(call))).into_iter().flatten().collect();

        assert_eq!(met, []);
        assert_eq!(fates.looked_at(), [3, 2, 0]);
    }

    #[test]
    fn nothing_is_repeated_before_there_is_an_answer() {
        let mut fates = fates(1, "sqs.* 1 repeat-answer times=1");
        let early = asked("sqs.ReceiveMessage");

        assert_eq!(fates.decide(early), None);
        assert_eq!(fates.decide(Asked { answered_before: true, ..early }), Some(Fault::RepeatAnswer));
    }

    #[test]
    fn a_wrong_rule_is_refused_with_what_is_wrong() {
        for (text, word) in
            [("a", "OPERATION"), ("a 2 any", "between"), ("a 1 explode", "explode"), ("a 1 any x=1", "x=1")]
        {
            let error = parse_rules(text).unwrap_err().to_string();

            assert!(error.contains(word), "{error}");
        }
    }
}
