/** `postroad suppress add|remove|list|import|export`: addresses, or domains as @example.com, that a workspace must not mail. Transfers are CSV. */
import { access } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Command } from 'commander'
import { readPreset } from '../../audience/transfer/import-routes.js'
import { PRESET_CHOICES } from '../../audience/transfer/reading/presets.js'
import type { ImportedSuppressions } from '../../audience/transfer/suppression-transfer-routes.js'
import type { suppressionToApi } from '../../deliverability/suppressions/suppression-routes.js'
import { readSuppressionEntry } from '../../deliverability/suppressions/suppressions.js'
import { textOf, withApi } from '../api.js'
import {
  type CliContext,
  type ListOptions,
  openInput,
  type OwnedOptions,
  printResult,
  table,
} from '../context.js'
import { apiCommand, limited, owned } from '../options.js'

type Suppression = ReturnType<typeof suppressionToApi>

const DEFAULT_ROWS = 100

export function suppressCommands(program: Command, context: CliContext): void {
  const group = program.command('suppress').description('suppressed addresses and domains')
  const inWorkspace = (nameAndArgs: string, description: string) =>
    owned(apiCommand(group, nameAndArgs, description), 'workspace of the suppressions')
  inWorkspace('add <email>', 'suppress an address, or a domain as @example.com').action(
    async (email: string, options: OwnedOptions) => {
      await withApi(context, options, async api => {
        const client = api.inWorkspace(options.workspace)
        const [before] = await client.list<Suppression>('/suppressions', { email }, 1)
        const added = await client.send<Suppression>('POST', '/suppressions', { email })
        printResult(context, options, added, () =>
          before === undefined
            ? `${added.email} suppressed`
            : `${added.email} is now suppressed for all mail, not just marketing`,
        )
      })
    },
  )
  inWorkspace('remove <email>', 'remove a suppression').action(
    async (email: string, options: OwnedOptions) => {
      const entry = readSuppressionEntry(email)
      await withApi(context, options, async api => {
        const path = `/suppressions/${encodeURIComponent(entry)}`
        await api.inWorkspace(options.workspace).send('DELETE', path)
        printResult(context, options, { success: true }, () => 'removed')
      })
    },
  )
  limited(inWorkspace('list', 'list suppressions, newest first'), DEFAULT_ROWS).action(
    async (options: OwnedOptions & ListOptions) => {
      await withApi(context, options, async api => {
        const client = api.inWorkspace(options.workspace)
        const all = await client.list<Suppression>('/suppressions', {}, options.limit)
        printResult(context, options, all, () =>
          table(
            ['EMAIL', 'REASON', 'SCOPE', 'SINCE'],
            all.map(one => [one.email, one.reason, one.scope, one.created_at]),
          ),
        )
      })
    },
  )
  inWorkspace(
    'import <file>',
    'suppress the addresses in a CSV file (columns email, reason, scope; or a single column)',
  )
    .option('--preset <name>', `system that exported the file, if not detected: ${PRESET_CHOICES.join(', ')}`)
    .action(async (file: string, options: OwnedOptions & { readonly preset?: string }) => {
      readPreset(options.preset)
      if (file !== '-') await access(file)
      await withApi(context, options, async ({ admin }) => {
        const imported = await admin.upload<ImportedSuppressions>(
          '/suppressions/import',
          openInput(file),
          'text/csv',
          { workspace_id: options.workspace, preset: options.preset, file_name: basename(file) },
        )
        if (imported.rejected > 0) context.fail()
        printResult(context, options, imported, () => importText(imported))
      })
    })
  inWorkspace('export', 'export all suppressions of a workspace as CSV').action(
    async (options: OwnedOptions) => {
      await withApi(context, options, async ({ admin }) => {
        const query = { workspace_id: options.workspace, format: options.json ? 'json' : 'csv' }
        const file = await admin.download('/suppressions/export', query)
        if (options.json) {
          context.print(JSON.stringify(JSON.parse(await textOf(file)), null, 2))
          return
        }
        for await (const lines of wholeLines(file)) {
          if (context.isOutputClosed?.()) return
          context.printData(lines)
        }
      })
    },
  )
}

/** @returns text of whole lines, without the last line break */
async function* wholeLines(file: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of file) {
    const text = rest + decoder.decode(piece, { stream: true })
    const end = text.lastIndexOf('\n')
    if (end > 0) yield text.slice(0, end)
    rest = text.slice(end + 1)
  }
  if (rest !== '') yield rest
}

function importText({
  added,
  widened,
  known,
  rejected,
  skipped,
  preset,
  faults,
}: ImportedSuppressions): string {
  return [
    ...(preset === null ? [] : [`read as an export of ${preset}`]),
    `${added} added, ${widened} widened to all mail, ${known} already suppressed, ${rejected} rejected` +
      (skipped > 0 ? `, ${skipped} not suppressed there` : ''),
    ...faults.map(
      ({ line, reason, value }) => `line ${line}: ${reason}${value === null ? '' : ` (${value})`}`,
    ),
    ...(rejected > faults.length ? ['...'] : []),
  ].join('\n')
}
