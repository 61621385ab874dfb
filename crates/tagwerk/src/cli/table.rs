//! Tables for people: plain columns that `grep` and `awk` can read too.

use comfy_table::{ContentArrangement, Row, Table, presets};

/// A table with a header, or `none` when it has no rows.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: Vec<[String; N]>, none: &str) -> String {
    if rows.is_empty() {
        return none.to_owned();
    }
    let header = header.iter().map(|name| (*name).to_owned()).collect();
    render(std::iter::once(header).chain(rows.into_iter().map(Vec::from)))
}

/// Names and values, one a line; what has no value is left out.
pub(crate) fn list(rows: Vec<(&str, Option<String>)>) -> String {
    render(rows.into_iter().filter_map(|(name, value)| {
        Some(vec![if name.is_empty() { String::new() } else { format!("{name}:") }, value?])
    }))
}

fn render(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    for row in rows {
        table.add_row(Row::from(row));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_plain() {
        let rows = vec![["7".to_owned(), "a b".to_owned()], ["1234".to_owned(), "ü".to_owned()]];
        assert_eq!(table(["ID", "TYPE"], rows, "no jobs"), "ID    TYPE\n7     a b\n1234  ü");
        assert_eq!(table(["ID"], vec![], "no jobs"), "no jobs");
    }

    #[test]
    fn lists_leave_out_what_has_no_value() {
        let rows = vec![("id", Some("7".to_owned())), ("queue", None), ("type", Some("a\nb".to_owned()))];
        assert_eq!(list(rows), "id:    7\ntype:  a\n       b");
    }
}
