/** `postroad lists list|show|create|members|add|remove`, `postroad segments list|estimate`, `postroad tags list|add|remove`. */
import type { Command } from 'commander'
import { MAX_CONTACTS } from '../../audience/audience-parts.js'
import type { listToApi } from '../../audience/lists/list-routes.js'
import type { segmentToApi } from '../../audience/segments/segment-routes.js'
import type { tagToApi } from '../../audience/tags/tag-routes.js'
import { AppError } from '../../core/errors.js'
import { fold } from '../../core/fold.js'
import { withApi, type ApiClient } from '../api.js'
import { type CliContext, type OwnedOptions, printResult, UsageError } from '../context.js'
import { printsRest, segment, workspaceGroup } from '../options.js'
import { findContactId, type ShownContact } from './contacts.js'

type ShownList = ReturnType<typeof listToApi>
type ShownTag = ReturnType<typeof tagToApi>

export function listsCommands(program: Command, context: CliContext): void {
  const { inWorkspace } = workspaceGroup(program, 'lists', 'lists of contacts')
  printsRest<ShownList>(context, inWorkspace('list', 'list lists, newest first'), {
    path: () => '/lists',
    head: ['NAME', 'TYPE', 'MEMBERS', 'ID'],
    cells: list => [list.name, list.type, list.member_count, list.id],
  })
  inWorkspace('show <id>', 'show a list and its member count').action(
    async (id: string, options: OwnedOptions) => {
      await withApi(context, options, async api => {
        const list = await api.inWorkspace(options.workspace).get(`/lists/${segment(id)}`)
        context.print(JSON.stringify(list, null, 2))
      })
    },
  )
  inWorkspace('create <name>', 'create a list').action(async (name: string, options: OwnedOptions) => {
    await withApi(context, options, async api => {
      const list = await api.inWorkspace(options.workspace).send<ShownList>('POST', '/lists', { name })
      printResult(context, options, list, () => list.id)
    })
  })
  printsRest<ShownContact>(context, inWorkspace('members <id>', 'list members of a list, newest first'), {
    path: id => `/lists/${segment(id)}/members`,
    head: ['EMAIL', 'FIRST NAME', 'LAST NAME', 'ID'],
    cells: one => [one.email, one.first_name, one.last_name, one.id],
  })
  for (const [verb, method, change] of [
    ['add', 'POST', 'added'],
    ['remove', 'DELETE', 'removed'],
  ] as const)
    inWorkspace(
      `${verb} <id> <contacts...>`,
      `${verb === 'add' ? 'add contacts to' : 'remove contacts from'} a list, by id or address`,
    ).action(async (id: string, contacts: string[], options: OwnedOptions) => {
      if (contacts.length > MAX_CONTACTS) throw new UsageError(`at most ${MAX_CONTACTS} contacts at a time`)
      await withApi(context, options, async api => {
        const rest = api.inWorkspace(options.workspace)
        const ids: string[] = []
        for (const named of contacts) ids.push(await findContactId(rest, named))
        const path = `/lists/${segment(id)}/members`
        const result = await rest.send<Record<string, number>>(method, path, { contact_ids: ids })
        printResult(context, options, result, () => `${result[change] ?? 0} ${change}`)
      })
    })
}

export function segmentsCommands(program: Command, context: CliContext): void {
  const { inWorkspace } = workspaceGroup(program, 'segments', 'segments: contacts matching conditions')
  printsRest<ReturnType<typeof segmentToApi>>(context, inWorkspace('list', 'segments'), {
    path: () => '/segments',
    head: ['NAME', 'ID'],
    cells: one => [one.name, one.id],
  })
  inWorkspace('estimate <id>', 'count its contacts, and how many of them may be mailed').action(
    async (id: string, options: OwnedOptions) => {
      await withApi(context, options, async api => {
        const rest = api.inWorkspace(options.workspace)
        const found = await rest.send<{ count: number; mailable_count: number }>(
          'POST',
          `/segments/${segment(id)}/estimate`,
        )
        printResult(
          context,
          options,
          found,
          () => `${found.count} contacts, ${found.mailable_count} may be mailed`,
        )
      })
    },
  )
}

export function tagsCommands(program: Command, context: CliContext): void {
  const { inWorkspace } = workspaceGroup(program, 'tags', 'tags of contacts')
  printsRest<ShownTag>(context, inWorkspace('list', 'list tags by name'), {
    path: () => '/tags',
    head: ['NAME', 'CONTACTS', 'ID'],
    cells: tag => [tag.name, tag.contact_count, tag.id],
  })
  inWorkspace('add <name> <contact>', 'tag a contact, by id or address; creates the tag if needed').action(
    async (name: string, named: string, options: OwnedOptions) => {
      await withApi(context, options, async api => {
        const rest = api.inWorkspace(options.workspace)
        const contactId = await findContactId(rest, named)
        const tag = (await findTag(rest, name)) ?? (await rest.send<ShownTag>('POST', '/tags', { name }))
        const path = `/tags/${tag.id}/contacts`
        const { added } = await rest.send<{ added: number }>('POST', path, { contact_ids: [contactId] })
        printResult(context, options, { added }, () =>
          added > 0 ? 'added' : 'the contact already has the tag',
        )
      })
    },
  )
  inWorkspace('remove <name> <contact>', 'remove a tag from a contact, by id or address').action(
    async (name: string, named: string, options: OwnedOptions) => {
      await withApi(context, options, async api => {
        const rest = api.inWorkspace(options.workspace)
        const contactId = await findContactId(rest, named)
        const tag = await findTag(rest, name)
        if (!tag) throw new AppError('not_found', `no tag ${name}`)
        const path = `/tags/${tag.id}/contacts`
        const { removed } = await rest.send<{ removed: number }>('DELETE', path, { contact_ids: [contactId] })
        printResult(context, options, { removed }, () =>
          removed > 0 ? 'removed' : 'the contact does not have the tag',
        )
      })
    },
  )
}

async function findTag(rest: ApiClient, name: string): Promise<ShownTag | undefined> {
  const found = await rest.list<ShownTag>('/tags', { search: name }, 1_000)
  return found.find(tag => fold(tag.name) === fold(name))
}
