/**
 * Imports suppressions from CSV: our own export, that of another system, or a bare list of addresses.
 *
 * Called by `POST /suppressions/import`. Rows are stored as they arrive, a few hundred per transaction, so that memory does not grow with
 * the file and rows before a failure are kept. Rejected rows are counted, and the first ones named.
 * Fails: AppError validation_error for an unreadable header.
 */
import { TextDecoder } from 'node:util'
import { type Actor } from '../../core/actor.js'
import { type CsvRow, readCsv } from '../../core/csv.js'
import { AppError, describeError } from '../../core/errors.js'
import type { Services } from '../../db/services.js'
import {
  type Suppression,
  SUPPRESSION_REASONS,
  SUPPRESSION_SCOPES,
  type SuppressionReason,
  type SuppressionScope,
  suppressOrWiden,
  type SuppressResult,
} from '../../deliverability/suppressions/suppression-store.js'
import {
  type ContactSuppressions,
  readSuppressionEntry,
  suppressionAddedEvent,
} from '../../deliverability/suppressions/suppressions.js'
import { recordActivity } from '../../events/activity-store.js'
import { appendEvents } from '../../events/store.js'
import { pauseFor } from '../../world/time/clock.js'
import { knownField } from './reading/column-names.js'
import { type Heading, readHeading } from './reading/columns.js'
import { layoutOf, type PresetChoice } from './reading/presets.js'
import { addressIn } from './reading/import-address.js'
import { FileCharset } from './reading/file-charset.js'
import { KIND_OCTETS, refusalOfKind } from './reading/file-kind.js'
import { rejectedValue } from './import.js'
import { columnsToRead, type ColumnToRead, readRow } from './reading/read-row.js'

export interface SuppressionImportParts extends Pick<Services, 'database' | 'clock'> {
  readonly suppressedContacts: ContactSuppressions
  readonly onEvents?: () => void
}

export interface SuppressionImportRequest {
  readonly workspaceId: string
  readonly actor: Actor
  /** System that exported the file; detected if not given. */
  readonly preset: PresetChoice | undefined
  readonly fileName: string
}

export interface SuppressionImportResult extends Readonly<Record<SuppressResult, number>> {
  /** Lines read, without a header. */
  readonly total: number
  /** The system whose export it is; null for our own columns. */
  readonly preset: string | null
  /** Rows of another system's export that are not suppressed there. */
  readonly skipped: number
  readonly rejected: number
  /** The first rejected rows. */
  readonly faults: readonly SuppressionFault[]
}

export interface SuppressionFault {
  readonly line: number
  readonly reason: string
  /** The row's cell in the address column. */
  readonly value: string | null
}

/** Rows of one transaction: blocks other writes for a few milliseconds. */
const ROWS_AT_ONCE = 200
/** Pause between transactions, for other writers. */
const PAUSE_MS = 10
const MAX_SHOWN = 20

/** @throws AppError validation_error */
export async function importSuppressions(
  parts: SuppressionImportParts,
  request: SuppressionImportRequest,
  file: AsyncIterable<Buffer>,
): Promise<SuppressionImportResult> {
  const { database, clock } = parts
  const importing = new Import(parts, request)
  for await (const rows of readCsv(asText(file)))
    for (let start = 0; start < rows.length; start += ROWS_AT_ONCE)
      await importing.take(rows.slice(start, start + ROWS_AT_ONCE))
  const result = importing.result()
  const { added, widened, known, rejected } = result
  await database.write(tx =>
    recordActivity(tx, request, clock.now(), {
      action: 'suppression.imported',
      subject: request.fileName,
      details: { added, widened, known, rejected },
    }),
  )
  return result
}

/** The file in UTF-8. Its beginning, which holds the names of columns, decides on the charset. @throws AppError validation_error for a workbook */
async function* asText(file: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer = Buffer.alloc(0)
  let decoder: TextDecoder | undefined
  for await (const piece of file) {
    if (!decoder) {
      held = Buffer.concat([held, piece])
      if (held.length < KIND_OCTETS) continue
      decoder = decoderFor(held)
      yield Buffer.from(decoder.decode(held, { stream: true }))
    } else yield Buffer.from(decoder.decode(piece, { stream: true }))
  }
  if (decoder) yield Buffer.from(decoder.decode())
  else yield Buffer.from(decoderFor(held).decode(held))
}

/** @param beginning of the file @throws AppError validation_error for a workbook */
function decoderFor(beginning: Buffer): TextDecoder {
  const reason = refusalOfKind(beginning)
  if (reason !== undefined) throw new AppError('validation_error', reason, { path: 'file' })
  const charset = new FileCharset()
  charset.take(beginning)
  return new TextDecoder(charset.guess)
}

class Import {
  private total = 0
  private readonly faults: SuppressionFault[] = []
  private readonly counts: Record<SuppressResult, number> = { added: 0, widened: 0, known: 0 }
  private rejectedCount = 0
  /** Columns of the first row, if it is a header. */
  private columns: readonly string[] | undefined
  /** Layout of another system's export. */
  private layout: { readonly heading: Heading; readonly columns: readonly ColumnToRead[] } | undefined
  private skipped = 0
  private readonly parts: SuppressionImportParts
  private readonly request: SuppressionImportRequest
  private readonly now: number

  constructor(parts: SuppressionImportParts, request: SuppressionImportRequest) {
    this.parts = parts
    this.request = request
    this.now = parts.clock.now()
  }

  async take(rows: readonly CsvRow[]): Promise<void> {
    const { database, suppressedContacts, onEvents = () => {} } = this.parts
    const suppressions = rows.flatMap(row => this.read(row))
    this.total += rows.length
    const results = await database.write(
      async tx => {
        const changed: Suppression[] = []
        const results: SuppressResult[] = []
        for (const suppression of suppressions) {
          const result = await suppressOrWiden(tx.db, suppression)
          results.push(result)
          if (result !== 'known') changed.push(suppression)
        }
        await appendEvents(
          tx,
          changed.map(one => suppressionAddedEvent(one, false)),
        )
        await suppressedContacts.suppressed(tx, changed, { isSandbox: false, source: 'api' })
        tx.onCommit(onEvents)
        return results
      },
      { isLong: true },
    )
    for (const result of results) this.counts[result] += 1
    if (rows.length === ROWS_AT_ONCE) await pauseFor(PAUSE_MS)
  }

  result(): SuppressionImportResult {
    return {
      ...this.counts,
      total: this.total,
      preset: this.layout?.heading.preset ?? null,
      skipped: this.skipped,
      rejected: this.rejectedCount,
      faults: this.faults,
    }
  }

  private read(row: CsvRow): Suppression[] {
    const { line, cells, fault } = row
    if (!this.columns) {
      if (fault !== undefined) throw new AppError('validation_error', `line ${line}: ${fault}`)
      const layout = layoutOf(cells, this.request.preset, this.request.fileName)
      if (layout && layout.preset !== 'postroad') {
        const heading = readHeading(cells, {}, layout.preset, this.request.fileName)
        this.layout = { heading, columns: columnsToRead(heading.columns) }
        this.columns = []
        return []
      }
      const names = cells.map(cell => (isAddressColumn(cell) ? 'email' : cell.trim().toLowerCase()))
      const [first, second] = cells.filter(isAddressColumn)
      if (first !== undefined && second !== undefined)
        throw new AppError(
          'validation_error',
          `the columns ${JSON.stringify(first)} and ${JSON.stringify(second)} both mean the address; remove one of them`,
          { path: 'file' },
        )
      this.columns = names.includes('email') ? names : ['email', 'reason', 'scope']
      if (names.includes('email')) return []
    }
    const cell = (name: string) => (cells[this.columns?.indexOf(name) ?? -1] ?? '').trim()
    try {
      if (fault !== undefined) throw new Error(fault)
      if (this.layout) return this.readForeign(this.layout, row)
      const reason = oneOf(SUPPRESSION_REASONS, cell('reason').toLowerCase() || 'manual', 'reason')
      return [
        {
          workspaceId: this.request.workspaceId,
          email: readSuppressionEntry(addressIn(cell('email'))),
          reason,
          scope: oneOf(SUPPRESSION_SCOPES, cell('scope').toLowerCase() || defaultScopeOf(reason), 'scope'),
          sourceMessageId: null,
          createdAt: this.now,
        },
      ]
    } catch (error) {
      this.rejectedCount += 1
      const columns = this.layout?.columns ?? this.columns.map(field => ({ field }))
      if (this.faults.length < MAX_SHOWN)
        this.faults.push({ line, reason: describeError(error), value: rejectedValue(columns, cells) })
      return []
    }
  }

  /** @throws Error */
  private readForeign({ heading, columns }: NonNullable<Import['layout']>, row: CsvRow): Suppression[] {
    const read = readRow(columns, row, heading.everyRow)
    if ('reason' in read) throw new Error(read.reason)
    const { email, suppress: reason } = read
    if (reason === null) {
      this.skipped += 1
      return []
    }
    const scope = defaultScopeOf(reason)
    return [
      {
        workspaceId: this.request.workspaceId,
        email,
        reason,
        scope,
        sourceMessageId: null,
        createdAt: this.now,
      },
    ]
  }
}

function defaultScopeOf(reason: SuppressionReason): SuppressionScope {
  return reason === 'unsubscribe' ? 'marketing' : 'all'
}

function isAddressColumn(name: string): boolean {
  return knownField(name) === 'email'
}

function oneOf<Word extends string>(known: readonly Word[], text: string, name: string): Word {
  const word = known.find(one => one === text)
  if (word === undefined)
    throw new AppError('validation_error', `${name} ${text.slice(0, 40)} is not one of ${known.join(', ')}`)
  return word
}
