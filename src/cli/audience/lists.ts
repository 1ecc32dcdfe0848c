/** `postroad lists list|show|create|members|add|remove`, `postroad segments list`, `postroad tags list|add|remove`. */
import type { Command } from 'commander'
import { MAX_CONTACTS, MAX_LISTS } from '../../audience/audience-parts.js'
import { checkName, refuseMoreThan } from '../../audience/checks.js'
import { contactToApi } from '../../audience/contacts/contact-events.js'
import { listToApi } from '../../audience/lists/list-routes.js'
import { countLists, insertList, listLists } from '../../audience/lists/list-store.js'
import { changeMembers, requireList } from '../../audience/lists/lists.js'
import { LIST_MEMBERS, listPairs } from '../../audience/pair-store.js'
import { patience } from '../../audience/scan-store.js'
import { countMatching, estimate, listMatching } from '../../audience/segments/audience-query-store.js'
import { readConditions } from '../../audience/segments/read-conditions.js'
import { requireSegment, segmentToApi } from '../../audience/segments/segment-routes.js'
import { listSegments } from '../../audience/segments/segment-store.js'
import { ensureTags, tagSome } from '../../audience/tags/tags.js'
import { tagToApi } from '../../audience/tags/tag-routes.js'
import { findTag, listTags } from '../../audience/tags/tag-store.js'
import { AppError } from '../../core/errors.js'
import { SHELL } from '../../core/actor.js'
import { recordActivity } from '../../events/activity-store.js'
import {
  type CliContext,
  getWorkspace,
  type OwnedOptions,
  printResult,
  UsageError,
  withAppliance,
} from '../context.js'
import { ownedGroup, printsList } from '../options.js'
import { actingFor, audienceParts, getContact } from './contacts.js'

export function listsCommands(program: Command, context: CliContext): void {
  const { inWorkspace } = ownedGroup(program, 'lists', 'lists of contacts')
  printsList(
    context,
    inWorkspace('list', 'list lists, newest first'),
    ['NAME', 'TYPE', 'MEMBERS', 'ID'],
    async ({ database }, { workspaceId, page }) =>
      (await listLists(database.reader, workspaceId, {}, page)).items.map(list => {
        const members = list.type === 'static' ? list.memberCount : null
        return { shown: listToApi(list, false, members), cells: [list.name, list.type, members, list.id] }
      }),
  )
  inWorkspace('show <id>', 'show a list and its member count').action(
    async (id: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database: { reader }, world }) => {
        const list = await requireList(reader, options.workspace, id)
        const asking = { workspaceId: options.workspace, now: world.clock.now() }
        const members = list.conditions
          ? await countMatching(reader, readConditions(list.conditions), asking, patience(world.clock))
          : list.memberCount
        context.print(JSON.stringify(listToApi(list, false, members), null, 2))
      })
    },
  )
  inWorkspace('create <name>', 'create a list').action(async (name: string, options: OwnedOptions) => {
    await withAppliance(context, options, async ({ database, newId, world }) => {
      const at = world.clock.now()
      const list = {
        ...{ id: newId(), workspaceId: options.workspace, name: checkName(name), description: null },
        ...{ type: 'static' as const, conditions: null, isPublic: false, doubleOptIn: false },
        ...{ createdAt: at, updatedAt: at },
      }
      await database.write(async tx => {
        await getWorkspace(tx.db, options.workspace)
        refuseMoreThan(MAX_LISTS, await countLists(tx.db, options.workspace), 'lists')
        await insertList(tx.db, list)
        await recordActivity(tx, {
          ...{ workspaceId: options.workspace, actor: SHELL, action: 'list.created' },
          ...{ subject: list.name, createdAt: at },
        })
      })
      const shown = listToApi({ ...list, seq: 0, memberCount: 0 }, false, 0)
      printResult(context, options, shown, () => list.id)
    })
  })
  printsList(
    context,
    inWorkspace('members <id>', 'list members of a list, newest first'),
    ['EMAIL', 'FIRST NAME', 'LAST NAME', 'ID'],
    async ({ database: { reader }, world }, { workspaceId, page, named }) => {
      const list = await requireList(reader, workspaceId, named)
      const asking = { workspaceId, now: world.clock.now() }
      const { items } = list.conditions
        ? await listMatching(reader, readConditions(list.conditions), asking, page, patience(world.clock))
        : await listPairs(reader, LIST_MEMBERS, list.seq, list.memberCount, page)
      return items.map(one => ({
        shown: contactToApi(one, false),
        cells: [one.email, one.firstName, one.lastName, one.id],
      }))
    },
  )
  for (const [verb, change] of [
    ['add', 'added'],
    ['remove', 'removed'],
  ] as const)
    inWorkspace(
      `${verb} <id> <contacts...>`,
      `${verb === 'add' ? 'add contacts to' : 'remove contacts from'} a list, by id or address`,
    ).action(async (id: string, contacts: string[], options: OwnedOptions) => {
      if (contacts.length > MAX_CONTACTS) throw new UsageError(`at most ${MAX_CONTACTS} contacts at a time`)
      await withAppliance(context, options, async appliance => {
        const { reader } = appliance.database
        const ids: string[] = []
        for (const named of contacts) ids.push((await getContact(reader, options.workspace, named)).id)
        const parts = audienceParts(appliance)
        const { done, skipped } = await changeMembers(parts, actingFor(options.workspace), id, ids, change)
        printResult(context, options, { [change]: done, skipped }, () => `${done} ${change}`)
      })
    })
}

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
          const contact = await getContact(tx.db, options.workspace, named)
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
          const contact = await getContact(tx.db, options.workspace, named)
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
