/** `postroad segments list|estimate`. */
import type { Command } from 'commander'
import { estimate } from '../../audience/segments/audience-query-store.js'
import { readConditions } from '../../audience/segments/read-conditions.js'
import { requireSegment, segmentToApi } from '../../audience/segments/segment-routes.js'
import { listSegments } from '../../audience/segments/segment-store.js'
import { patience } from '../../audience/scan-store.js'
import {
  command,
  limited,
  mustFindWorkspace,
  owned,
  printResult,
  table,
  withAppliance,
  type CliContext,
  type ListOptions,
  type OwnedOptions,
} from '../context.js'

export function segmentsCommands(program: Command, context: CliContext): void {
  const group = program.command('segments').description('conditions that tell which contacts are meant')
  const inWorkspace = (nameAndArgs: string, description: string) =>
    owned(command(group, nameAndArgs, description), 'whose segments')
  limited(inWorkspace('list', 'segments'), 100).action(async (options: OwnedOptions & ListOptions) => {
    await withAppliance(context, options, async ({ database }) => {
      await mustFindWorkspace(database.reader, options.workspace)
      const page = { limit: options.limit, offset: 0 }
      const { items } = await listSegments(database.reader, options.workspace, undefined, page)
      printResult(
        context,
        options,
        items.map(one => segmentToApi(one, false)),
        () =>
          table(
            ['NAME', 'ID'],
            items.map(({ name, id }) => [name, id]),
          ),
      )
    })
  })
  inWorkspace('estimate <id>', 'how many contacts it means, and how many of them may be mailed').action(
    async (id: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database: { reader }, world }) => {
        const { conditions } = await requireSegment(reader, options.workspace, id)
        const asking = { workspaceId: options.workspace, now: world.clock.now() }
        const { count, mailable } = await estimate(
          reader,
          readConditions(conditions),
          asking,
          patience(world.clock),
        )
        printResult(
          context,
          options,
          { count, mailable_count: mailable },
          () => `${count} contacts, ${mailable} of whom may be mailed`,
        )
      })
    },
  )
}
