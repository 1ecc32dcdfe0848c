/** `postroad contacts list|show|add|remove|import|export`. Transfers are CSV, through files or standard input and output. */
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import type { shownContact } from '../../audience/contacts/contact-schema.js'
import type { ContactImport } from '../../audience/transfer/import-schema.js'
import { PRESET_CHOICES } from '../../audience/transfer/reading/presets.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isUuid } from '../../core/ids.js'
import { withApi, type ApiClient } from '../api.js'
import {
  type CliContext,
  drawProgress,
  endProgress,
  type OwnedOptions,
  printResult,
  UsageError,
} from '../context.js'
import {
  confirm,
  confirmable,
  type ConfirmOptions,
  type OwnedGroup,
  printsRest,
  segment,
  workspaceGroup,
} from '../options.js'

export type ShownContact = ReturnType<typeof shownContact>

interface NewContactOptions extends OwnedOptions {
  readonly firstName?: string
  readonly lastName?: string
  readonly attribute?: readonly string[]
  readonly list?: string
  readonly unsubscribed?: boolean
}

export function contactsCommands(program: Command, context: CliContext): void {
  const group = workspaceGroup(program, 'contacts', 'contacts of a workspace')
  const { inWorkspace } = group
  printsRest<ShownContact, { readonly search?: string }>(
    context,
    inWorkspace('list', 'list contacts, newest first').option(
      '--search <words>',
      'search addresses and names',
    ),
    {
      path: () => '/contacts',
      query: ({ search }) => ({ search }),
      head: ['EMAIL', 'FIRST NAME', 'LAST NAME', 'SUBSCRIBED', 'BOUNCED', 'ID'],
      cells: one => [
        ...[one.email, one.first_name, one.last_name],
        ...[one.subscribed ? 'yes' : 'no', one.bounced ? 'yes' : 'no', one.id],
      ],
    },
  )
  inWorkspace('show <contact>', 'show a contact, by id or address, with its lists and tags').action(
    async (named: string, options: OwnedOptions) => {
      await withApi(context, options, async api => {
        const rest = api.inWorkspace(options.workspace)
        const contact = await rest.get(`/contacts/${segment(await findContactId(rest, named))}`)
        context.print(JSON.stringify(contact, null, 2))
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
      const { firstName, lastName, list } = options
      const body = {
        email,
        ...given({ first_name: firstName, last_name: lastName, list_id: list }),
        attributes: readAttributes(options.attribute ?? []),
        ...(options.unsubscribed ? { subscribed: false } : {}),
      }
      await withApi(context, options, async api => {
        const rest = api.inWorkspace(options.workspace)
        const contact = await rest.send<ShownContact>('POST', '/contacts', body)
        printResult(context, options, contact, () => contact.id)
      })
    })
  confirmable(inWorkspace('remove <contact>', 'permanently delete a contact, by id or address')).action(
    async (named: string, options: OwnedOptions & ConfirmOptions) => {
      await withApi(context, options, async api => {
        const rest = api.inWorkspace(options.workspace)
        const id = await findContactId(rest, named)
        await confirm(context, options, `This permanently deletes the contact ${named}.`)
        await rest.send('DELETE', `/contacts/${segment(id)}`)
        printResult(context, options, { success: true }, () => 'removed')
      })
    },
  )
  importCommand(group, context)
  exportCommand(group, context)
}

/** @param named id or address @throws AppError contact_not_found */
export async function findContactId(rest: ApiClient, named: string): Promise<string> {
  if (isUuid(named)) return named
  const [found] = await rest.list<ShownContact>('/contacts', { email: named }, 1)
  if (!found) throw new AppError('contact_not_found', `no contact ${named}`)
  return found.id
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

type ImportedColumn = ContactImport['columns'][number]

const POLL_MS = 200
const MAX_SHOWN = 20

interface ImportCommandOptions extends OwnedOptions {
  readonly list?: string
  readonly tags?: string
  readonly map?: readonly string[]
  readonly type?: readonly string[]
  readonly decimal?: string
  readonly dateFormat?: string
  readonly charset?: string
  readonly preset?: string
  readonly rejected?: string
  readonly dryRun?: boolean
}

function importCommand({ inWorkspace }: OwnedGroup, context: CliContext): void {
  inWorkspace('import <file>', 'import contacts from a CSV file; - is standard input')
    .option('--list <id>', 'list to add the contacts to')
    .option('--tags <names>', 'comma-separated tags to add to the contacts')
    .option(
      '--map <column=field...>',
      'map columns to fields: email, first_name, attributes.plan; empty: ignore the column',
    )
    .option(
      '--type <column=type...>',
      'type of an attribute column, if neither declared nor found in its cells: text, number, date, boolean, list',
    )
    .option('--decimal <mark>', 'decimal mark of numbers, if not found: point or comma')
    .option('--date-format <order>', 'order of day and month in dates, if not found: DMY or MDY')
    .option('--charset <name>', 'character set of the file, if not detected')
    .option('--preset <name>', `system that exported the file, if not detected: ${PRESET_CHOICES.join(', ')}`)
    .option('--rejected <file>', 'write rejected rows to this file')
    .option('--dry-run', 'only check the file: count what the import would do, and change nothing')
    .action(async (file: string, options: ImportCommandOptions) => {
      const { list, tags, charset, preset, decimal, dateFormat } = options
      const mapping = readMap(options.map ?? [])
      const query = {
        ...given({ list_id: list, tags, charset, preset, decimal, date_format: dateFormat }),
        ...(options.type === undefined ? {} : { types: JSON.stringify(readMap(options.type)) }),
        ...(mapping === undefined ? {} : { mapping: JSON.stringify(mapping) }),
        ...(options.dryRun === true ? { dry_run: 'true' } : {}),
        ...(file === '-' ? {} : { file_name: basename(file) }),
      }
      // Opened first, so that a missing file fails at once.
      const pieces: AsyncIterable<Buffer> =
        file === '-' ? process.stdin : (await open(file)).createReadStream()
      // Without a server this command does the import itself.
      await withApi(
        context,
        options,
        async api => {
          const rest = api.inWorkspace(options.workspace)
          const accepted = await rest.upload<{ import_id: string }>(
            '/contacts/import',
            pieces,
            'text/csv',
            query,
          )
          const done = await finished(rest, accepted.import_id, context)
          if (options.rejected !== undefined && done.rejected > 0)
            await pipeline(
              await rest.download(`/contacts/imports/${done.id}/rejected`),
              createWriteStream(options.rejected),
            )
          printImport(context, options, done)
        },
        { jobs: ['import-contacts'] },
      )
    })
}

/** Shows the progress on a terminal until the import has ended. */
async function finished(rest: ApiClient, id: string, { world }: CliContext): Promise<ContactImport> {
  try {
    for (;;) {
      const one = await rest.get<ContactImport>(`/contacts/imports/${id}`)
      if (one.completed_at !== null) return one
      drawProgress(one.progress, `${one.rows} rows`)
      await world.clock.sleep(POLL_MS)
    }
  } finally {
    endProgress()
  }
}

function printImport(context: CliContext, options: OwnedOptions, done: ContactImport): void {
  const { status, error, created, updated, unchanged, rejected } = done
  const rows = done.rejected_rows.slice(0, MAX_SHOWN)
  if (status !== 'completed' || rejected > 0) context.fail()
  printResult(context, options, { ...done, rejected_rows: rows }, () =>
    [
      `${done.dry_run ? 'dry run: ' : ''}${created} created, ${updated} updated, ${unchanged} unchanged, ${rejected} rejected`,
      ...done.columns.flatMap(foundText),
      ...rows.map(
        ({ line, reason, value }) => `line ${line}: ${reason}${value === null ? '' : ` (${value})`}`,
      ),
      ...(rejected > rows.length ? ['...'] : []),
      ...(status === 'completed' ? [] : [`${status}: ${error ?? 'it was cancelled'}`]),
    ].join('\n'),
  )
}

/** The notation recognized in an attribute's column; empty for plain text. */
function foundText({
  name,
  type,
  decimal,
  date_format: order,
  ambiguous,
  almost,
  declared,
  misfits,
  examples,
}: ImportedColumn): string[] {
  const [first] = examples
  if (ambiguous === 'decimal')
    return [`${name}: text, since ${first?.cell} may have a decimal point or comma; choose with --decimal`]
  if (ambiguous === 'date_format')
    return [
      `${name}: text, since ${first?.cell} may begin with the day or the month; choose with --date-format`,
    ]
  if (almost)
    return [
      `${name}: text, since line ${almost.line} is no ${almost.type}${almost.cell === null ? '' : ` (${almost.cell})`}, though most are`,
    ]
  if (type === null || (type === 'text' && declared === null)) return []
  const how = [
    misfits === null ? type : `${type} as declared`,
    ...(misfits === null && declared !== null && declared !== type ? [`declared as ${declared}`] : []),
    ...(decimal === null ? [] : [`decimal ${decimal}`]),
    ...(order === null ? [] : [order]),
  ].join(', ')
  const unfit = (misfits?.examples ?? [])
    .map(({ line, cell }) => `line ${line}${cell === null ? '' : ` (${cell})`}`)
    .join(', ')
  return [
    `${name}: ${how}${first ? ` (${first.cell} is ${first.value})` : ''}`,
    ...(misfits && misfits.count > 0
      ? [`${name}: ${misfits.count} ${misfits.count === 1 ? 'cell stays' : 'cells stay'} text: ${unfit}`]
      : []),
  ]
}

/** @returns undefined for none @throws UsageError */
function readMap(pairs: readonly string[]): Record<string, string | null> | undefined {
  if (pairs.length === 0) return undefined
  return Object.fromEntries(
    pairs.map((pair): [string, string | null] => {
      const equals = pair.lastIndexOf('=')
      if (equals < 1) throw new UsageError(`${pair} is not column=field`)
      return [pair.slice(0, equals), pair.slice(equals + 1) || null]
    }),
  )
}

interface ExportCommandOptions extends OwnedOptions {
  readonly search?: string
  readonly list?: string
  readonly segment?: string
  readonly tag?: string
}

function exportCommand({ inWorkspace }: OwnedGroup, context: CliContext): void {
  inWorkspace(
    'export [file]',
    'export contacts as CSV, or with --json as a JSON array; default: standard output',
  )
    .option('--search <words>', 'search addresses and names')
    .option('--list <id>', 'only members of this list')
    .option('--segment <id>', 'only contacts in this segment')
    .option('--tag <id>', 'only contacts with this tag')
    .action(async (file: string | undefined, options: ExportCommandOptions) => {
      await withApi(context, options, async api => {
        const { search, list, segment: segmentId, tag } = options
        const isPrinted = file === undefined || file === '-'
        const pieces = await api.inWorkspace(options.workspace).download('/contacts/export', {
          search,
          list_id: list,
          segment_id: segmentId,
          tag_id: tag,
          ...(isPrinted && options.json ? { format: 'json' } : {}),
        })
        if (isPrinted) await printPieces(context, pieces)
        else {
          await pipeline(pieces, createWriteStream(file))
          printResult(context, options, { file }, () => `written to ${file}`)
        }
      })
    })
}

/** Prints whole lines as they arrive; ends when the reader of the output is gone. */
export async function printPieces(context: CliContext, pieces: AsyncIterable<Buffer>): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of pieces) {
    if (context.isOutputClosed?.()) return
    const text = rest + decoder.decode(piece, { stream: true })
    const end = text.lastIndexOf('\n')
    if (end >= 0) context.printData(text.slice(0, end))
    rest = text.slice(end + 1)
  }
  if (rest !== '') context.printData(rest)
}
