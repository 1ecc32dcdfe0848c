/** `postroad tags list|add|remove`: words that contacts are marked with. */
import type { Command } from 'commander'
import { checkName } from '../../audience/checks.js'
import { ensureTags } from '../../audience/tags/ensure-tags.js'
import { tagToApi } from '../../audience/tags/tag-routes.js'
import { findTag, listTags } from '../../audience/tags/tag-store.js'
import { tagSome } from '../../audience/tags/taggings.js'
import { AppError } from '../../core/errors.js'
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
import { actingFor, audienceParts, mustFindContact } from './audience-command.js'

export function tagsCommands(program: Command, context: CliContext): void {
  const group = program.command('tags').description('words that contacts are marked with')
  const inWorkspace = (nameAndArgs: string, description: string) =>
    owned(command(group, nameAndArgs, description), 'whose tags')
  limited(inWorkspace('list', 'tags by name'), 100).action(async (options: OwnedOptions & ListOptions) => {
    await withAppliance(context, options, async ({ database }) => {
      await mustFindWorkspace(database.reader, options.workspace)
      const page = { limit: options.limit, offset: 0 }
      const { items } = await listTags(database.reader, options.workspace, undefined, page)
      printResult(
        context,
        options,
        items.map(tag => tagToApi(tag, false)),
        () =>
          table(
            ['NAME', 'CONTACTS', 'ID'],
            items.map(({ name, contactCount, id }) => [name, contactCount, id]),
          ),
      )
    })
  })
  inWorkspace(
    'add <name> <contact>',
    'mark a contact, named by id or address; makes the tag where there is none',
  ).action(async (name: string, named: string, options: OwnedOptions) => {
    await withAppliance(context, options, async appliance => {
      const parts = audienceParts(appliance)
      const acting = actingFor(options.workspace)
      const added = await parts.database.write(async tx => {
        const contact = await mustFindContact(tx.db, options.workspace, named)
        const at = parts.clock.now()
        const tag = (await ensureTags(tx, acting, [checkName(name)], { at, newId: parts.newId }))(
          checkName(name),
        )
        return tagSome(parts, tx, acting, tag, [contact], 'added')
      })
      printResult(context, options, { added }, () => (added > 0 ? 'added' : 'it has the tag already'))
    })
  })
  inWorkspace('remove <name> <contact>', 'take a tag off a contact, named by id or address').action(
    async (name: string, named: string, options: OwnedOptions) => {
      await withAppliance(context, options, async appliance => {
        const parts = audienceParts(appliance)
        const removed = await parts.database.write(async tx => {
          const contact = await mustFindContact(tx.db, options.workspace, named)
          const tag = await findTag(tx.db, options.workspace, { name })
          if (!tag) throw new AppError('not_found', `no tag ${name}`)
          return tagSome(parts, tx, actingFor(options.workspace), tag, [contact], 'removed')
        })
        printResult(context, options, { removed }, () => (removed > 0 ? 'removed' : 'it has not the tag'))
      })
    },
  )
}
