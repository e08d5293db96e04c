//! What a DynamoDB request costs on demand, by AWS's rules ("DynamoDB read and write operations", "item sizes and
//! formats" of its developer guide). The emulator does not count, and tables without indexes are all that is needed.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

const WRITE_BYTES: u64 = 1024;
const READ_BYTES: u64 = 4096;

/// Request units, as the bill counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Units {
    pub write: f64,
    /// The part of `write` that went to transactions which another write made to fail.
    pub cancelled: f64,
    pub read: f64,
}

impl Units {
    fn write(write: f64) -> Self {
        Self { write, ..Self::default() }
    }

    fn read(read: f64) -> Self {
        Self { read, ..Self::default() }
    }

    /// Adds `other`.
    pub(crate) fn add(&mut self, other: Self) {
        self.write += other.write;
        self.cancelled += other.cancelled;
        self.read += other.read;
    }
}

/// The writes of one kind of row.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RowWrites {
    pub units: f64,
    pub writes: u64,
    /// Writes in transactions, which cost twice as much.
    pub transacted: u64,
    /// Writes in transactions that failed, and had no effect.
    pub cancelled: u64,
    /// The bytes of the items, as they are billed.
    pub bytes: u64,
}

impl RowWrites {
    /// Adds the writes of `other`.
    pub(crate) fn add(&mut self, other: Self) {
        self.units += other.units;
        self.writes += other.writes;
        self.transacted += other.transacted;
        self.cancelled += other.cancelled;
        self.bytes += other.bytes;
    }
}

/// Sizes of the items written so far: an update or a delete costs by the item as it is, which its request does not say.
#[derive(Debug, Default)]
pub(crate) struct Items {
    sizes: HashMap<String, u64>,
    /// Writes since the last reset, by kind of row: what its keys begin with.
    pub(crate) by_row: BTreeMap<String, RowWrites>,
}

impl Items {
    /// Returns what the request `asked` for `action` cost, given its answer. A write whose condition failed costs as
    /// much as one that succeeded; anything else that was refused costs nothing.
    pub(crate) fn units(&mut self, action: &str, asked: &Value, status: u16, answered: &Value) -> Units {
        let code = answered["__type"].as_str().unwrap_or_default();
        let cancelled = code.ends_with("TransactionCanceledException");
        let applied = status == 200;
        if !applied && !cancelled && !code.ends_with("ConditionalCheckFailedException") {
            return Units::default();
        }
        let single = Billing { transacted: false, applied };
        match action {
            "PutItem" => Units::write(self.write(&serde_json::json!({"Put": asked}), single)),
            "UpdateItem" => Units::write(self.write(&serde_json::json!({"Update": asked}), single)),
            "DeleteItem" => Units::write(self.write(&serde_json::json!({"Delete": asked}), single)),
            "TransactWriteItems" => {
                let transaction = Billing { transacted: true, applied };
                let write = each(&asked["TransactItems"]).map(|item| self.write(item, transaction)).sum();
                Units { cancelled: if cancelled { write } else { 0.0 }, ..Units::write(write) }
            }
            "BatchWriteItem" => Units::write(self.batch_write(asked, single)),
            "GetItem" => Units::read(read(size(&answered["Item"]), strong(asked))),
            "Query" | "Scan" => Units::read(read(each(&answered["Items"]).map(size).sum(), strong(asked))),
            "TransactGetItems" => {
                Units::read(each(&answered["Responses"]).map(|found| read(size(&found["Item"]), 2.0)).sum())
            }
            "BatchGetItem" => {
                let tables = answered["Responses"].as_object().into_iter().flatten();
                Units::read(tables.flat_map(|(_, found)| each(found)).map(|item| read(size(item), 0.5)).sum())
            }
            _ => Units::default(),
        }
    }

    fn batch_write(&mut self, asked: &Value, billing: Billing) -> f64 {
        let mut total = 0.0;
        for (table, requests) in asked["RequestItems"].as_object().into_iter().flatten() {
            for request in each(requests) {
                let put = &request["PutRequest"]["Item"];
                let write = if put.is_object() {
                    serde_json::json!({"Put": {"TableName": table, "Item": put}})
                } else {
                    serde_json::json!({"Delete": {"TableName": table, "Key": request["DeleteRequest"]["Key"]}})
                };
                total += self.write(&write, billing);
            }
        }
        total
    }

    /// Returns what one item costs: twice as much in a transaction.
    fn write(&mut self, item: &Value, Billing { transacted, applied }: Billing) -> f64 {
        let Some((kind, write)) = item.as_object().and_then(|item| item.iter().next()) else {
            return 0.0;
        };
        let key = if kind == "Put" { key_of_item(&write["Item"]) } else { write["Key"].clone() };
        let name = format!("{} {key}", write["TableName"]);
        let before = self.sizes.get(&name).copied().unwrap_or(0);
        let after = match kind.as_str() {
            "Put" => size(&write["Item"]),
            "Update" => size(&key) + updated(write),
            _ => 0,
        };
        match kind.as_str() {
            _ if !applied => {}
            "Delete" => drop(self.sizes.remove(&name)),
            "ConditionCheck" => {}
            _ => drop(self.sizes.insert(name, after)),
        }
        let bytes = before.max(after);
        let units = blocks(bytes, WRITE_BYTES) * if transacted { 2.0 } else { 1.0 };
        let cancelled = transacted && !applied;
        self.by_row.entry(row_kind(&key)).or_default().add(RowWrites {
            units,
            writes: 1,
            transacted: transacted.into(),
            cancelled: cancelled.into(),
            bytes,
        });
        units
    }
}

/// How a write is billed, and whether it took effect.
#[derive(Debug, Clone, Copy)]
struct Billing {
    transacted: bool,
    applied: bool,
}

/// Returns what the keys begin with, such as `job state`: rows of one kind have it in common.
fn row_kind(key: &Value) -> String {
    let word = |name: &str| {
        let text = key[name]["S"].as_str().unwrap_or_default();
        text.split(['#', '_']).next().unwrap_or_default().to_owned()
    };
    format!("{} {}", word("pk"), word("sk"))
}

/// Returns the part of a row that names it; the table's keys are `pk` and `sk`.
fn key_of_item(item: &Value) -> Value {
    let key = ["pk", "sk"].into_iter().filter(|name| item[*name].is_object());
    key.map(|name| (name.to_owned(), item[name].clone())).collect::<Map<_, _>>().into()
}

/// Returns the bytes of the attributes that an update sets: the rows of this project are always written whole.
fn updated(update: &Value) -> u64 {
    let expression = update["UpdateExpression"].as_str().unwrap_or_default();
    let used =
        |name: &str| expression.split(|c: char| !(c.is_alphanumeric() || "_:#".contains(c))).any(|word| word == name);
    let values = update["ExpressionAttributeValues"].as_object().into_iter().flatten();
    let values: u64 = values.filter(|(name, _)| used(name)).map(|(_, value)| value_size(value)).sum();
    let names = update["ExpressionAttributeNames"].as_object().into_iter().flatten();
    let names: usize = names.filter(|(name, _)| used(name)).filter_map(|(_, text)| text.as_str()).map(str::len).sum();
    values + names as u64
}

fn read(bytes: u64, factor: f64) -> f64 {
    blocks(bytes, READ_BYTES) * factor
}

fn strong(asked: &Value) -> f64 {
    if asked["ConsistentRead"].as_bool() == Some(true) { 1.0 } else { 0.5 }
}

#[expect(clippy::cast_precision_loss, reason = "an item has at most 400 KB")]
fn blocks(bytes: u64, block: u64) -> f64 {
    bytes.div_ceil(block).max(1) as f64
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn size(item: &Value) -> u64 {
    let attributes = item.as_object().into_iter().flatten();
    attributes.map(|(name, value)| name.len() as u64 + value_size(value)).sum()
}

fn value_size(value: &Value) -> u64 {
    let Some((kind, value)) = value.as_object().and_then(|typed| typed.iter().next()) else {
        return 0;
    };
    let text = |value: &Value| value.as_str().map_or(0, str::len) as u64;
    match kind.as_str() {
        "S" => text(value),
        "N" => digits(value),
        "B" => text(value) / 4 * 3,
        "SS" => each(value).map(text).sum(),
        "NS" => each(value).map(digits).sum(),
        "BS" => each(value).map(|part| text(part) / 4 * 3).sum(),
        "L" => 3 + each(value).map(|part| 1 + value_size(part)).sum::<u64>(),
        "M" => {
            let fields = value.as_object().into_iter().flatten();
            3 + fields.map(|(name, part)| 1 + name.len() as u64 + value_size(part)).sum::<u64>()
        }
        _ => 1,
    }
}

/// A number takes about one byte for two digits, and one more.
fn digits(value: &Value) -> u64 {
    let digits = value.as_str().unwrap_or_default().bytes().filter(u8::is_ascii_digit).count() as u64;
    digits.div_ceil(2) + 1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write_units(items: &mut Items, action: &str, asked: &Value) -> f64 {
        items.units(action, asked, 200, &json!({})).write
    }

    fn row(body: &str) -> Value {
        json!({"pk": {"S": "a"}, "sk": {"S": "b"}, "rev": {"N": "1"}, "body": {"S": body}})
    }

    #[test]
    fn a_write_costs_one_unit_for_every_begun_kilobyte_and_twice_in_a_transaction() {
        let mut items = Items::default();
        let put = json!({"TableName": "t", "Item": row(&"x".repeat(2000))});
        let update = json!({"Update": {"TableName": "t", "Key": {"pk": {"S": "c"}, "sk": {"S": "d"}},
            "UpdateExpression": "SET body = :b", "ExpressionAttributeValues": {":b": {"S": "small"}, ":old": {"S": "y".repeat(9000)}}}});

        assert_eq!(write_units(&mut items, "PutItem", &put), 2.0);
        assert_eq!(
            write_units(&mut items, "TransactWriteItems", &json!({"TransactItems": [{"Put": put}, update]})),
            6.0
        );
    }

    #[test]
    fn a_delete_costs_the_item_that_goes() {
        let mut items = Items::default();
        write_units(&mut items, "PutItem", &json!({"TableName": "t", "Item": row(&"x".repeat(5000))}));
        let delete = json!({"TableName": "t", "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}});

        assert_eq!(write_units(&mut items, "DeleteItem", &delete), 5.0);
        assert_eq!(write_units(&mut items, "DeleteItem", &delete), 1.0);
    }

    #[test]
    fn a_failed_condition_costs_and_a_throttled_write_does_not() {
        let mut items = Items::default();
        let put = json!({"TableName": "t", "Item": row("x")});
        let failed = json!({"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"});
        let throttled = json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException"});

        assert_eq!(items.units("PutItem", &put, 400, &failed).write, 1.0);
        assert_eq!(items.units("PutItem", &put, 400, &throttled).write, 0.0);
    }

    #[test]
    fn a_cancelled_transaction_is_billed_and_counted_apart_and_changes_no_size() {
        let mut items = Items::default();
        let write = |body: &str| json!({"TransactItems": [{"Put": {"TableName": "t", "Item": row(body)}}]});
        let failed = json!({"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException"});

        let cancelled = items.units("TransactWriteItems", &write(&"x".repeat(5000)), 400, &failed);
        let applied = items.units("TransactWriteItems", &write("small"), 200, &json!({}));

        assert_eq!(cancelled, Units { write: 10.0, cancelled: 10.0, read: 0.0 });
        assert_eq!(applied, Units { write: 2.0, cancelled: 0.0, read: 0.0 });
        assert_eq!((items.by_row["a b"].writes, items.by_row["a b"].cancelled), (2, 1));
    }

    #[test]
    fn reads_cost_half_unless_they_are_consistent() {
        let mut items = Items::default();
        let found = json!({"Item": row(&"x".repeat(5000))});

        assert_eq!(items.units("GetItem", &json!({}), 200, &found).read, 1.0);
        assert_eq!(items.units("GetItem", &json!({"ConsistentRead": true}), 200, &found).read, 2.0);
        assert_eq!(items.units("GetItem", &json!({}), 200, &json!({})).read, 0.5);
    }
}
