/** `postroad contacts list|show|add|remove|import|export`. */
import type { Command } from 'commander'
import { contactToApi } from '../../audience/contacts/contact-events.js'
import { listContacts } from '../../audience/contacts/contact-page-store.js'
import { readNewContact, shownWith } from '../../audience/contacts/contact-schema.js'
import { createContact, removeContacts } from '../../audience/contacts/contacts.js'
import { CONTACT_TAGS, LIST_MEMBERS, thingsOf } from '../../audience/pair-store.js'
import { patience } from '../../audience/scan-store.js'
import { searchWords } from '../../core/fold.js'
import { given } from '../../core/given.js'
import {
  mustFindWorkspace,
  printResult,
  UsageError,
  withAppliance,
  type CliContext,
  type OwnedOptions,
} from '../context.js'
import { confirm, confirmable, type ConfirmOptions } from '../confirm.js'
import { ownedGroup, printsList } from '../tenant/owned-group.js'
import { actingFor, audienceParts, mustFindContact } from './audience-command.js'
import { contactTransferCommands } from './contact-transfer.js'

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
        const contact = await mustFindContact(reader, options.workspace, named)
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
          await mustFindWorkspace(tx.db, options.workspace)
          return createContact(parts, tx, actingFor(options.workspace), fields, options.list)
        })
        printResult(context, options, contactToApi(contact, false), () => contact.id)
      })
    })
  confirmable(inWorkspace('remove <contact>', 'permanently delete a contact, by id or address')).action(
    async (named: string, options: OwnedOptions & ConfirmOptions) => {
      await withAppliance(context, options, async appliance => {
        const parts = audienceParts(appliance)
        await mustFindContact(parts.database.reader, options.workspace, named)
        await confirm(context, options, `This permanently deletes the contact ${named}.`)
        await parts.database.write(async tx => {
          const contact = await mustFindContact(tx.db, options.workspace, named)
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
