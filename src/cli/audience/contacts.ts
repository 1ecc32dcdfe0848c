/**
 * `postroad contacts list|show|add|remove|import|export`. Transfers are CSV, through files or standard input and output.
 *
 * The import file is stored first. A running server then processes it while this command shows its progress; otherwise the command
 * processes it. An interrupted import is continued by the next server or import command.
 */
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import type { Appliance } from '../../appliance/appliance.js'
import type { Acting, AudienceParts } from '../../audience/audience-parts.js'
import { contactToApi } from '../../audience/contacts/contact-events.js'
import { listContacts } from '../../audience/contacts/contact-page-store.js'
import { readNewContact, shownWith } from '../../audience/contacts/contact-schema.js'
import type { Contact } from '../../audience/contacts/contact.js'
import {
  createContact,
  findContact,
  noSuchContact,
  removeContacts,
} from '../../audience/contacts/contacts.js'
import { CONTACT_TAGS, LIST_MEMBERS, thingsOf } from '../../audience/pair-store.js'
import { patience } from '../../audience/scan-store.js'
import { exportContacts, exportContactsAsJson, readFilter } from '../../audience/transfer/export-contacts.js'
import { importToApi, readPreset, rejectedRows } from '../../audience/transfer/import-routes.js'
import { findImportBySeq, listRejections } from '../../audience/transfer/import-store.js'
import type { Import, Mapping } from '../../audience/transfer/import.js'
import { Importer } from '../../audience/transfer/importer.js'
import { PRESET_CHOICES } from '../../audience/transfer/reading/presets.js'
import { receiveFile } from '../../audience/transfer/receive-file.js'
import { searchWords } from '../../core/fold.js'
import { given } from '../../core/given.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import { isServing } from '../../db/sqlite/serve-lock.js'
import { SHELL } from '../../core/actor.js'
import { spawnThread } from '../../world/threads.js'
import {
  type CliContext,
  drawProgress,
  endProgress,
  getWorkspace,
  type OwnedOptions,
  printResult,
  UsageError,
  withAppliance,
} from '../context.js'
import {
  confirm,
  confirmable,
  type ConfirmOptions,
  ownedGroup,
  printsList,
  command,
  owned,
} from '../options.js'

interface NewContactOptions extends OwnedOptions {
  readonly firstName?: string
  readonly lastName?: string
  readonly attribute?: readonly string[]
  readonly list?: string
  readonly unsubscribed?: boolean
}

export function contactsCommands(program: Command, context: CliContext): void {
  const { group, inWorkspace } = ownedGroup(program, 'contacts', 'contacts of a workspace')
  printsList<{ readonly search?: string }>(
    context,
    inWorkspace('list', 'list contacts, newest first').option(
      '--search <words>',
      'search addresses and names',
    ),
    ['EMAIL', 'FIRST NAME', 'LAST NAME', 'SUBSCRIBED', 'BOUNCED', 'ID'],
    async ({ database, world }, { workspaceId, page, options }) => {
      const filter = { words: searchWords(options.search ?? '') }
      const { items } = await listContacts(database.reader, workspaceId, filter, page, patience(world.clock))
      return items.map(one => ({
        shown: contactToApi(one, false),
        cells: [
          ...[one.email, one.firstName, one.lastName],
          ...[one.subscribed ? 'yes' : 'no', one.bounced ? 'yes' : 'no', one.id],
        ],
      }))
    },
  )
  inWorkspace('show <contact>', 'show a contact, by id or address, with its lists and tags').action(
    async (named: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database: { reader } }) => {
        const contact = await getContact(reader, options.workspace, named)
        const lists = (await thingsOf(reader, LIST_MEMBERS, [contact.seq])).get(contact.seq) ?? []
        const tags = (await thingsOf(reader, CONTACT_TAGS, [contact.seq])).get(contact.seq) ?? []
        const shown = shownWith(contact, false, { lists, tags })
        context.print(JSON.stringify(shown, null, 2))
      })
    },
  )
  inWorkspace('add <email>', 'create a contact')
    .option('--first-name <name>')
    .option('--last-name <name>')
    .option('--attribute <name=value...>', 'custom attribute')
    .option('--list <id>', 'list to add it to')
    .option('--unsubscribed', 'create it as unsubscribed')
    .action(async (email: string, options: NewContactOptions) => {
      const fields = readNewContact({
        email,
        ...given({ first_name: options.firstName, last_name: options.lastName }),
        attributes: readAttributes(options.attribute ?? []),
        ...(options.unsubscribed ? { subscribed: false } : {}),
      })
      await withAppliance(context, options, async appliance => {
        const parts = audienceParts(appliance)
        const contact = await parts.database.write(async tx => {
          await getWorkspace(tx.db, options.workspace)
          return createContact(parts, tx, actingFor(options.workspace), fields, options.list)
        })
        printResult(context, options, contactToApi(contact, false), () => contact.id)
      })
    })
  confirmable(inWorkspace('remove <contact>', 'permanently delete a contact, by id or address')).action(
    async (named: string, options: OwnedOptions & ConfirmOptions) => {
      await withAppliance(context, options, async appliance => {
        const parts = audienceParts(appliance)
        await getContact(parts.database.reader, options.workspace, named)
        await confirm(context, options, `This permanently deletes the contact ${named}.`)
        await parts.database.write(async tx => {
          const contact = await getContact(tx.db, options.workspace, named)
          await removeContacts(parts, tx, actingFor(options.workspace), [contact])
        })
        printResult(context, options, { success: true }, () => 'removed')
      })
    },
  )
  contactTransferCommands(group, context)
}

/** @throws UsageError */
function readAttributes(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair): [string, string] => {
      const equals = pair.indexOf('=')
      if (equals < 1) throw new UsageError(`${pair} is not name=value`)
      return [pair.slice(0, equals), pair.slice(equals + 1)]
    }),
  )
}

const POLL_MS = 200
const MAX_SHOWN = 20

interface ImportCommandOptions extends OwnedOptions {
  readonly list?: string
  readonly tags?: string
  readonly map?: readonly string[]
  readonly charset?: string
  readonly preset?: string
  readonly rejected?: string
}

interface ExportCommandOptions extends OwnedOptions {
  readonly search?: string
  readonly list?: string
  readonly segment?: string
  readonly tag?: string
}

function contactTransferCommands(group: Command, context: CliContext): void {
  const inWorkspace = (nameAndArgs: string, description: string) =>
    owned(command(group, nameAndArgs, description), 'workspace of the contacts')
  inWorkspace('import <file>', 'import contacts from a CSV file; - is standard input')
    .option('--list <id>', 'list to add the contacts to')
    .option('--tags <names>', 'comma-separated tags to add to the contacts')
    .option(
      '--map <column=field...>',
      'map columns to fields: email, first_name, attributes.plan; empty: ignore the column',
    )
    .option('--charset <name>', 'character set of the file, if not detected')
    .option('--preset <name>', `system that exported the file, if not detected: ${PRESET_CHOICES.join(', ')}`)
    .option('--rejected <file>', 'write rejected rows to this file')
    .action(async (file: string, options: ImportCommandOptions) => {
      await withAppliance(context, options, async appliance => {
        const done = await importFile(appliance, file, options)
        const { reader } = appliance.database
        if (options.rejected !== undefined && done.rejected > 0)
          await pipeline(Readable.from(rejectedRows(reader, done)), createWriteStream(options.rejected))
        const rejections = await listRejections(reader, done.seq, 0, MAX_SHOWN)
        if (done.status !== 'completed' || done.rejected > 0) context.fail()
        const rejectedRowsShown = rejections.map(({ line, reason }) => ({ line, reason }))
        printResult(context, options, { ...importToApi(done), rejected_rows: rejectedRowsShown }, () =>
          [
            `${done.created} created, ${done.updated} updated, ${done.unchanged} unchanged, ${done.rejected} rejected`,
            ...rejections.map(({ line, reason }) => `line ${line}: ${reason}`),
            ...(done.rejected > rejections.length ? ['...'] : []),
            ...(done.status === 'completed' ? [] : [`${done.status}: ${done.error ?? 'it was cancelled'}`]),
          ].join('\n'),
        )
      })
    })
  inWorkspace(
    'export [file]',
    'export contacts as CSV, or with --json as a JSON array; default: standard output',
  )
    .option('--search <words>', 'search addresses and names')
    .option('--list <id>', 'only members of this list')
    .option('--segment <id>', 'only contacts in this segment')
    .option('--tag <id>', 'only contacts with this tag')
    .action(async (file: string | undefined, options: ExportCommandOptions) => {
      await withAppliance(context, options, async ({ database, world }) => {
        await getWorkspace(database.reader, options.workspace)
        const filter = await readFilter(database, options.workspace, {
          search: options.search,
          list_id: options.list,
          segment_id: options.segment,
          tag_id: options.tag,
        })
        const isPrinted = file === undefined || file === '-'
        const write = isPrinted && options.json ? exportContactsAsJson : exportContacts
        const pieces = write(database.reader, options.workspace, filter, world.clock.now())
        if (isPrinted)
          for await (const piece of pieces) {
            if (context.isOutputClosed?.()) return
            context.print(piece.replace(/\n$/, ''))
          }
        else {
          await pipeline(Readable.from(pieces), createWriteStream(file))
          printResult(context, options, { file }, () => `written to ${file}`)
        }
      })
    })
}

async function importFile(
  appliance: Appliance,
  file: string,
  { workspace, list, tags, map, charset, preset: presetName }: ImportCommandOptions,
): Promise<Import> {
  const mapping = readMap(map ?? [])
  const preset = readPreset(presetName)
  const parts = audienceParts(appliance)
  await getWorkspace(parts.database.reader, workspace)
  // Opened first, so that a missing file fails at once.
  const pieces: AsyncIterable<Buffer> = file === '-' ? process.stdin : (await open(file)).createReadStream()
  const { seq } = await receiveFile(
    parts,
    { workspaceId: workspace, isSandbox: false, actor: SHELL },
    pieces,
    () => ({
      listId: list,
      tags,
      mapping,
      charset,
      preset,
      fileName: file === '-' ? undefined : basename(file),
    }),
  )
  return processImport(appliance, seq)
}

async function processImport(appliance: Appliance, seq: number): Promise<Import> {
  const { config, world, database } = appliance
  const importer = new Importer({ ...audienceParts(appliance), spawn: spawnThread, log: world.log })
  const over = new AbortController()
  const watching = watch(appliance, seq, over.signal)
  try {
    for (;;) {
      // Checked in every round, in case the server stops.
      if (!isServing(config.dataDir)) await importer.finish(seq, over.signal)
      const one = await findImportBySeq(database.reader, seq)
      if (!one) throw new Error('the import was deleted')
      if (one.finishedAt !== null) return one
      await world.clock.sleep(POLL_MS)
    }
  } finally {
    over.abort()
    await watching
    endProgress()
  }
}

async function watch({ world, database }: Appliance, seq: number, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const one = await findImportBySeq(database.reader, seq)
    if (one) drawProgress(one.octetsRead / Math.max(1, one.octets), `${one.rowsDone} rows`)
    await world.clock.sleep(POLL_MS, over)
  }
}

/** @throws UsageError */
function readMap(pairs: readonly string[]): Mapping {
  return Object.fromEntries(
    pairs.map((pair): [string, string | null] => {
      const equals = pair.lastIndexOf('=')
      if (equals < 1) throw new UsageError(`${pair} is not column=field`)
      return [pair.slice(0, equals), pair.slice(equals + 1) || null]
    }),
  )
}

/** A running server notices new events in the log without being woken. */
export function audienceParts({ database, world, newId }: Appliance): AudienceParts {
  return { database, clock: world.clock, newId, onEvents: () => {} }
}

export function actingFor(workspaceId: string): Acting {
  return { workspaceId, isSandbox: false, source: 'api' }
}

/** @param named id or address @throws AppError contact_not_found */
export async function getContact(db: Queries, workspaceId: string, named: string): Promise<Contact> {
  const contact = await findContact(db, workspaceId, isUuid(named) ? { id: named } : { email: named })
  if (!contact) throw noSuchContact()
  return contact
}
