//! Tables for a terminal of any width, and for pipes.

use super::clean::{fit, one_line, width};

/// Blanks between two columns.
const GAP: usize = 2;
/// A flexible column is never made narrower than this.
const MIN_FLEXIBLE: usize = 8;

/// One column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Gives way when the terminal is narrow.
    pub(crate) flexible: bool,
    /// Left out, from the highest number down, when even that does not help. 0 is never left out.
    pub(crate) expendable: u8,
}

/// The lines of a table, its head included. Without `columns` nothing is cut: the reader is a program.
pub(crate) fn render(columns: &[Column], rows: &[Vec<String>], terminal: Option<usize>) -> Vec<String> {
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let natural: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let widest = cells.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max();
            widest.unwrap_or(0).max(width(column.title))
        })
        .collect();
    let widths = match terminal {
        Some(terminal) => fitted(columns, &natural, terminal),
        None => natural.into_iter().map(Some).collect(),
    };
    let head: Vec<String> = columns.iter().map(|column| column.title.to_owned()).collect();
    std::iter::once(&head).chain(&cells).map(|row| line(row, &widths)).collect()
}

/// The width of each column; `None` for one that is left out.
fn fitted(columns: &[Column], natural: &[usize], terminal: usize) -> Vec<Option<usize>> {
    let mut shown: Vec<bool> = vec![true; columns.len()];
    loop {
        let kept = || natural.iter().zip(&shown).filter(|(_, shown)| **shown);
        let gaps = GAP * kept().count().saturating_sub(1);
        let total: usize = kept().map(|(width, _)| width).sum::<usize>() + gaps;
        let mut surplus = total.saturating_sub(terminal);
        let mut widths: Vec<Option<usize>> =
            natural.iter().zip(&shown).map(|(width, shown)| shown.then_some(*width)).collect();
        for (width, column) in widths.iter_mut().zip(columns) {
            if let Some(width) = width.as_mut().filter(|_| column.flexible) {
                let given = surplus.min(width.saturating_sub(MIN_FLEXIBLE));
                *width -= given;
                surplus -= given;
            }
        }
        let next = columns
            .iter()
            .enumerate()
            .filter(|(at, column)| column.expendable > 0 && shown.get(*at) == Some(&true))
            .max_by_key(|(_, column)| column.expendable)
            .map(|(at, _)| at);
        match next.and_then(|at| shown.get_mut(at)) {
            Some(shown) if surplus > 0 => *shown = false,
            _ => return widths,
        }
    }
}

fn line(row: &[String], widths: &[Option<usize>]) -> String {
    let mut text = String::new();
    for (cell, columns) in row.iter().zip(widths) {
        let Some(columns) = columns else { continue };
        if !text.is_empty() {
            text.push_str("  ");
        }
        let cell = fit(cell, *columns);
        text.push_str(&cell);
        text.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(&cell))));
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const COLUMNS: [Column; 3] = [
        Column { title: "ID", flexible: false, expendable: 0 },
        Column { title: "TITLE", flexible: true, expendable: 0 },
        Column { title: "MODEL", flexible: false, expendable: 1 },
    ];

    fn rows() -> Vec<Vec<String>> {
        [["1", "fix the build of the server", "fake"], ["22", "日本語\nの題", "gpt"]]
            .map(|row| row.map(str::to_owned).to_vec())
            .to_vec()
    }

    #[test]
    fn a_pipe_gets_everything() {
        assert_eq!(
            render(&COLUMNS, &rows(), None),
            [
                "ID  TITLE                        MODEL",
                "1   fix the build of the server  fake",
                "22  日本語 の題                  gpt"
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_shortens_what_is_flexible_then_drops_what_it_can() {
        assert_eq!(
            render(&COLUMNS, &rows(), Some(30)),
            [
                "ID  TITLE                MODEL",
                "1   fix the build of t…  fake",
                "22  日本語 の題          gpt"
            ]
        );
        assert_eq!(render(&COLUMNS, &rows(), Some(14)), ["ID  TITLE", "1   fix the b…", "22  日本語 の…"]);
        assert!(render(&COLUMNS, &rows(), Some(14)).iter().all(|line| width(line) <= 14));
    }
}
