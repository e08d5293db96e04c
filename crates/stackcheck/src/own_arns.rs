//! Reads the account from the pattern (`AllowedPattern`) of a parameter that accepts only ARNs of one account.

/// Returns the account of a pattern that accepts IAM ARNs of one account only. Such a pattern is `^ARN$`, `^(ARN)?$`
/// or, when the ARN ends with alternatives, `^(ARN(this|that))?$`.
pub(crate) fn account_of(pattern: &str) -> Option<&str> {
    let arn = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let arn = match arn.strip_prefix('(') {
        Some(inside) => inside.strip_suffix(")?").or_else(|| inside.strip_suffix(')'))?,
        None => arn,
    };
    let mut parts = arn.splitn(6, ':');
    let (arn, partition, service, region) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let (account, name) = (parts.next()?, parts.next()?);
    let choice = name.strip_prefix('(').and_then(|inside| inside.strip_suffix(')'));
    let one = |text: &str, but: &[char]| !text.is_empty() && !text.contains(but);
    let is_arn = [arn, service, region] == ["arn", "iam", ""] && one(partition, &['|', '(', ')', '?']);
    let is_name = choice.is_some_and(|any| one(any, &[':', '(', ')'])) || one(name, &[':', '|', '(', ')']);
    (is_arn && is_name).then_some(account)
}
