/**
 * Checksum of a table that is the same on SQLite and PostgreSQL: the sum of the SHA-256 of all rows.
 *
 * A sum, since the databases order text differently and each is read fastest in its own order. A row is hashed as JSON: numbers as
 * JavaScript prints them, octets in base64, JSON with sorted keys (PostgreSQL's jsonb does not preserve their order). Pure.
 */
import { hash } from 'node:crypto'
import type { Column, Row, TableShape, Value } from './copied-table.js'

const LANES = 8

export interface TableDigest {
  readonly rows: number
  /** Hexadecimal, 64 digits. */
  readonly checksum: string
}

export class RowDigest {
  private readonly columns: readonly Column[]
  /** Whether values can be printed as they are. */
  private readonly isPlain: boolean
  private readonly lanes = new Uint32Array(LANES)
  private rows = 0

  constructor({ columns }: Pick<TableShape, 'columns'>) {
    this.columns = columns
    this.isPlain = columns.every(({ kind }) => kind === 'text' || kind === 'number')
  }

  add(row: Row): void {
    const printed = JSON.stringify(this.isPlain ? row : row.map((value, at) => this.printed(value, at)))
    const digest = hash('sha256', printed, 'buffer')
    for (let lane = 0; lane < LANES; lane += 1)
      this.lanes[lane] = ((this.lanes[lane] ?? 0) + digest.readUInt32BE(4 * lane)) >>> 0
    this.rows += 1
  }

  result(): TableDigest {
    const checksum = [...this.lanes].map(lane => lane.toString(16).padStart(8, '0')).join('')
    return { rows: this.rows, checksum }
  }

  /** In an array, so that it differs from a text. */
  private printed(value: Value, at: number): unknown {
    if (value instanceof Uint8Array)
      return [Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')]
    if (this.columns[at]?.kind === 'json' && typeof value === 'string') return [sorted(JSON.parse(value))]
    return value
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  // Entries, since an object moves keys that are numbers to the front.
  return Object.entries(value)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, inner]) => [key, sorted(inner)])
}
