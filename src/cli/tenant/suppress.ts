/** `postroad suppress add|remove|list|import|export`: addresses, or domains as @example.com, that a workspace must not mail. Transfers are CSV. */
import { basename } from 'node:path'
import type { Command } from 'commander'
import { followSuppressions } from '../../audience/contacts/follow-suppressions.js'
import { readPreset } from '../../audience/transfer/import-routes.js'
import { type Heading, readHeading } from '../../audience/transfer/reading/columns.js'
import { layoutOf, PRESET_CHOICES, type PresetChoice } from '../../audience/transfer/reading/presets.js'
import { columnsToRead, type ColumnToRead, readRow } from '../../audience/transfer/reading/read-row.js'
import { type CsvRow, csvText, readCsv } from '../../core/csv.js'
import { AppError, describeError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { Database } from '../../db/database.js'
import { suppressionToApi } from '../../deliverability/suppressions/suppression-routes.js'
import {
  everySuppression,
  listSuppressions,
  type Suppression,
  SUPPRESSION_REASONS,
  SUPPRESSION_SCOPES,
  type SuppressionReason,
  type SuppressionScope,
  suppressOrWiden,
  type SuppressResult,
} from '../../deliverability/suppressions/suppression-store.js'
import {
  addSuppression,
  readSuppressionEntry,
  removeSuppression,
  suppressionAddedEvent,
} from '../../deliverability/suppressions/suppressions.js'
import { appendEvents } from '../../events/store.js'
import { pauseFor } from '../../world/time/clock.js'
import {
  type CliContext,
  drawProgress,
  endProgress,
  getWorkspace,
  openInput,
  type OwnedOptions,
  printResult,
  withAppliance,
} from '../context.js'
import { ownedGroup, printsList, command, owned } from '../options.js'

export function suppressCommands(program: Command, context: CliContext): void {
  const { group, inWorkspace } = ownedGroup(
    program,
    'suppress',
    'suppressed addresses and domains',
    'workspace of the suppressions',
  )
  inWorkspace('add <email>', 'suppress an address, or a domain as @example.com').action(
    async (email: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database, world }) => {
        const suppression: Suppression = {
          workspaceId: options.workspace,
          email: readSuppressionEntry(email),
          reason: 'manual',
          scope: 'all',
          sourceMessageId: null,
          createdAt: world.clock.now(),
        }
        const result = await database.write(async tx => {
          await getWorkspace(tx.db, options.workspace)
          return addSuppression(tx, suppression, followSuppressions())
        })
        printResult(context, options, suppressionToApi(suppression, false), () =>
          result === 'added'
            ? `${suppression.email} suppressed`
            : `${suppression.email} is now suppressed for all mail, not just marketing`,
        )
      })
    },
  )
  inWorkspace('remove <email>', 'remove a suppression').action(
    async (email: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database, world }) => {
        const removal = {
          workspaceId: options.workspace,
          email: readSuppressionEntry(email),
          createdAt: world.clock.now(),
        }
        await database.write(tx => removeSuppression(tx, removal, followSuppressions()))
        printResult(context, options, { success: true }, () => 'removed')
      })
    },
  )
  printsList(
    context,
    inWorkspace('list', 'list suppressions, newest first'),
    ['EMAIL', 'REASON', 'SCOPE', 'SINCE'],
    async ({ database }, { workspaceId, page }) => {
      const all = await listSuppressions(database.reader, workspaceId, page)
      return all.map(one => ({
        shown: suppressionToApi(one, false),
        cells: [one.email, one.reason, one.scope, isoTime(one.createdAt)],
      }))
    },
  )
  suppressTransferCommands(group, context)
}

const COLUMNS = ['email', 'reason', 'scope', 'source_message_id', 'created_at'] as const
/** Rows of one transaction: blocks the server's writes for a few milliseconds. */
const ROWS_AT_ONCE = 200
/** Pause between transactions: the server retries for the write lock every 5 ms (`db/sqlite/write-lock.ts`). */
const PAUSE_MS = 10
const MAX_SHOWN = 20

interface Rejected {
  readonly line: number
  readonly reason: string
}

function suppressTransferCommands(group: Command, context: CliContext): void {
  const inWorkspace = (nameAndArgs: string, description: string) =>
    owned(command(group, nameAndArgs, description), 'workspace of the suppressions')
  inWorkspace(
    'import <file>',
    'suppress the addresses in a CSV file (columns email, reason, scope; or a single column)',
  )
    .option('--preset <name>', `system that exported the file, if not detected: ${PRESET_CHOICES.join(', ')}`)
    .action(async (file: string, options: OwnedOptions & { readonly preset?: string }) => {
      const preset = readPreset(options.preset)
      await withAppliance(context, options, async ({ database, world }) => {
        await getWorkspace(database.reader, options.workspace)
        const importing = new Import(database, options.workspace, world.clock.now(), {
          preset,
          fileName: basename(file),
        })
        await readFile(file, async rows => {
          await importing.take(rows)
          drawProgress(undefined, `${importing.total} lines`)
        })
        endProgress()
        if (importing.rejected.length > 0) context.fail()
        printResult(context, options, importing.toJson(), () => importing.toText())
      })
    })
  inWorkspace('export', 'export all suppressions of a workspace as CSV').action(
    async (options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database }) => {
        const pieces = everySuppression(database.reader, options.workspace)
        if (options.json) {
          const all: Suppression[] = []
          for await (const piece of pieces) all.push(...piece)
          context.print(
            JSON.stringify(
              all.map(one => suppressionToApi(one, false)),
              null,
              2,
            ),
          )
          return
        }
        context.print(csvText([COLUMNS]))
        for await (const piece of pieces) {
          if (context.isOutputClosed?.()) return
          context.print(csvText(piece.map(cellsOf)))
        }
      })
    },
  )
}

function cellsOf(one: Suppression): string[] {
  return [one.email, one.reason, one.scope, one.sourceMessageId ?? '', isoTime(one.createdAt)]
}

/** Yields the rows in chunks; the file may be of any size. @throws Error naming the file or the line */
async function readFile(file: string, take: (rows: readonly CsvRow[]) => Promise<void>): Promise<void> {
  for await (const rows of readCsv(openInput(file)))
    for (let start = 0; start < rows.length; start += ROWS_AT_ONCE)
      await take(rows.slice(start, start + ROWS_AT_ONCE))
}

class Import {
  total = 0
  readonly rejected: Rejected[] = []
  private readonly counts: Record<SuppressResult, number> = { added: 0, widened: 0, known: 0 }
  private rejectedCount = 0
  /** Columns of the first row, if it is a header. */
  private columns: readonly string[] | undefined
  /** Layout of another system's export. */
  private layout: { readonly heading: Heading; readonly columns: readonly ColumnToRead[] } | undefined
  private skipped = 0
  private readonly database: Database
  private readonly workspaceId: string
  private readonly now: number
  private readonly wish: { readonly preset: PresetChoice | undefined; readonly fileName: string }

  constructor(database: Database, workspaceId: string, now: number, wish: Import['wish']) {
    this.wish = wish
    this.database = database
    this.workspaceId = workspaceId
    this.now = now
  }

  async take(rows: readonly CsvRow[]): Promise<void> {
    const suppressions = rows.flatMap(row => this.read(row))
    this.total += rows.length
    await this.database.write(async tx => {
      const changed: Suppression[] = []
      for (const suppression of suppressions) {
        const result = await suppressOrWiden(tx.db, suppression)
        this.counts[result] += 1
        if (result === 'known') continue
        changed.push(suppression)
        await appendEvents(tx, [suppressionAddedEvent(suppression, false)])
      }
      await followSuppressions().suppressed(tx, changed, { isSandbox: false, source: 'api' })
    })
    if (rows.length === ROWS_AT_ONCE) await pauseFor(PAUSE_MS)
  }

  toJson() {
    return {
      ...this.counts,
      preset: this.layout?.heading.preset ?? null,
      skipped: this.skipped,
      rejected: this.rejectedCount,
      faults: this.rejected,
    }
  }

  toText(): string {
    const { added, widened, known } = this.counts
    return [
      ...(this.layout ? [`read as an export of ${this.layout.heading.preset ?? ''}`] : []),
      `${added} added, ${widened} widened to all mail, ${known} already suppressed, ${this.rejectedCount} rejected` +
        (this.skipped > 0 ? `, ${this.skipped} not suppressed there` : ''),
      ...this.rejected.map(({ line, reason }) => `line ${line}: ${reason}`),
      ...(this.rejectedCount > this.rejected.length ? ['...'] : []),
    ].join('\n')
  }

  private read(row: CsvRow): Suppression[] {
    const { line, cells, fault } = row
    if (!this.columns) {
      if (fault !== undefined) throw new Error(`line ${line}: ${fault}`)
      const layout = layoutOf(cells, this.wish.preset, this.wish.fileName)
      if (layout && layout.preset !== 'postroad') {
        const heading = readHeading(cells, {}, layout.preset, this.wish.fileName)
        this.layout = { heading, columns: columnsToRead(heading.columns) }
        this.columns = []
        return []
      }
      const names = cells.map(cell => cell.trim().toLowerCase())
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
          workspaceId: this.workspaceId,
          email: readSuppressionEntry(cell('email')),
          reason,
          scope: oneOf(SUPPRESSION_SCOPES, cell('scope').toLowerCase() || defaultScopeOf(reason), 'scope'),
          sourceMessageId: null,
          createdAt: this.now,
        },
      ]
    } catch (error) {
      this.rejectedCount += 1
      if (this.rejected.length < MAX_SHOWN) this.rejected.push({ line, reason: describeError(error) })
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
      { workspaceId: this.workspaceId, email, reason, scope, sourceMessageId: null, createdAt: this.now },
    ]
  }
}

function defaultScopeOf(reason: SuppressionReason): SuppressionScope {
  return reason === 'unsubscribe' ? 'marketing' : 'all'
}

function oneOf<Word extends string>(known: readonly Word[], text: string, name: string): Word {
  const word = known.find(one => one === text)
  if (word === undefined)
    throw new AppError('validation_error', `${name} ${text.slice(0, 40)} is not one of ${known.join(', ')}`)
  return word
}
