/** Looks through the rows of a file for the types of its columns. Called by the reader thread, before the rows are imported. Pure. */
import type { CsvRow } from '../../../core/csv.js'
import { MAX_ROWS, type Column, type ImportOptions } from '../import.js'
import { ColumnTypes } from './column-types.js'
import type { DeclaredTypes } from '../../attributes/declared-values.js'
import { isColumnOfType, wantedType } from './columns.js'

export class ColumnScan {
  private readonly columns: readonly Column[]
  private readonly scanned: ReadonlyMap<number, ColumnTypes>
  /** Whose type may still change. */
  private open: [number, ColumnTypes][]
  private rows = 0

  constructor(
    columns: readonly Column[],
    {
      types,
      rules,
      declared,
      everyRow,
    }: Pick<ImportOptions, 'types' | 'rules' | 'everyRow'> & {
      readonly declared: DeclaredTypes
    },
  ) {
    this.columns = columns
    this.scanned = new Map(
      columns.flatMap((column, at): [number, ColumnTypes][] =>
        isColumnOfType(column, { types, declared, everyRow })
          ? [[at, new ColumnTypes(column.name, wantedType(column, { types, declared }), rules)]]
          : [],
      ),
    )
    this.open = [...this.scanned]
  }

  /** Whether further rows can change nothing. */
  get isDecided(): boolean {
    return this.open.length === 0 || this.rows >= MAX_ROWS
  }

  see({ line, cells, fault }: CsvRow): void {
    // A row that is rejected as a whole says nothing of the columns.
    if (fault !== undefined) return
    this.rows += 1
    let isOneDecided = false
    for (const [at, types] of this.open) {
      types.see(cells[at] ?? '', line)
      isOneDecided ||= types.isDecided
    }
    if (isOneDecided) this.open = this.open.filter(([, types]) => !types.isDecided)
  }

  /** @returns the columns with their types */
  finish(): readonly Column[] {
    return this.columns.map((column, at) => {
      const found = this.scanned.get(at)?.finish()
      return found ? { ...column, found } : column
    })
  }
}
