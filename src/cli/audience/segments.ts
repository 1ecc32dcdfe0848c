/** `postroad segments list|estimate`. */
import type { Command } from 'commander'
import { estimate } from '../../audience/segments/audience-query-store.js'
import { readConditions } from '../../audience/segments/read-conditions.js'
import { requireSegment, segmentToApi } from '../../audience/segments/segment-routes.js'
import { listSegments } from '../../audience/segments/segment-store.js'
import { patience } from '../../audience/scan-store.js'
import { printResult, withAppliance, type CliContext, type OwnedOptions } from '../context.js'
import { ownedGroup, printsList } from '../tenant/owned-group.js'

export function segmentsCommands(program: Command, context: CliContext): void {
  const { inWorkspace } = ownedGroup(program, 'segments', 'segments: contacts matching conditions')
  printsList(
    context,
    inWorkspace('list', 'segments'),
    ['NAME', 'ID'],
    async ({ database }, { workspaceId, page }) =>
      (await listSegments(database.reader, workspaceId, undefined, page)).items.map(one => ({
        shown: segmentToApi(one, false),
        cells: [one.name, one.id],
      })),
  )
  inWorkspace('estimate <id>', 'count its contacts, and how many of them may be mailed').action(
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
          () => `${count} contacts, ${mailable} may be mailed`,
        )
      })
    },
  )
}
