/** `postroad lists list|show|create|members|add|remove`. */
import type { Command } from 'commander'
import { MOST_CONTACTS, MOST_LISTS } from '../../audience/audience-parts.js'
import { checkName, refuseMoreThan } from '../../audience/checks.js'
import { contactToApi } from '../../audience/contacts/contact-events.js'
import { countLists, insertList, listLists } from '../../audience/lists/list-store.js'
import { listToApi } from '../../audience/lists/list-routes.js'
import { changeMembers } from '../../audience/lists/members.js'
import { requireList } from '../../audience/lists/static-list.js'
import { LIST_MEMBERS, listPairs } from '../../audience/pair-store.js'
import { countMatching, listMatching } from '../../audience/segments/audience-query-store.js'
import { readConditions } from '../../audience/segments/read-conditions.js'
import { patience } from '../../audience/scan-store.js'
import { OPERATOR, recordActivity } from '../../events/activity-store.js'
import {
  mustFindWorkspace,
  printResult,
  UsageError,
  withAppliance,
  type CliContext,
  type OwnedOptions,
} from '../context.js'
import { ownedGroup, printsList } from '../tenant/owned-group.js'
import { actingFor, audienceParts, mustFindContact } from './audience-command.js'

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
        await mustFindWorkspace(tx.db, options.workspace)
        refuseMoreThan(MOST_LISTS, await countLists(tx.db, options.workspace), 'lists')
        await insertList(tx.db, list)
        await recordActivity(tx, {
          ...{ workspaceId: options.workspace, actor: OPERATOR, action: 'list.created' },
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
      if (contacts.length > MOST_CONTACTS) throw new UsageError(`at most ${MOST_CONTACTS} contacts at a time`)
      await withAppliance(context, options, async appliance => {
        const { reader } = appliance.database
        const ids: string[] = []
        for (const named of contacts) ids.push((await mustFindContact(reader, options.workspace, named)).id)
        const parts = audienceParts(appliance)
        const { done, skipped } = await changeMembers(parts, actingFor(options.workspace), id, ids, change)
        printResult(context, options, { [change]: done, skipped }, () => `${done} ${change}`)
      })
    })
}
