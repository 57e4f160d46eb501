//! Columns for people, without borders, as kubectl has them.

use super::escape;
use comfy_table::{ContentArrangement, Table, presets};

/// Rows under a heading. Cells are escaped here, so that no caller forgets;
/// an empty one is shown as `-`.
pub(crate) fn columns(heading: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = plain();
    table.set_header(heading.iter().copied());
    for row in rows {
        table.add_row(row.iter().map(|cell| {
            if cell.is_empty() {
                "-".to_owned()
            } else {
                escape(cell)
            }
        }));
    }
    trimmed(table)
}

fn plain() -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Padding at the line's end is noise in a pipe, the one at its start too.
fn trimmed(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().fold(String::new(), |mut text, line| {
        text.push_str(line.trim_end());
        text.push('\n');
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_without_borders() {
        let text = columns(
            &["NAME", "PHASE", "NODES"],
            &[
                vec!["a".into(), "Running".into(), "0".into()],
                vec!["longer-name".into(), String::new(), "12".into()],
            ],
        );
        assert_eq!(
            text,
            "NAME         PHASE    NODES\n\
             a            Running  0\n\
             longer-name  -        12\n"
        );
    }

    #[test]
    fn a_cell_stays_on_its_line_and_steers_nothing() {
        let text = columns(&["MESSAGE"], &[vec!["two\nlines\u{1b}[0m".to_owned()]]);
        assert_eq!(text, "MESSAGE\ntwo\\nlines\\u{1b}[0m\n");
    }
}
