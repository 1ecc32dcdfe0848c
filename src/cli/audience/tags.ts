/** `postroad tags list|add|remove`. */
import type { Command } from 'commander'
import { checkName } from '../../audience/checks.js'
import { ensureTags } from '../../audience/tags/ensure-tags.js'
import { tagToApi } from '../../audience/tags/tag-routes.js'
import { findTag, listTags } from '../../audience/tags/tag-store.js'
import { tagSome } from '../../audience/tags/taggings.js'
import { AppError } from '../../core/errors.js'
import { printResult, withAppliance, type CliContext, type OwnedOptions } from '../context.js'
import { ownedGroup, printsList } from '../tenant/owned-group.js'
import { actingFor, audienceParts, mustFindContact } from './audience-command.js'

export function tagsCommands(program: Command, context: CliContext): void {
  const { inWorkspace } = ownedGroup(program, 'tags', 'tags of contacts')
  printsList(
    context,
    inWorkspace('list', 'list tags by name'),
    ['NAME', 'CONTACTS', 'ID'],
    async ({ database }, { workspaceId, page }) =>
      (await listTags(database.reader, workspaceId, undefined, page)).items.map(tag => ({
        shown: tagToApi(tag, false),
        cells: [tag.name, tag.contactCount, tag.id],
      })),
  )
  inWorkspace('add <name> <contact>', 'tag a contact, by id or address; creates the tag if needed').action(
    async (name: string, named: string, options: OwnedOptions) => {
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
        printResult(context, options, { added }, () =>
          added > 0 ? 'added' : 'the contact already has the tag',
        )
      })
    },
  )
  inWorkspace('remove <name> <contact>', 'remove a tag from a contact, by id or address').action(
    async (name: string, named: string, options: OwnedOptions) => {
      await withAppliance(context, options, async appliance => {
        const parts = audienceParts(appliance)
        const removed = await parts.database.write(async tx => {
          const contact = await mustFindContact(tx.db, options.workspace, named)
          const tag = await findTag(tx.db, options.workspace, { name })
          if (!tag) throw new AppError('not_found', `no tag ${name}`)
          return tagSome(parts, tx, actingFor(options.workspace), tag, [contact], 'removed')
        })
        printResult(context, options, { removed }, () =>
          removed > 0 ? 'removed' : 'the contact does not have the tag',
        )
      })
    },
  )
}
