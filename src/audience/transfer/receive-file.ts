/**
 * Receives the file of an import: stores it in parts as it arrives, then queues the import.
 *
 * Called by the route and the command line. Holds one part and the beginning of the file in memory.
 * Fails: AppError validation_error for an invalid file or option; not_found, conflict for its list. Stored parts are then deleted.
 */
import { AppError, describeError } from '../../core/errors.js'
import { readCsv } from '../../core/csv.js'
import type { Actor } from '../../core/actor.js'
import { recordActivity } from '../../events/activity-store.js'
import { MessageSpool } from '../../mail/message-spool.js'
import { streamDecoder } from '../../mail/mime/charset.js'
import { findDeclaredTypes } from '../attributes/attribute-store.js'
import type { AudienceParts } from '../audience-parts.js'
import { refusal } from '../checks.js'
import { findStaticList } from '../lists/lists.js'
import type { ImportOptions, Mapping } from './import.js'
import {
  countUnfinished,
  deleteImport,
  deleteImportParts,
  insertImport,
  insertImportPart,
  queueImport,
} from './import-store.js'
import { FileCharset } from './reading/file-charset.js'
import { refusalOfKind } from './reading/file-kind.js'
import {
  isColumnOfType,
  readHeading,
  readMapping,
  readTypes,
  usedTypes,
  type Heading,
} from './reading/columns.js'
import type { TypeRules } from './reading/column-types.js'
import type { PresetChoice } from './reading/presets.js'
import { readTags } from './reading/read-row.js'

/** Maximum file size, octets. */
export const MAX_FILE_OCTETS = 256 * 1_024 * 1_024
/** Octets searched for the header row. */
const MAX_HEADING = 65_536
/** Unfinished imports per workspace. */
export const MAX_UNFINISHED = 20
const PARTS_AT_ONCE = 16

/** Options of the upload. In a multipart form they may follow the file. */
export interface UploadOptions {
  readonly listId?: string | undefined
  /** Comma-separated names. */
  readonly tags?: string | undefined
  readonly mapping?: Mapping | undefined
  readonly charset?: string | undefined
  /** Types by column name; found in the cells of other columns. */
  readonly types?: Readonly<Record<string, string>> | undefined
  readonly rules?: TypeRules | undefined
  /** Detected if not set. */
  readonly preset?: PresetChoice | undefined
  readonly fileName?: string | undefined
  /** Default false. */
  readonly isDryRun?: boolean | undefined
}

export interface Receiving {
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly actor: Actor
  /** Whether the caller may suppress addresses. */
  readonly maySuppress?: boolean
}

type Parts = Pick<AudienceParts, 'database' | 'clock' | 'newId'>

/**
 * @param uploadOptions called when the file is complete
 * @returns id and number of the import, which is on disk
 */
export async function receiveFile(
  { database, clock, newId }: Parts,
  { workspaceId, isSandbox, actor, maySuppress = true }: Receiving,
  pieces: AsyncIterable<Buffer>,
  uploadOptions: () => UploadOptions,
): Promise<{ readonly id: string; readonly seq: number }> {
  database.storage.requireRoom()
  const id = newId()
  const seq = await database.write(async tx => {
    if ((await countUnfinished(tx.db, workspaceId)) >= MAX_UNFINISHED)
      throw new AppError(
        'conflict',
        `${MAX_UNFINISHED} imports are already unfinished; wait for one to complete`,
      )
    return insertImport(tx.db, { id, workspaceId, isSandbox, createdAt: clock.now() })
  })
  try {
    const beginning = new Beginning()
    const spool = new MessageSpool({
      write: (part, octets) => database.write(tx => insertImportPart(tx.db, seq, part, octets)),
      remove: () => Promise.resolve(),
    })
    for await (const piece of pieces) {
      beginning.take(piece)
      spool.add(piece)
      await spool.writeWholeParts()
    }
    await spool.write()
    if (spool.writtenBytes === 0) throw fileRefusal('the file is empty')
    const given = uploadOptions()
    const { listId, tags = '', mapping = {}, charset: declared, fileName, preset, isDryRun = false } = given
    beginning.mustBeText()
    const charset = beginning.charset(declared)
    const heading = await beginning.heading(charset, readMapping(mapping), preset, fileName)
    if (!maySuppress) refuseToSuppress(heading)
    const { columns, everyRow, makesContacts } = heading
    const types = readTypes(given.types ?? {}, columns)
    const declaredTypes = await findDeclaredTypes(database.reader, workspaceId)
    const options: ImportOptions = {
      isDryRun,
      listId: listId ?? null,
      tags: named(tags),
      mapping,
      columns,
      types,
      rules: given.rules ?? {},
      declared: usedTypes(declaredTypes, columns),
      areTypesFound:
        !makesContacts ||
        !columns.some(column => isColumnOfType(column, { types, declared: declaredTypes, everyRow })),
      hasHeading: heading.hasHeading,
      order: 'address',
      preset: heading.preset,
      everyRow,
      makesContacts,
    }
    await database.write(async tx => {
      if (listId !== undefined) await findStaticList(tx.db, workspaceId, listId, 'list_id')
      await queueImport(tx.db, seq, {
        fileName: fileName ?? null,
        charset,
        options,
        octets: spool.writtenBytes,
      })
      if (isDryRun) return
      await recordActivity(tx, { workspaceId, actor }, clock.now(), {
        action: 'contacts.imported',
        subject: fileName ?? 'contacts',
        details: { import_id: id, size: spool.writtenBytes },
      })
    })
    return { id, seq }
  } catch (error) {
    await forget(database, seq)
    throw error
  }
}

/** @throws AppError forbidden */
function refuseToSuppress({ preset, columns, everyRow }: Heading): void {
  const suppresses =
    everyRow.suppress !== null || columns.some(({ field }) => field === 'status' || field === 'blocked')
  if (suppresses)
    throw new AppError(
      'forbidden',
      `the file suppresses addresses${preset === null ? '' : ` (preset ${preset})`}, and this key lacks the permission ` +
        'suppressions:write; use preset=none to import only the contacts',
    )
}

async function forget(database: Parts['database'], seq: number): Promise<void> {
  while ((await database.write(tx => deleteImportParts(tx.db, seq, PARTS_AT_ONCE))) === PARTS_AT_ONCE);
  await database.write(tx => deleteImport(tx.db, seq))
}

function named(tags: string): string[] {
  try {
    return readTags(tags)
  } catch (error) {
    throw refusal('tags', describeError(error))
  }
}

/** The beginning of the file, for charset and header. */
class Beginning {
  /** Charset by content alone. */
  private readonly guessed = new FileCharset()
  private readonly held: Buffer[] = []
  private octets = 0

  take(piece: Buffer): void {
    this.guessed.take(piece)
    if (this.octets >= MAX_HEADING) return
    this.held.push(piece.subarray(0, MAX_HEADING - this.octets))
    this.octets += piece.length
  }

  /** @throws AppError validation_error for a workbook */
  mustBeText(): void {
    const reason = refusalOfKind(Buffer.concat(this.held))
    if (reason !== undefined) throw fileRefusal(reason)
  }

  /** @throws AppError validation_error if unknown */
  charset(declared: string | undefined): string {
    if (declared !== undefined && !streamDecoder(declared))
      throw refusal('charset', `unknown charset ${declared.slice(0, 40)}`)
    return this.guessed.charsetFor(declared)
  }

  async heading(
    charset: string,
    mapping: Mapping,
    preset?: PresetChoice,
    fileName?: string,
  ): Promise<Heading> {
    const text = streamDecoder(charset)?.decode(Buffer.concat(this.held), { stream: true }) ?? ''
    const first = await firstRow(Buffer.from(text))
    if (!first) throw fileRefusal('the file has no rows')
    return readHeading(first, mapping, preset, fileName)
  }
}

/** @throws AppError validation_error */
async function firstRow(octets: Buffer): Promise<readonly string[] | undefined> {
  try {
    for await (const [first] of readCsv([octets])) {
      if (first?.fault !== undefined) throw new Error(`line ${first.line}: ${first.fault}`)
      if (first) return first.cells
    }
    return undefined
  } catch (error) {
    throw fileRefusal(`the file is not valid CSV: ${describeError(error)}`)
  }
}

function fileRefusal(message: string): AppError {
  return refusal('file', message)
}
