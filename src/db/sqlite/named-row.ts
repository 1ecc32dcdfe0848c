/** Turns rows from arrays into objects: in SQLite's binding, naming the columns of each row takes longer than reading it. Pure. */
export function namedRow(columns: readonly string[], values: readonly unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (let at = 0; at < columns.length; at += 1) row[columns[at] ?? ''] = values[at]
  return row
}
