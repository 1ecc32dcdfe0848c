/**
 * Rows as objects. SQLite's binding gives them as arrays: it takes longer to name the columns of a row, each row anew, than to read it.
 *
 * Used by whoever runs statements on a connection. Pure.
 */
export function namedRow(columns: readonly string[], values: readonly unknown[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (let at = 0; at < columns.length; at += 1) row[columns[at] ?? ''] = values[at]
  return row
}
